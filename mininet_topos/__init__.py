"""Mininet topologies with shallow switch ports and switches that bring their own agent.

Imports only Mininet and the standard library, because ``mn`` runs in the system's Python.
"""

import contextlib as _contextlib
import logging as _logging
import sys as _sys

if "mininet.log" not in _sys.modules:
    # Mininet has all loggers that anybody makes from then on be of its own kind, which keep back what is less
    # than its "output", the controller's and the experiments' notes among it.
    _before = _logging.getLoggerClass()
    with _contextlib.suppress(ImportError):
        import mininet.log  # noqa: F401
    _logging.setLoggerClass(_before)
