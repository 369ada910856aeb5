"""The lock that keeps a second agent from a bridge."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from typing import IO

from fairq_ryu.agent import status
from fairq_ryu.errors import UserError


class BridgeLock:
    """At most one agent runs on a bridge. The kernel releases the lock when the process ends."""

    def __init__(self, bridge: str) -> None:
        """Take the lock. Raises :class:`UserError` with the process that holds it."""
        directory = status.run_directory()
        try:
            directory.mkdir(mode=0o755, parents=True, exist_ok=True)
            self._file: IO[str] = open(status.lock_path(bridge), "a+", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise UserError(
                f"cannot write to {directory}: {error.strerror}", "run as root, or set FAIRQ_RUNDIR"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise UserError(
                f"bridge {bridge} has an agent already: {holder}", "stop that one first, or leave it running"
            ) from None
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"process {os.getpid()} ({' '.join(sys.argv)})\n")
        self._file.flush()

    def release(self) -> None:
        """Release the lock and remove its file."""
        with contextlib.suppress(OSError):
            os.unlink(self._file.name)
        self._file.close()
