"""The three ways in which a bridge is governed, who chooses one, and what each cannot do. Pure.

- *Windows only*: the agent governs the bridge alone. No rule of the bridge is read, set or cleared; the
  bridge has another controller, or none.
- *Normal*: the bridge is connected and forwards by its own rules, which stay.
- *Paths*: the controller owns the tables of the bridge and forwards by itself.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple


class Way(StrEnum):
    """How a bridge is governed; the values are those of the setting ``way``."""

    WINDOWS = "windows"
    NORMAL = "normal"
    PATHS = "paths"


_IN_WORDS = re.compile(r"\bfairq_ryu:\s*(windows|normal|paths)\b")


def in_words(description: str) -> Way | None:
    """The way that the OpenFlow description of a bridge asks for, as in ``fairq_ryu: paths``; None: it names
    none.
    """
    found = _IN_WORDS.search(description)
    return None if found is None else Way(found[1])


class RuleCount(NamedTuple):
    """The rules of a bridge: ``total``; of these, those that this controller or an earlier one has installed
    for ``paths``, and its own rule that forwards in the way ``normal``.
    """

    total: int
    paths: int
    normal: int

    @property
    def others(self) -> int:
        """The rules of others."""
        return max(0, self.total - self.paths - self.normal)


class Asked(NamedTuple):
    """What the configuration asks for that needs ``paths``: SYNs are held, policies of ports are chosen by
    role, and the agent of the bridge unifies window scales.
    """

    hold: bool = False
    roles: bool = False
    unify: bool = False


def limits(way: Way, connected: bool, others: int, asked: Asked, in_loop: bool | None = False) -> list[str]:
    """What a way cannot do, with the reason, as lines for people. ``others``: the rules of others in the
    bridge; ``in_loop``: whether a rule that forwards would close a loop (None: not known yet).
    """
    if way is Way.PATHS:
        return []
    if not connected:
        why = "the bridge is not connected to this controller"
    elif way is Way.WINDOWS:
        why = "this controller leaves the bridge alone"
    else:
        why = "the bridge forwards by its own rules"
    found = [f"paths are not pinned, hosts and links are not known: {why}"]
    if in_loop is None:
        found.insert(
            0, "nothing is forwarded yet: a rule that does could close a loop, and links are looked for"
        )
    elif in_loop:
        found.insert(0, "nothing is forwarded: the bridge has no rules and is part of a loop; ask for paths")
    if asked.hold:
        found.append(f"SYNs are not held (syn = hold): {why}")
    if asked.roles:
        found.append(f"no port matches role:host or role:link: {why}")
    if asked.unify:
        found.append(
            "the agent changes window scales (unify_scale): windows of flows that move to a path without it "
            f"are read too small: {why}"
        )
    if way is Way.WINDOWS:
        found.append(f"the traffic through ports is not counted: {why}")
    elif others:
        rules = "a rule" if others == 1 else f"{others} rules"
        found.append(f"no rule is installed: the bridge had {rules} of others when it connected")
    return found
