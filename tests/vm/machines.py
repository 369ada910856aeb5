"""The machines of `make test-vm`: a distribution and one of its kernels, both from its packages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class CannotRun(Exception):
    """This machine lacks something for virtual machines; the text says what."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A virtual machine: its root file system is of ``suite``, its kernel of ``kernel_suite``."""

    name: str
    suite: str
    kernel_suite: str

    @property
    def suites(self) -> tuple[str, ...]:
        """Every suite whose packages it has."""
        return tuple(dict.fromkeys((self.suite, f"{self.suite}-updates", self.kernel_suite)))


MACHINES = {
    each.name: each
    for each in (
        Machine("debian12", "bookworm", "bookworm"),
        Machine("debian13", "trixie", "trixie"),
        Machine("backports", "trixie", "trixie-backports"),
    )
}


def _mirrors(text: str) -> dict[str, str]:
    """The addresses of the distribution's archives by kind, ``main`` and ``security``, in apt's sources."""
    found: dict[str, str] = {}
    for address in re.findall(r"^(?:deb(?: \[[^]]*\])?|URIs:) +(\S+)", text, re.MULTILINE):
        if re.search(r"/debian-security/?$", address):
            found.setdefault("security", address)
        elif re.search(r"/debian/?$", address):
            found.setdefault("main", address)
    return found


def sources(machine: Machine) -> str:
    """Sources for apt, in its deb822 format, of this machine's own mirror. Raises :class:`CannotRun`."""
    files = [
        path
        for each in map(Path, _SOURCES)
        for path in ([each] if each.is_file() else sorted(each.glob("*")))
    ]
    mirrors = _mirrors("\n".join(path.read_text() for path in files))
    if "main" not in mirrors:
        raise CannotRun("apt has no source of Debian (/etc/apt/sources.list.d)")
    entries = [(mirrors["main"], " ".join(machine.suites))]
    if "security" in mirrors:
        entries.append((mirrors["security"], f"{machine.suite}-security"))
    return "\n".join(
        f"Types: deb\nURIs: {address}\nSuites: {suites}\nComponents: main\nSigned-By: {_KEYRING}\n"
        for address, suites in entries
    )
