"""Python packages that the Debian packages bring along, copied from the .venv that runs this.

The controller needs a newer pydantic than Debian 12 has, and a Ryu and an eventlet that fit each other. So it
brings what it imports, in a directory of its own that no other program sees. What the agent needs is in
Debian, except for Ryu's OpenFlow codec.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from packages.deb import Item
from packages.error import PackagingError

RYU = "c65ryu"
CONTROLLER = {
    "annotated-types": "pydantic",
    "dnspython": "eventlet",
    "eventlet": "Ryu: the event loop",
    "greenlet": "eventlet",
    "msgpack": "Ryu: imported at its start",
    "netaddr": "Ryu: addresses; oslo.config",
    "networkx": "paths in the fabric",
    "oslo.config": "Ryu: the configuration",
    "oslo.i18n": "oslo.config",
    "packaging": "Ryu: the version of eventlet",
    "prometheus_client": "metrics",
    "pydantic": "the REST interface",
    "pydantic_core": "pydantic",
    "repoze.lru": "Routes",
    "rfc3986": "oslo.config",
    "Routes": "Ryu: the REST server",
    "six": "Ryu, Routes, tinyrpc",
    "stevedore": "oslo.config",
    "tinyrpc": "Ryu: imported by the REST server",
    "typing_extensions": "pydantic",
    "typing-inspection": "pydantic",
    "WebOb": "Ryu: the REST server",
} | ({"legacy-cgi": "WebOb"} if sys.version_info >= (3, 13) else {})
"""The distributions that the controller imports, Ryu aside, and what needs each."""
# Ryu's BGP and VRRP, and the tests of all: nothing here imports them.
_LEFT_OUT = {"ryu/tests", "ryu/services", "ryu/contrib"}
# Ryu's decoder of TCP imports that of Zebra, which imports oslo.config and distutils.
_REPLACED = {
    "ryu/lib/packet/zebra.py": b"""# In place of Ryu's: fairq_ryu decodes no packets of Zebra.
ZEBRA_PORT = 2600
ZebraMessage = _ZebraMessageFromZebra = None
"""
}
CHANGED = {RYU: "without its tests, BGP and VRRP; a stand-in for its decoder of Zebra; without distutils"}
"""What is changed in a distribution, in words."""
# Python 3.12 and newer have no distutils, which set-up's setuptools stands in for.
_DISTUTILS = (
    b"from distutils.version import LooseVersion",
    b"from packaging.version import Version as LooseVersion",
)
_KEPT_OF_INFO = re.compile(
    r"^(METADATA|entry_points\.txt|top_level\.txt|licenses/.*|.*(LICEN[CS]E|NOTICE|COPYING|AUTHORS).*)$"
)


def items(names: Iterator[str] | list[str], target: str, pins: dict[str, str]) -> list[Item]:
    """The files of these distributions, placed below ``target``. Raises :class:`PackagingError` unless each
    is installed in the version that ``pins`` says.
    """
    found: list[Item] = []
    for name in names:
        dist = installed(name, pins.get(canonical(name), ""))
        for path in dist.files or []:
            place = PurePosixPath(str(path))
            if _wanted(place):
                data = _REPLACED.get(str(place)) or Path(str(dist.locate_file(path))).read_bytes()
                found.append(Item(f"{target}/{place}", data.replace(*_DISTUTILS)))
    return found


def installed(name: str, version: str) -> Distribution:
    """What is installed under this name. Raises :class:`PackagingError` unless it is of this version."""
    try:
        dist = distribution(name)
    except PackageNotFoundError:
        raise PackagingError(
            f"{name} is not installed: run this with .venv/bin/python, after make setup"
        ) from None
    if dist.version != version:
        raise PackagingError(f"{name} is {dist.version}, and requirements.txt says {version}: make setup")
    return dist


def _wanted(place: PurePosixPath) -> bool:
    parts = place.parts
    if parts[0] == ".." or "__pycache__" in parts or "/".join(parts[:2]) in _LEFT_OUT:
        return False
    if parts[0].endswith(".dist-info"):
        return _KEPT_OF_INFO.match("/".join(parts[1:])) is not None
    return "tests" not in parts[1:-1]


def canonical(name: str) -> str:
    """The name of a distribution as PyPI compares them."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(requirements: str) -> dict[str, str]:
    """The versions in the text of requirements.txt, by canonical name."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", requirements, re.MULTILINE)
    return {canonical(name): version for name, version in found}


def licence(name: str) -> str:
    """What a distribution says of its licence, in a few words."""
    about = distribution(name).metadata
    stated = [each for key in ("License-Expression", "License") for each in about.get_all(key) or []]
    if stated and "\n" not in stated[0]:
        return str(stated[0])
    named = [each.rpartition(" :: ")[2] for each in about.get_all("Classifier") or [] if "License ::" in each]
    return ", ".join(named) or "see its licence file"
