"""``python -m packages.lock``: writes the lock files, which pip checks what it installs against.

A lock has the SHA-256 of every file of each release in a requirements file, so that it fits every Python and
every processor. The hashes are those that the package index states; ``PIP_INDEX_URL`` names another index.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
LOCKS = {
    "requirements-build.txt": "requirements-build.lock",
    "requirements.txt": "requirements.lock",
    "requirements-dev.txt": "requirements-dev.lock",
}
"""The requirements files, in the order in which set-up installs them, and the lock of each."""
_HEAD = "# The releases of {} with the SHA-256 of all their files. Written by: make lock\n"
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_TYPE = "application/vnd.pypi.simple.v1+json"


@dataclass(frozen=True, slots=True)
class Pin:
    """A release: its name as the requirements file has it, its version, and the marker of the Pythons and
    machines that need it ("": all).
    """

    name: str
    version: str
    marker: str = ""

    @property
    def key(self) -> str:
        """The name as indexes compare names."""
        return str(canonicalize_name(self.name))

    def applies(self) -> bool:
        """Whether this Python on this machine needs it."""
        return not self.marker or Marker(self.marker).evaluate()


def pins(requirements: str) -> list[Pin]:
    """The releases in the text of a requirements file. Raises ValueError if a line is not NAME==VERSION, with
    or without a marker.
    """
    found = []
    for line in requirements.splitlines():
        words = line.partition("#")[0].strip()
        if words:
            found.append(_pin(words))
    return found


def _pin(words: str) -> Pin:
    try:
        read = Requirement(words)
    except InvalidRequirement as error:
        raise ValueError(f"{words}: {error}") from None
    exact = [each.version for each in read.specifier if each.operator == "=="]
    if len(exact) != 1 or len(read.specifier) != 1 or "*" in exact[0] or read.extras or read.url:
        raise ValueError(f"{words}: not of the form NAME==VERSION")
    return Pin(read.name, exact[0], str(read.marker or ""))


def locked(lock: str) -> dict[Pin, tuple[str, ...]]:
    """The hashes of each release in the text of a lock. Raises ValueError as :func:`pins`."""
    entries = lock.replace("\\\n", " ").splitlines()
    words = [line.partition("#")[0].strip() for line in entries]
    return {_pin(each.partition("--hash")[0]): tuple(_HASH.findall(each)) for each in words if each}


def text(source: str, hashes: Mapping[Pin, Iterable[str]]) -> str:
    """The text of the lock of a requirements file."""
    lines = [_HEAD.format(source)]
    for pin, each in hashes.items():
        marker = f" ; {pin.marker}" if pin.marker else ""
        words = [
            f"{pin.name}=={pin.version}{marker}",
            *(f"--hash=sha256:{digest}" for digest in sorted(each)),
        ]
        lines.append(" \\\n    ".join(words) + "\n")
    return "".join(lines)


def release(pin: Pin, files: Iterable[Mapping[str, Any]]) -> list[str]:
    """The hashes of a release, of all files that an index has of its project. Raises ValueError if it has
    none.
    """
    found = [each["hashes"]["sha256"] for each in files if _version(each["filename"]) == Version(pin.version)]
    if not found:
        raise ValueError(f"the index has no file of {pin.name} {pin.version}")
    return found


def _version(filename: str) -> Version | None:
    try:
        if filename.endswith(".whl"):
            return parse_wheel_filename(filename)[1]
        return parse_sdist_filename(filename)[1]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None  # an egg or an installer, which pip does not take


def _of_index(pin: Pin) -> list[str]:
    index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/")
    request = urllib.request.Request(f"{index}/{pin.key}/", headers={"Accept": _TYPE})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return release(pin, json.load(answer)["files"])


def write(root: Path, hashes_of: Callable[[Pin], Iterable[str]] = _of_index) -> list[Path]:
    """Write the locks of the requirements files in ``root``; returns those that have changed. ``hashes_of``
    is asked for releases that are not locked yet; the hashes of the others stay. Raises ValueError, and
    OSError if the index does not answer.
    """
    changed = []
    for source, name in LOCKS.items():
        path = root / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        known = {(pin.key, pin.version): each for pin, each in locked(old).items()}
        wanted = pins((root / source).read_text(encoding="utf-8"))
        new = text(source, {pin: known.get((pin.key, pin.version)) or hashes_of(pin) for pin in wanted})
        if new != old:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    return changed


def main() -> int:
    """Write them, and print their names. Returns the exit code."""
    try:
        for path in write(ROOT):
            print(f"written: {path.name}")
    except (ValueError, OSError) as error:
        print(f"lock: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
