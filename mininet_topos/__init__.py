"""Mininet topologies with shallow switch ports, and switches that start their own agent.

Imports only Mininet and the standard library, because ``mn`` runs in the system's Python.
"""

import contextlib as _contextlib
import logging as _logging
import sys as _sys

if "mininet.log" not in _sys.modules:
    # Mininet replaces the class of all loggers that are created later. Its class drops messages below its
    # level "output", those of the controller and of experiments among them.
    _before = _logging.getLoggerClass()
    with _contextlib.suppress(ImportError):
        import mininet.log  # noqa: F401
    _logging.setLoggerClass(_before)
