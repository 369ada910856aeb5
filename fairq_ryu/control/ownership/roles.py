"""The roles of this controller at its switches: master where it is the owner, slave elsewhere.

The generation of the database is the generation of OpenFlow: a switch, bridge or agent, refuses the role with
one that is older than what it knows, and after a later one everything from the earlier master. A switch is
used when it has confirmed the role of the master, and not before; as EQUAL, the role of a new connection,
nothing is sent but requests for roles.

Says what to send, and sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import oxm
from fairq_ryu.cluster.view import TO_AGENT, TO_BRIDGE
from fairq_ryu.control.sender import Outgoing

# Of a switch that nobody has given a generation yet.
_UNSET = 0xFFFF_FFFF_FFFF_FFFF


_ENDED = "connection lost"


class _Wanted(NamedTuple):
    role: int
    generation: int


@dataclass(eq=False, slots=True)
class _Connection:
    datapath: Any
    asked: _Wanted | None = None
    held: bool = False  # it is ours to use


@dataclass(eq=False)
class Roles:
    """``gained`` is called when a switch is ours to use, ``lost`` when it is not any more, with the reason in
    words; ``ahead`` with a dpid and the generation of a switch that refuses ours.
    """

    gained: Callable[[Any], None]
    lost: Callable[[Any, str], None]
    ahead: Callable[[int, int], None]
    _connections: dict[int, _Connection] = field(default_factory=dict, init=False)
    _owned: Mapping[int, int] = field(default_factory=dict, init=False)
    _known: Mapping[int, int] = field(default_factory=dict, init=False)

    def connected(self, datapath: Any) -> list[Outgoing]:
        """The handshake of a switch is complete."""
        former = self._connections.get(datapath.id)
        if former is not None and former.held:
            self._lose(former, _ENDED)
        connection = self._connections[datapath.id] = _Connection(datapath)
        return self._ask(connection)

    def disconnected(self, datapath: Any) -> None:
        """A connection has ended."""
        connection = self._current(datapath)
        if connection is not None:
            del self._connections[datapath.id]
            if connection.held:
                self._lose(connection, _ENDED)

    def reaches(self, dpid: int) -> bool:
        """Whether there is a connection to a bridge or its agent."""
        return dpid in self._connections or oxm.agent_dpid(dpid) in self._connections

    def reach(self) -> dict[int, int]:
        """The connections of this controller, as :class:`~fairq_ryu.cluster.view.Member` has them."""
        found: dict[int, int] = {}
        for number in self._connections:
            dpid, link = oxm.bridge_dpid(number), TO_AGENT if oxm.is_agent(number) else TO_BRIDGE
            found[dpid] = found.get(dpid, 0) | link
        return found

    def decided(self, owned: Mapping[int, int], known: Mapping[int, int]) -> list[Outgoing]:
        """The database says which bridges are ours, with their generations, and those of all bridges."""
        self._owned, self._known = owned, known
        return [message for each in list(self._connections.values()) for message in self._ask(each)]

    def replied(self, message: Any) -> list[Outgoing]:
        """A switch has told our role (Ryu's ``OFPRoleReply``)."""
        connection = self._current(message.datapath)
        if connection is None or connection.asked is None:
            return []
        asked, generation = connection.asked, message.generation_id
        is_later = generation != _UNSET and (asked.generation - generation) & 1 << 63 != 0
        # The answer to the question which generation it has, after it has refused ours. We may be its master.
        if is_later and asked.role == ofp.OFPCR_ROLE_MASTER:
            self.ahead(oxm.bridge_dpid(message.datapath.id), generation)
            return []
        if message.role != asked.role:
            if not is_later:
                return []
            connection.asked = _Wanted(ofp.OFPCR_ROLE_SLAVE, generation)
            return [self._request(connection)]
        if asked.role == ofp.OFPCR_ROLE_MASTER and asked.generation == generation and not connection.held:
            connection.held = True
            connection.datapath.owned = True
            self.gained(connection.datapath)
        return []

    def refused(self, message: Any) -> list[Outgoing] | None:
        """A switch has refused a message (Ryu's ``OFPErrorMsg``). None: it is not about roles."""
        connection = self._current(message.datapath)
        if message.type == ofp.OFPET_ROLE_REQUEST_FAILED and message.code == ofp.OFPRRFC_STALE:
            if connection is None:
                return []
            if connection.held:
                self._lose(connection)
            question = parser.OFPRoleRequest(connection.datapath, ofp.OFPCR_ROLE_NOCHANGE, 0)
            return [(connection.datapath, question)]
        if message.type == ofp.OFPET_BAD_REQUEST and message.code == ofp.OFPBRC_IS_SLAVE:
            # It has another master. Either the database will say so, or the role is requested again.
            if connection is not None and connection.held:
                self._lose(connection)
                connection.asked = None
            return []
        return None

    def _ask(self, connection: _Connection) -> list[Outgoing]:
        dpid = oxm.bridge_dpid(connection.datapath.id)
        generation = self._owned.get(dpid)
        if generation is not None:
            wanted = _Wanted(ofp.OFPCR_ROLE_MASTER, generation)
        else:
            wanted = _Wanted(ofp.OFPCR_ROLE_SLAVE, self._known.get(dpid, 0))
            if connection.held:
                self._lose(connection)
        before = connection.asked
        if before == wanted or (before is not None and before.role == wanted.role == ofp.OFPCR_ROLE_SLAVE):
            return []
        connection.asked = wanted
        return [self._request(connection)]

    @staticmethod
    def _request(connection: _Connection) -> Outgoing:
        assert connection.asked is not None
        return connection.datapath, parser.OFPRoleRequest(connection.datapath, *connection.asked)

    def _lose(self, connection: _Connection, why: str = "it is another controller's from now on") -> None:
        connection.held = False
        connection.datapath.owned = False
        self.lost(connection.datapath, why)

    def _current(self, datapath: Any) -> _Connection | None:
        found = self._connections.get(datapath.id)
        return found if found is not None and found.datapath is datapath else None
