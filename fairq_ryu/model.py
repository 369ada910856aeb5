"""The types that every layer uses: flows, ports, queue samples and window plans.

Nothing here does I/O or imports OpenFlow. Addresses are text (``10.0.0.1``, ``fe80::1``), windows
and queues are bytes, rates bytes per second, times seconds.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import NamedTuple

from fairq_ryu.law_spec import LawSpec

# The hash of a flow's addresses and ports, which selects one of several paths. Bit i is the parity of bit i
# of both addresses and bit i + HASH_PORT_SHIFT of both ports: Linux gives clients every second port.
HASH_BITS = 4
HASH_PORT_SHIFT = 1

new_tuple = tuple.__new__
"""Makes a named tuple from a tuple of its fields, faster than a call of its class. It does not check their
number. For named tuples that are made tens of thousands of times a second."""

LARGEST_WINDOW = 65535 << 14
"""The largest window of TCP, bytes: 16 bits with the largest window scale (RFC 7323)."""


class FlowKey(NamedTuple):
    """One direction of a TCP connection: ``src`` sends the data. ``vlan`` 0: it is in no VLAN."""

    src: str
    dst: str
    sport: int
    dport: int
    vlan: int = 0

    @property
    def reversed(self) -> FlowKey:
        """The other direction: that of the ACKs of this data."""
        src, dst, sport, dport, vlan = self
        return new_tuple(FlowKey, (dst, src, dport, sport, vlan))

    @property
    def connection(self) -> FlowKey:
        """A key that is the same for both directions: the smaller of the two."""
        src, dst, sport, dport, _ = self
        return self if src < dst or (src == dst and sport <= dport) else self.reversed

    @property
    def version(self) -> int:
        """4 or 6."""
        return ipaddress.ip_address(self.src).version

    def __str__(self) -> str:
        where = f" (VLAN {self.vlan})" if self.vlan else ""
        if ":" in self.src:
            return f"[{self.src}]:{self.sport} -> [{self.dst}]:{self.dport}{where}"
        return f"{self.src}:{self.sport} -> {self.dst}:{self.dport}{where}"


class PortKey(NamedTuple):
    """A port of a bridge: ``dpid`` is the bridge's own (no marker), ``port`` its OpenFlow number."""

    dpid: int
    port: int

    def __str__(self) -> str:
        return f"{dpid_text(self.dpid)}:{self.port}"

    @property
    def short(self) -> str:
        """The port as events and tables for people write it: without leading zeros."""
        return f"{short_dpid(self.dpid)}:{self.port}"


class FlowPath(NamedTuple):
    """The path of a connection through the fabric.

    ``forward``: the ports through which segments of the first direction leave, switch by switch, ending with
    the receiver's host port; ``backward``: the same for the other direction, ending with the sender's host
    port.
    """

    forward: tuple[PortKey, ...]
    backward: tuple[PortKey, ...]

    @property
    def reversed(self) -> FlowPath:
        """The same for the other direction."""
        return FlowPath(self.backward, self.forward)


class TcpSegment(NamedTuple):
    """A copied TCP segment: its flow (``key.src`` sent it), flags, numbers and SYN options.

    ``wscale`` is None and ``mss`` is 0 without the option; only a SYN has them. ``payload``: bytes of data in
    a SYN (Fast Open, RFC 7413).
    """

    key: FlowKey
    seq: int
    ack_number: int
    syn: bool
    ack: bool
    fin: bool
    rst: bool
    mss: int = 0
    wscale: int | None = None
    payload: int = 0


class SegmentState(NamedTuple):
    """The last segment of one direction of a connection, as its switch has seen it; ``key.src`` is the
    sender.

    ``found`` is False if the switch does not know the direction or has seen no acknowledgement of it; then
    the other fields are not valid. ``port``: the OpenFlow port through which its segments leave;
    ``seq_next``: the sequence number behind all that it has sent (data, SYN, FIN); ``ack``: its last
    acknowledgement number; ``window``: the 16-bit window field that it sent with that number, before any
    switch lowered it, in units of ``1 << wscale``; ``passed``: that field as this switch has passed it on;
    ``wscale``: the window scale in force (0: the ends agreed on none; None: the handshake was not seen).
    ``tsval`` and ``tsecr``: its last timestamps (RFC 7323);
    ``has_timestamps`` None: its segments carry timestamps that the switch could not read, so nobody can
    create a segment in its name. ``is_signed``: its segments are signed (TCP-MD5, TCP-AO), so nobody else
    can either. ``idle_ms``: the time since its last segment; ``fin``: it has sent FIN;
    ``rst``: the connection was reset.
    """

    key: FlowKey
    found: bool
    port: int = 0
    seq_next: int = 0
    ack: int = 0
    window: int = 0
    wscale: int | None = None
    tsval: int = 0
    tsecr: int = 0
    has_timestamps: bool | None = False
    idle_ms: int = 0
    fin: bool = False
    rst: bool = False
    is_signed: bool = False
    passed: int = 0


