"""Sockets in another network namespace, opened by a process outside of it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def entered(where: int | Path | None) -> Iterator[None]:
    """Inside this block, sockets are opened in the network namespace of a process (its pid) or of a file;
    None: in the own one. ``OSError`` if it cannot be entered. Needs root.
    """
    if where is None:
        yield
        return
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        there = os.open(where if isinstance(where, Path) else f"/proc/{where}/ns/net", os.O_RDONLY)
        try:
            _enter(there)
            try:
                yield
            finally:
                _enter(home)
        finally:
            os.close(there)
    finally:
        os.close(home)


def _enter(namespace: int) -> None:
    if _LIBC.setns(namespace, _CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, f"cannot enter a network namespace: {os.strerror(code)}")
