"""A TCP connection in the flow table, and the inputs about it: copied segments and flow records."""

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
    """The state of a connection, of both sides together (a summary of those in RFC 9293, section 3.3.2)."""

    SYN_SEEN = "syn-seen"
    ESTABLISHED = "established"
    HALF_CLOSED = "half-closed"
    CLOSED = "closed"


class SeenFlow(NamedTuple):
    """A switch's record of one direction of a connection.

    ``port``: the port through which its last segment left; ``closed``: FIN or RST has passed (a new
    handshake, or data behind its end, clears this flag); ``idle``: the time since its last segment, seconds;
    ``bytes``: its payload; ``wscale`` and ``mss``: the options of its sender's SYN (None and 0: not seen);
    ``rtt``: the connection's round-trip time, seconds (0: not seen); ``rewritten``: the number of its
    segments whose window was lowered.
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
    """A direction of a connection starts or stops being counted at a port, through which its data leaves."""

    started: bool
    port: PortKey
    flow: FlowInfo


class CopiedSegment(NamedTuple):
    """A copied segment, the port through which it entered the network, and the path of its direction. Of one
    that was copied where it left a switch, only that port is known: ``out_port``. None: not known.
    """

    segment: TcpSegment
    in_port: PortKey | None
    path: FlowPath | None
    out_port: PortKey | None = None


@dataclass(slots=True)
class Direction:
    """One direction of a connection: the options and the traffic of its sender, and the ports of its data.

    ``ports``: the ports at which it is counted, at most one for each switch, in the order of the path if that
    is known. ``hops``: the ports that the copied segments and the controller imply: the whole path, the
    receiver's port only, or nothing. Times in seconds.
    """

    isn: int | None = None
    wscale: int | None = None
    mss: int = 0
    # Bytes of data in its SYN.
    carried: int = 0
    bytes: int = 0
    # The number of its segments whose window was lowered; None: no switch has reported it.
    rewritten: int | None = None
    # Its FIN was seen, or either side has reset the connection. ``closed_at``: when that was last seen.
    closed: bool = False
    closed_at: float = _NEVER
    reset: bool = False
    # Its end is known from records only, which do not distinguish FIN from RST.
    ended_by_record: bool = False
    # When a switch reported segments of it after a reset; the switches that have reported it open since; and
    # those whose records are still closed, because that reset has set the flag.
    revived_at: float = _NEVER
    reported_open: frozenset[int] = frozenset()
    stale_closed: frozenset[int] = frozenset()
    # The switches on its path that report its end.
    ended_by: frozenset[int] = frozenset()
    hops: tuple[PortKey, ...] = ()
    ports: tuple[PortKey, ...] = ()
    # The time of its last segment in the records of all switches.
    moved_at: float = _NEVER
    # When a switch last reported that a rule of this direction has expired.
    silent_at: float = _NEVER

    @property
    def edge(self) -> int | None:
        """The dpid of the receiver's switch; None: not known."""
        return self.hops[-1].dpid if self.hops else None

    def announce(self, syn: TcpSegment) -> None:
        """Store the options of its SYN or SYN-ACK."""
        self.isn, self.wscale, self.mss, self.carried = syn.seq, syn.wscale, syn.mss, syn.payload


@dataclass(slots=True)
class Connection:
    """A connection; ``forward`` is the direction of the first SYN (or of the first record of it).

    ``since``: when it was first seen; ``last_seen``: when its last segment was seen, seconds; ``path``: the
    path of ``forward``; None if not all of it is known.
    """

    forward: FlowKey
    state: FlowState
    since: float
    last_seen: float
    directions: dict[FlowKey, Direction]
    path: FlowPath | None = None
    # Round-trip time measured in the handshake, seconds; None: not known.
    rtt: float | None = None
    # When the path was set or became invalid. Records of segments from before that time, or shortly after
    # it, do not contradict the path.
    path_since: float = _NEVER
    # When its last SYN or SYN-ACK was copied.
    copied_at: float = _NEVER
    # When a record of a switch last contained it.
    listed_at: float = _NEVER
    # An earlier connection had the same addresses and ports; late segments of it may still arrive.
    ports_reused: bool = False
    # The port through which its first SYN entered the network; None: not seen.
    opener: PortKey | None = None
    # Another SYN of the same direction. The connection stays counted until this SYN is answered (RFC 5961).
    pending: CopiedSegment | None = None

    @classmethod
    def new(cls, forward: FlowKey, state: FlowState, since: float, last_seen: float) -> Connection:
        """A connection of which only the direction is known."""
        return cls(forward, state, since, last_seen, {forward: Direction(), forward.reversed: Direction()})

    @property
    def counted(self) -> bool:
        """Whether one of its directions is counted at a port."""
        return any(direction.ports for direction in self.directions.values())

    def path_for(self, flow: FlowKey) -> FlowPath | None:
        """The path for the direction ``flow``."""
        return self.path if self.path is None or flow == self.forward else self.path.reversed

    def info(self, flow: FlowKey) -> FlowInfo:
        """The data of a direction for policies. MSS and window scale are those of its receiver, which limit
        the sender.
        """
        receiver = self.directions[flow.reversed]
        step = 1 << (receiver.wscale or 0)
        return FlowInfo(flow, receiver.mss or DEFAULT_MSS, step, flow.src, self.opener)


def answers(segment: TcpSegment, isn: int, carried: int = 0) -> bool:
    """Whether the segment acknowledges the SYN with the sequence number ``isn``, and at most the data in that
    SYN (``carried`` bytes; Fast Open, RFC 7413).
    """
    return (segment.ack_number - isn - 1) & 0xFFFFFFFF <= carried


def is_after(number: int, other: int) -> bool:
    """Whether a sequence number is later than another, modulo 2 ** 32 (RFC 9293, section 3.4)."""
    return 0 < (number - other) & 0xFFFFFFFF < _HALF
