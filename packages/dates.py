"""The date of all that is built: that of the last commit, so that the same commit gives the same files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_FIRST_DAY = "1763596800"  # of version 0.1.0, where git cannot tell


def set_date(root: Path) -> int:
    """Seconds since 1970, from SOURCE_DATE_EPOCH, which is set for other programs if it is not yet."""
    return int(os.environ.setdefault("SOURCE_DATE_EPOCH", _of_commit(root)))


def date() -> int:
    """The same, where it was set; else 0."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def _of_commit(root: Path) -> str:
    try:
        shown = subprocess.run(
            ["git", "-C", str(root), "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False
        )
    except OSError:
        return _FIRST_DAY
    return shown.stdout.strip() or _FIRST_DAY
