"""A Debian package from a list of files, by ``dpkg-deb``. Everything in it belongs to root."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packages.dates import date
from packages.error import PackagingError

MAINTAINER = "fairq_ryu <fairq_ryu@localhost>"


@dataclass(frozen=True, slots=True)
class Item:
    """A file: where it is installed (absolute), its bytes, and whether it is a program."""

    path: str
    data: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True)
class DebianPackage:
    """``version`` includes the revision; ``summary`` is one line, ``text`` are the lines below it;
    ``relations`` are fields of the control file (Depends, ...); ``scripts`` are run by dpkg (postinst, ...).
    """

    name: str
    version: str
    architecture: str
    summary: str
    text: str
    items: tuple[Item, ...]
    relations: Mapping[str, str] = field(default_factory=dict)
    conffiles: tuple[str, ...] = ()
    scripts: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """The name of its file."""
        return f"{self.name}_{self.version}_{self.architecture}.deb"


def control(package: DebianPackage) -> str:
    """The text of its control file."""
    lines = [
        f"Package: {package.name}",
        "Source: fairq-ryu",
        f"Version: {package.version}",
        f"Architecture: {package.architecture}",
        f"Maintainer: {MAINTAINER}",
        f"Installed-Size: {sum(-(-len(item.data) // 1024) for item in package.items)}",
        *(f"{name}: {value}" for name, value in package.relations.items()),
        "Section: net",
        "Priority: optional",
        f"Description: {package.summary}",
        *(f" {line}" if line.strip() else " ." for line in package.text.strip().splitlines()),
    ]
    return "\n".join(lines) + "\n"


def build(package: DebianPackage, out: Path) -> Path:
    """Build it into ``out``, in place of packages of other versions there; returns its path. Raises
    :class:`PackagingError` if two files have one place, or dpkg-deb refuses.
    """
    places = [item.path for item in package.items]
    if len(set(places)) != len(places):
        double = sorted({place for place in places if places.count(place) > 1})
        raise PackagingError(f"{package.name} has two files for {', '.join(double[:3])}")
    with tempfile.TemporaryDirectory() as directory:
        stage = Path(directory, "stage")
        _write(stage, package)
        path = out / package.file_name
        for old in out.glob(f"{package.name}_*.deb"):
            old.unlink()
        command = ["dpkg-deb", "--root-owner-group", "--build", str(stage), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PackagingError(f"dpkg-deb cannot build {package.name}: {done.stderr.strip()}")
    return path


def _write(stage: Path, package: DebianPackage) -> None:
    sums = []
    for item in package.items:
        path = stage / item.path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(item.data)
        path.chmod(0o755 if item.executable else 0o644)
        if item.path not in package.conffiles:
            sums.append(
                f"{hashlib.md5(item.data, usedforsecurity=False).hexdigest()}  {item.path.lstrip('/')}\n"
            )
    about = stage / "DEBIAN"
    about.mkdir(parents=True, exist_ok=True)
    files = {"control": control(package), "md5sums": "".join(sorted(sums))}
    if package.conffiles:
        files["conffiles"] = "".join(f"{path}\n" for path in package.conffiles)
    for name, text in (files | dict(package.scripts)).items():
        (about / name).write_text(text, encoding="utf-8")
        (about / name).chmod(0o755 if name in package.scripts else 0o644)
    when = date()
    for path in (stage, *stage.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (when, when))
