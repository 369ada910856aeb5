"""Published faults of what is pinned, and what protects this project: packages/data/known-faults.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parent / "data/known-faults.toml"
COPIES = {"c65ryu": ("ryu", "4.34")}
"""Copies of releases under other names: advisories name the original."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault. ``ids``: its names in the databases, the usual one first; ``fixed``: the first release without
    it, "" if what is pinned has it; ``shield``: what protects this project; ``messages``: those of
    ``tests/support/endless_messages.py`` that have to do with it; ``test``: a test of the shield.
    """

    ids: tuple[str, ...]
    package: str
    what: str
    fixed: str
    shield: str
    messages: tuple[str, ...]
    test: str


def read(file: Path = FILE) -> list[Fault]:
    """All faults, in the order of the file."""
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    shields = document["shields"]
    return [
        Fault(
            ids=tuple(each["ids"]),
            package=each["package"],
            what=each["what"],
            fixed=each.get("fixed", ""),
            shield=shields.get(each.get("shield", ""), each.get("shield", "")),
            messages=tuple(each.get("messages", ())),
            test=each.get("test", ""),
        )
        for each in document["fault"]
    ]
