"""Gives the results of ``sudo fairq`` to the user who called it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

Owner = tuple[int, int]
_FILES_CLOCK = 5  # CLOCK_REALTIME_COARSE, which the kernel uses for the times of files


def caller(environment: Mapping[str, str] = os.environ) -> Owner | None:
    """User and group that called sudo; None without root, or without sudo of another user."""
    if os.geteuid() != 0:
        return None
    try:
        owner = int(environment["SUDO_UID"]), int(environment["SUDO_GID"])
    except (KeyError, ValueError):
        return None
    return owner if owner[0] > 0 and owner[1] >= 0 else None


@contextmanager
def given_to_caller(directory: Path, names: Sequence[str]) -> Iterator[None]:
    """After the block, the files and directories ``names`` in ``directory`` that it has written belong to the
    caller, and so do ``directory`` and its parents if they did not exist before.

    Nothing else is changed: no file that was not written, no link, and no target of a link.
    """
    owner = caller()
    if owner is None:
        yield
        return
    made = [each for each in (directory, *directory.parents) if not os.path.lexists(each)]
    began = time.clock_gettime_ns(_FILES_CLOCK)
    try:
        yield
    finally:
        for each in made:
            _give(str(each), None, owner, 0)
        with suppress(OSError):
            here = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                for name in names:
                    _give(name, here, owner, began, deep=True)
            finally:
                os.close(here)


def _give(name: str, where: int | None, owner: Owner, since_ns: int, deep: bool = False) -> None:
    """Change the owner of one entry of the directory ``where``, if it is root's and has been changed since.

    It uses a file descriptor, so that the entry cannot be replaced meanwhile. A file with a second hard link
    is not changed, because it may belong to the system.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(name, flags, dir_fd=where)
    except OSError:
        return  # a link, or removed
    try:
        found = os.fstat(handle)
        directory = stat.S_ISDIR(found.st_mode)
        if not directory and (not stat.S_ISREG(found.st_mode) or found.st_nlink > 1):
            return
        if deep and directory:
            for entry in os.listdir(handle):
                _give(entry, handle, owner, since_ns, deep=True)
        if found.st_uid == 0 and found.st_ctime_ns >= since_ns:
            os.fchown(handle, *owner)
    finally:
        os.close(handle)