class QueueSample(NamedTuple):
    """The queue of a port at one moment, as its switch reports it.

    ``backlog`` and ``peak`` (since the last sample), ``limit`` and ``mean`` (over the time since the last
    sample) in bytes; ``rate`` of the port in bytes per second (0: not known); ``drops`` in packets, by the
    queue's own count (use differences only); ``active``: the number of flows whose data left through the port
    recently and that have no rule of their own.
    """

    backlog: int
    peak: int
    limit: int
    rate: int
    drops: int
    active: int
    mean: float


class Congestion(StrEnum):
    """Whether a port's queue is congested: CNG from one threshold up, NOM from a lower one down."""

    NOM = "NOM"
    CNG = "CNG"


class Thresholds(NamedTuple):
    """The thresholds of a port's congestion: ``cng`` and ``nom`` are the queue lengths, bytes, at which it
    begins and ends (``nom < cng``); 0 and 0: never. ``drops``: packets that the queue drops are sent to the
    controller.
    """

    cng: int
    nom: int
    drops: bool = False


PRIORITY = 100
"""Of a flow within its tenant, if no other one is set."""
MOST_PRIORITY = 1000


class Announcement(NamedTuple):
    """An application's announcement of a flow: ``size`` in bytes (None: without end), ``deadline`` in seconds
    of the clock of ``now`` (None: none), ``priority`` within its tenant (None: not announced).
    """

    size: int | None
    deadline: float | None
    priority: int | None = None


class FlowProgress(NamedTuple):
    """The progress of a flow by the switch's count: ``acked``: bytes that its receiver has acknowledged;
    ``sent``: payload bytes that have left through the port, retransmissions included; ``rtt``: its round-trip
    time in seconds, measured in the handshake (0: not seen); ``established``: whether the handshake is
    complete.
    """

    acked: int
    sent: int
    rtt: float
    established: bool


@dataclass(frozen=True, slots=True)
class FlowInfo:
    """A flow as a policy sees it: one direction, on one port.

    ``mss``: the MSS that the receiver of the data announced, bytes; ``step``: the granularity of the window
    that it advertises (``1 << wscale`` bytes; 1 without scaling); ``owner``: the host, VM or tenant that
    sends (its address if nothing better is known); ``opener``: the port where the first SYN of the connection
    entered the network (None: not known).
    """

    key: FlowKey
    mss: int
    step: int
    owner: str
    opener: PortKey | None = None


class WindowKind(Enum):
    """How a switch uses the bytes of a rule. This is the only table of the kinds: a new kind of window is one
    entry here, its number in ``layout.h``, and one branch in the eBPF program's window rule.

    ``field`` names the OXM field that carries the bytes in a FlowMod, and ``oxm_number`` is its number;
    ``map_number`` stands for the kind in the eBPF maps (``FQ_RULE_...`` in ``layout.h``; 0: not there). A
    kind that is ``port_only`` cannot be set for a single flow. ``scope`` names a port's rule of this kind in
    REST (``window_kind``). Rules of a kind are in one flow ``table`` of the agent: a port may have one in
    each table.
    """

    WINDOW = "tcp_window", 1, 1, False, "port"
    POOL = "tcp_window_pool", 2, 2, True, "pool"
    LAW = "tcp_window_law", 3, 3, True, "law"
    QUEUE_LAW = "queue_law", 4, 0, True, "queue", 1

    def __init__(
        self, field: str, oxm_number: int, map_number: int, port_only: bool, scope: str, table: int = 0
    ) -> None:
        self.field = field
        self.oxm_number = oxm_number
        self.map_number = map_number
        self.port_only = port_only
        self.scope = scope
        self.table = table


