"""Packages of another suite than this machine's own: apt with a configuration and lists of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.vm.machines import CannotRun, Machine, sources


class Package(NamedTuple):
    """A package as apt would fetch it."""

    name: str
    file: str
    """Its file's name, which has the version."""


class Apt:
    """Apt for one machine, in ``directory``; the apt of this machine and its lists are not touched."""

    def __init__(self, machine: Machine, directory: Path) -> None:
        """Fetch the lists of the machine's suites. Raises :class:`CannotRun`."""
        self._machine, self._directory = machine, directory
        for each in ("lists/partial", "cache/archives/partial"):
            (directory / each).mkdir(parents=True, exist_ok=True)
        (directory / "status").touch()
        self.sources = directory / "debian.sources"
        self.sources.write_text(sources(machine))
        self._apt("update", "-q", "--error-on=any")

    def _apt(self, *arguments: str, cwd: Path | None = None) -> str:
        own = self._directory
        options = {
            "Dir::State::Lists": own / "lists",
            "Dir::State::Status": own / "status",
            "Dir::Etc::SourceList": self.sources,
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::Cache": own / "cache",
            "APT::Sandbox::User": "root",
        }
        own_files = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        result = subprocess.run(
            ["apt-get", *own_files, *arguments], cwd=cwd, capture_output=True, text=True, check=False
        )
        if result.returncode:
            last = (result.stderr.strip() or "no output").splitlines()[-1]
            raise CannotRun(f"apt-get {arguments[0]} for {self._machine.name}: {last}")
        return result.stdout

    def closure(self, names: Sequence[str], suite: str) -> list[Package]:
        """``names`` of ``suite`` and everything that they depend on. Raises :class:`CannotRun`."""
        text = self._apt("install", "--print-uris", "-qq", "--no-install-recommends", "-t", suite, *names)
        files = [line.split()[1] for line in text.splitlines() if line.startswith("'")]
        return [Package(file.partition("_")[0], file) for file in files]

    def fetch(self, packages: Sequence[Package], into: Path) -> list[Path]:
        """The packages' files, in ``into``. Raises :class:`CannotRun`."""
        into.mkdir(parents=True, exist_ok=True)
        missing = [each for each in packages if not (into / each.file).exists()]
        if missing:
            # An epoch's colon is written %3a in names of files, and the version stands between underscores.
            versions = [f"{each.name}={each.file.split('_')[1].replace('%3a', ':')}" for each in missing]
            self._apt("download", "-q", *versions, cwd=into)
        return [into / each.file for each in packages]
