"""TCP ports of the loopback address for programs that are about to be started.

A port cannot be kept for a program until that listens. So no port is named twice within a short time: not by
this process, and not by another one that chooses at the same time, unless their process ids are alike. And
the ports are below those that the kernel gives to outgoing connections.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
from collections.abc import Iterator

FIRST, LAST = 20_000, 32_767
_PROCESSES = 64
"""Processes whose ids differ in these last digits name different ports."""


def ports_of(pid: int, start: int) -> Iterator[int]:
    """The ports that a process may name, again and again, from one of them on."""
    own = range(FIRST + pid % _PROCESSES, LAST + 1, _PROCESSES)
    return (own[(start + number) % len(own)] for number in itertools.count())


_ports: dict[int, Iterator[int]] = {}  # by process: a child of a fork has its own


def free_port() -> int:
    """A TCP port on which no program listens."""
    pid = os.getpid()
    for port in _ports.setdefault(pid, ports_of(pid, secrets.randbelow(LAST))):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("the ports have no end")
