"""What the database says of controllers and bridges, as values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

TO_BRIDGE, TO_AGENT = 1, 2
"""The connections of a controller to a switch, as bits: to the bridge itself, and to its agent."""


class Member(NamedTuple):
    """A controller. ``id`` is of one process, ``name`` of the operator. ``beat`` is a number that it
    increases as long as it lives; ``reach``: its connections, by dpid.
    """

    id: str
    name: str = ""
    rest: str = ""
    settings: str = ""
    beat: int = 0
    reach: Mapping[int, int] = {}


class Bridge(NamedTuple):
    """A bridge. ``owner``: the ``id`` of a controller; ``generation`` increases with each change of owner;
    ``load``: governed ports and their connections, as an owner has counted them; 0: none has yet.
    """

    owner: str
    generation: int
    load: int = 0


class View(NamedTuple):
    """The database at one moment: members by ``id``, bridges by dpid. ``removed``: the latest generation of
    the bridges whose rows were removed; their switches may come back, and know it.
    """

    members: Mapping[str, Member] = {}
    bridges: Mapping[int, Bridge] = {}
    removed: int = 0

    def owned(self, member: str) -> dict[int, int]:
        """The bridges of a member, with their generations."""
        return {dpid: row.generation for dpid, row in self.bridges.items() if row.owner == member}


class Claim(NamedTuple):
    """A bridge gets a new owner, with a new ``generation``, provided that the generation is ``before`` still
    (None: that the bridge has no row).
    """

    dpid: int
    before: int | None
    generation: int


Texts = Mapping[tuple[str, str], str | None]
"""Requests that every controller carries out: by kind, and by what they are about, with their values in JSON.
None: there is none.
"""
