"""The lock that keeps a second agent from a bridge."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from pathlib import Path
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
            self._file = _locked(status.lock_path(bridge))
        except BlockingIOError as taken:
            raise UserError(
                f"bridge {bridge} has an agent already: {taken.args[0]}",
                "stop that one first, or leave it running",
            ) from None
        except OSError as error:
            raise UserError(
                f"cannot write to {directory}: {error.strerror}", "run as root, or set FAIRQ_RUNDIR"
            ) from None
        # What others read is worth no agent: the disk may be full. Not buffered, or closing would try again.
        with contextlib.suppress(OSError):
            os.ftruncate(self._file.fileno(), 0)
            os.write(
                self._file.fileno(),
                f"process {os.getpid()} ({' '.join(sys.argv)})\n".encode(errors="replace"),
            )

    def release(self) -> None:
        """Release the lock and remove its file."""
        with contextlib.suppress(OSError):
            os.unlink(self._file.name)
        self._file.close()


def _locked(path: Path) -> IO[str]:
    """The file with the lock. `BlockingIOError` with its holder."""
    while True:
        file = open(path, "a+", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise BlockingIOError(holder) from None
        # Its last holder may have removed it meanwhile: then others would find no lock.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                return file
        file.close()
