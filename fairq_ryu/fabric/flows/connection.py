"""A TCP connection as the flow table knows it, and what is told of one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fairq_ryu.model import FlowInfo, FlowKey, FlowPath, PortKey, TcpSegment

DEFAULT_MSS = 1460
_NEVER = -math.inf
_HALF = 1 << 31


class FlowState(StrEnum):
    """How far a connection is (both sides together; RFC 9293 section 3.3.2 in short)."""

    SYN_SEEN = "syn-seen"
    ESTABLISHED = "established"
    HALF_CLOSED = "half-closed"
    CLOSED = "closed"


class SeenFlow(NamedTuple):
    """One direction of a flow as a switch records it.

    ``port`` is where its last segment left, ``closed`` whether FIN or RST has passed (it stays so, whatever
    follows), ``idle`` the time since its last segment in seconds, ``bytes`` its payload; ``wscale`` and
    ``mss`` are what its sender announced (None and 0: not seen); ``rtt`` is the connection's round-trip time
    in seconds (0: not seen), ``rewritten`` the number of its segments whose window was lowered.
    """

    key: FlowKey
    port: PortKey
    closed: bool
    idle: float
    bytes: int
    wscale: int | None
    mss: int
    rtt: float = 0.0
    rewritten: int = 0


class FlowEvent(NamedTuple):
    """A direction of a connection starts or stops leaving by a port."""

    started: bool
    port: PortKey
    flow: FlowInfo


class Arrival(NamedTuple):
    """A segment as it was copied: the port it came in by, and its direction's path if that was known."""

    segment: TcpSegment
    in_port: PortKey
    path: FlowPath | None


@dataclass(slots=True)
class Direction:
    """One direction: what its sender announced and sent, and where its data leaves.

    ``ports`` is where it is counted: at most one port of each switch, in the order of the path where that
    is known. ``hops`` is where it should be by what segments and the controller say: the whole path, the
    receiver's port alone, or nothing. Times are in seconds.
    """

    isn: int | None = None
    wscale: int | None = None
    mss: int = 0
    bytes: int = 0
    # Of its segments, the window was lowered in so many; None: no switch has told.
    rewritten: int | None = None
    # FIN was seen (the last time), or, unless it was, either side has reset the connection.
    closed: bool = False
    closed_at: float = _NEVER
    reset: bool = False
    # No copy has said so, but the switches: it may have been either.
    told: bool = False
    # When a switch has seen it alive after a reset; the switches that have called it open since, and those
    # that went on calling it closed, as that reset made them.
    revived_at: float = _NEVER
    cleared: frozenset[int] = frozenset()
    mistaken: frozenset[int] = frozenset()
    # The switches on its way that say it has ended.
    ended_by: frozenset[int] = frozenset()
    hops: tuple[PortKey, ...] = ()
    ports: tuple[PortKey, ...] = ()
    # The last segment that any switch has told of.
    moved_at: float = _NEVER
    # When a rule of its own was last said to have ended in silence.
    silent_at: float = _NEVER

    @property
    def edge(self) -> int | None:
        """The receiver's switch, if it is known."""
        return self.hops[-1].dpid if self.hops else None

    def announce(self, syn: TcpSegment) -> None:
        """Its SYN or SYN-ACK was seen."""
        self.isn, self.wscale, self.mss = syn.seq, syn.wscale, syn.mss


@dataclass(slots=True)
class Connection:
    """A connection; ``forward`` is the direction of the first SYN (or of the record that told of it).

    ``since`` is when it was first seen and ``last_seen`` its last sign of life, seconds; ``path`` the way
    for ``forward``, None if it is not known as a whole.
    """

    forward: FlowKey
    state: FlowState
    since: float
    last_seen: float
    directions: dict[FlowKey, Direction]
    path: FlowPath | None = None
    # Round-trip time as the handshake showed it, seconds; None: not known.
    rtt: float | None = None
    # When the path was set, or was known to hold no longer: where segments were seen before that, and
    # shortly after, tells nothing.
    path_since: float = _NEVER
    # The last SYN or SYN-ACK of it that was copied.
    heard_at: float = _NEVER
    # When a switch last listed it.
    listed_at: float = _NEVER
    # These ports had a connection before, of which late segments may still come.
    again: bool = False
    # Where its first SYN came into the network; None if that was not seen.
    opener: PortKey | None = None
    # Another SYN, and where it came from: the connection counts until that SYN is answered (RFC 5961).
    pending: Arrival | None = None

    @classmethod
    def new(cls, forward: FlowKey, state: FlowState, since: float, last_seen: float) -> Connection:
        """A connection of which nothing is known but its direction."""
        return cls(forward, state, since, last_seen, {forward: Direction(), forward.reversed: Direction()})

    @property
    def counted(self) -> bool:
        """Is any of its directions counted on a port?"""
        return any(direction.ports for direction in self.directions.values())

    def path_for(self, flow: FlowKey) -> FlowPath | None:
        """The path, as the direction ``flow`` sees it."""
        return self.path if self.path is None or flow == self.forward else self.path.reversed

    def info(self, flow: FlowKey) -> FlowInfo:
        """What a policy is told of a direction: the sender may send what the receiver announced."""
        receiver = self.directions[flow.reversed]
        step = 1 << (receiver.wscale or 0)
        return FlowInfo(flow, receiver.mss or DEFAULT_MSS, step, flow.src, self.opener)


def answers(segment: TcpSegment, isn: int) -> bool:
    """Does the segment acknowledge the SYN with that number, and nothing else?"""
    return segment.ack_number == (isn + 1) & 0xFFFFFFFF


def is_after(number: int, other: int) -> bool:
    """Is a sequence number later than another (RFC 9293 section 3.4)? They wrap."""
    return 0 < (number - other) & 0xFFFFFFFF < _HALF