@dataclass(frozen=True, slots=True)
class WindowRule:
    """What a switch does to the receive windows of a flow or of a port's flows, from policy to eBPF map.

    ``bytes`` is unscaled. WINDOW: each flow gets a window of this size; 0 pauses it. POOL: the active flows
    of the port share these bytes. LAW: the switch works the windows out by the law ``law``, and ``bytes`` is
    the law's number. QUEUE_LAW: ``bytes`` is the number of the queue law that judges each packet of a port;
    such a rule is no part of a :class:`WindowPlan`.
    """

    kind: WindowKind
    bytes: int
    law: LawSpec | None = None


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The windows that should be installed for one port; rules that it does not contain are removed.

    ``pool``: bytes shared by the port's active flows; ``window``: one window for each of them; ``rule``: a
    rule of any kind for the port (at most one of the three; a pool or window given so is the same plan);
    ``flows``: a window for single flows, by the direction of their data (0 pauses the flow). All in bytes,
    unscaled. Raises ValueError if a size is not a whole number of bytes or if the port has more than one
    rule.
    """

    pool: int | None = None
    window: int | None = None
    flows: Mapping[FlowKey, int] = field(default_factory=dict)
    rule: WindowRule | None = None

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.pool, self.window, self.rule)) > 1:
            raise ValueError("a plan has at most one rule for the port: a pool, a window or a rule")
        for size in (self.pool, self.window, self.rule and self.rule.bytes, *self.flows.values()):
            # Checked here, in the policy that made it: such a size cannot be sent to a switch.
            if size is not None and (not isinstance(size, int) or size < 0):
                raise ValueError(f"a window is a whole number of bytes, not {size}")
        if self.rule is not None and self.rule.kind is WindowKind.POOL:
            object.__setattr__(self, "pool", self.rule.bytes)
            object.__setattr__(self, "rule", None)
        elif self.rule is not None and self.rule.kind is WindowKind.WINDOW:
            object.__setattr__(self, "window", self.rule.bytes)
            object.__setattr__(self, "rule", None)

    def __bool__(self) -> bool:
        return self.port_rule is not None or bool(self.flows)

    @property
    def port_rule(self) -> WindowRule | None:
        """The rule for all flows of the port."""
        if self.pool is not None:
            return WindowRule(WindowKind.POOL, self.pool)
        if self.window is not None:
            return WindowRule(WindowKind.WINDOW, self.window)
        return self.rule

    @property
    def rules(self) -> dict[FlowKey | None, WindowRule]:
        """All rules of the plan, by flow; None stands for the rule of the port and comes last."""
        found: dict[FlowKey | None, WindowRule] = {
            flow: WindowRule(WindowKind.WINDOW, size) for flow, size in self.flows.items()
        }
        port_rule = self.port_rule
        if port_rule is not None:
            found[None] = port_rule
        return found


NO_WINDOWS = WindowPlan()


class RuleTarget(NamedTuple):
    """The flows that a rule is for: one flow (by its data's direction) or all flows of a port (None)."""

    port: PortKey
    flow: FlowKey | None


class RuleChange(NamedTuple):
    """A rule to install or renew; ``rule`` None removes the rule. ``wake``: the flow was paused and no longer
    is; its sender needs a window update, because otherwise it waits for its persist timer.
    """

    target: RuleTarget
    rule: WindowRule | None
    wake: bool = False


class PortMode(StrEnum):
    """What is done on a port. ``ACT``: windows are lowered. ``OBSERVE``: they are worked out, and the ACKs
    that would be lowered are counted, but nothing is written. ``DISABLED``: the port has no windows at all.
    """

    ACT = "act"
    OBSERVE = "observe"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True)
class Service:
    """The configured size and deadline of a service's flows: ``port`` is the server's TCP port (0: any),
    ``host`` its address ("": any); the data goes to the client, or ``to_server``. ``size`` in bytes (None:
    not known); ``deadline`` in seconds after the flow's start (None: none).
    """

    name: str
    port: int = 0
    host: str = ""
    size: int | None = None
    deadline: float | None = None
    to_server: bool = False

    def covers(self, flow: FlowKey) -> bool:
        """Whether this direction of a connection carries the service's data."""
        host, port = (flow.dst, flow.dport) if self.to_server else (flow.src, flow.sport)
        return self.port in (0, port) and self.host in ("", host)

    def announcement(self, start: float) -> Announcement:
        """The announcement for a flow that started at ``start``, seconds of the clock of ``now``."""
        return Announcement(self.size, None if self.deadline is None else start + self.deadline)


def dpid_text(dpid: int) -> str:
    """A datapath id as REST, metrics and logs write it: 16 hexadecimal digits."""
    return f"{dpid:016x}"


def short_dpid(dpid: int) -> str:
    """A datapath id as events and tables for people write it: hexadecimal, without leading zeros."""
    return f"{dpid:x}"
