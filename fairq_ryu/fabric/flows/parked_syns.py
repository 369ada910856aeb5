"""SYNs of ports that have too many half-open connections: kept small until they are answered.

Each entry of the flow table that waits for a SYN-ACK costs as much as a connection, at every port of its
path. A port through which more SYNs enter than are answered gets no more of them; its further SYNs are parked
here, and become entries when their SYN-ACKs arrive. So a flood of SYNs costs bounded memory and little time,
and connections from the same port are counted one round trip later. The newest SYNs of each port are kept:
real answers come within a round trip.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from fairq_ryu.fabric.flows.connection import CopiedSegment
from fairq_ryu.model import FlowKey, PortKey, TcpSegment

MAX_PER_PORT = 4096
# The maximum number of ports with parked SYNs: all are searched for the SYN of an answer.
MAX_PORTS = 64


class _Syn(NamedTuple):
    seq: int
    mss: int
    wscale: int | None
    payload: int
    at: float


class ParkedSyns:
    """The parked SYNs of all ports. Times in seconds."""

    def __init__(self) -> None:
        # By the port where it entered the network, and the port of its copy if that is another one.
        self._by_port: dict[tuple[PortKey | None, PortKey | None], OrderedDict[FlowKey, _Syn]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_port.values()))

    def park(
        self, segment: TcpSegment, port: PortKey | None, now: float, out_port: PortKey | None = None
    ) -> None:
        """Park a SYN that has entered the network through a port, or was copied where it left a switch by
        ``out_port``.
        """
        where = port, out_port
        syns = self._by_port.get(where)
        if syns is None:
            if len(self._by_port) >= MAX_PORTS:
                return
            syns = self._by_port[where] = OrderedDict()
        syns.pop(segment.key, None)
        if len(syns) >= MAX_PER_PORT:
            syns.popitem(last=False)
        syns[segment.key] = _Syn(segment.seq, segment.mss, segment.wscale, segment.payload, now)

    def take(self, key: FlowKey) -> CopiedSegment | None:
        """Remove and return the parked SYN of a direction."""
        for (port, out_port), syns in self._by_port.items():
            syn = syns.pop(key, None)
            if syn is not None:
                return CopiedSegment(_segment(key, syn), port, None, out_port)
        return None

    def expire(self, before: float) -> None:
        """Remove the SYNs that came before this time."""
        for where, syns in list(self._by_port.items()):
            while syns and next(iter(syns.values())).at < before:
                syns.popitem(last=False)
            if not syns:
                del self._by_port[where]


def _segment(key: FlowKey, syn: _Syn) -> TcpSegment:
    return TcpSegment(
        key=key,
        seq=syn.seq,
        ack_number=0,
        syn=True,
        ack=False,
        fin=False,
        rst=False,
        mss=syn.mss,
        wscale=syn.wscale,
        payload=syn.payload,
    )
