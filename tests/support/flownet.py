"""Shared by the tests of the flow table: two networks, segments, records, and the replay of events."""

from __future__ import annotations

from collections.abc import Iterable

from fairq_ryu.fabric.flows.reconcile import GRACE, PHASES, leave_unlisted
from fairq_ryu.fabric.flows.switch_reports import REMOVED_PER_SLICE
from fairq_ryu.fabric.flows.table import Connection, FlowEvent, FlowState, FlowTable, SeenFlow
from fairq_ryu.model import FlowKey, FlowPath, PortKey, TcpSegment

KEY = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)
BACK = KEY.reversed
ISN, PEER_ISN = 100, 900
IDLE = 60.0

# One switch: the client is behind A, the server behind B. Data of KEY leaves by B, that of the answer by A.
A, B, C = PortKey(1, 1), PortKey(1, 2), PortKey(1, 3)
LOCAL = FlowPath((B,), (A,))

# Two leaves and two spines: the client is behind leaf 1, the server behind leaf 2. A leaf's port n leads to
# spine n, and a spine's port n to leaf n.
CLIENT, SERVER = PortKey(1, 1), PortKey(2, 1)


def over(spine: int) -> FlowPath:
    """The path from client to server over a spine."""
    return FlowPath(
        (PortKey(1, spine), PortKey(spine, 2), SERVER), (PortKey(2, spine), PortKey(spine, 1), CLIENT)
    )


OVER3, OVER4 = over(3), over(4)

Placed = set[tuple[PortKey, FlowKey]]


def segment(
    key: FlowKey,
    flags: str,
    seq: int = 0,
    ack: int = 0,
    mss: int = 0,
    wscale: int | None = None,
    payload: int = 0,
) -> TcpSegment:
    """``flags`` of S, A, F and R."""
    bits = ("S" in flags, "A" in flags, "F" in flags, "R" in flags)
    return TcpSegment(key, seq, ack, *bits, mss, wscale, payload)


def record(key: FlowKey, port: PortKey, **more) -> SeenFlow:
    """A switch's record of a direction; by default it has just progressed."""
    values = {"closed": False, "idle": 0.0, "bytes": 0, "wscale": 7, "mss": 1460}
    return SeenFlow(key=key, port=port, **(values | more))


def placed(table: Iterable[Connection]) -> Placed:
    """The directions that the table counts."""
    return {
        (port, flow)
        for connection in table
        for flow, direction in connection.directions.items()
        for port in direction.ports
    }


def on(path: FlowPath, *keys: FlowKey) -> Placed:
    """The counted ports when these directions (of one connection, by default KEY's) take a path."""
    keys = keys or (KEY, BACK)
    return {(p, k) for k in keys for p in (path.forward if to_server(k) else path.backward)}


def to_server(key: FlowKey) -> bool:
    """Whether it is the direction from a client to the server."""
    return key.dport == KEY.dport


def reconcile(table: FlowTable, dpid: int, seen: Iterable[SeenFlow], now: float) -> list[FlowEvent]:
    """A switch lists all its flows: the rules of records, without the order and the pace of changes, which
    must come to the same.
    """
    entries = table._entries
    entries.reporting_switches.add(dpid)
    records = [each for each in seen if each.idle <= table.idle_timeout]
    events = [event for phase in PHASES for each in records for event in phase(entries, each, now)]
    events += [event for left in leave_unlisted(entries, dpid, now, now - GRACE) for event in left]
    return events + entries.drop_expired(now, REMOVED_PER_SLICE)[1]


class Ports:
    """The set of flows of each port, from replayed events. No flow starts twice or ends without a start."""

    def __init__(self) -> None:
        self.counted: Placed = set()

    def replay(self, events: list[FlowEvent]) -> list[tuple[bool, PortKey, FlowKey]]:
        for event in events:
            place = event.port, event.flow.key
            assert (place in self.counted) != event.started, event
            (self.counted.add if event.started else self.counted.remove)(place)
        return [(event.started, event.port, event.flow.key) for event in events]


class Net:
    """A flow table whose events are replayed, and compared with the state of the table."""

    def __init__(self, path: FlowPath | None = LOCAL, **options) -> None:
        self.table = FlowTable(IDLE, **options)
        self.path = path
        self.ports = Ports()

    def replay(self, events: list[FlowEvent]) -> list[tuple[bool, PortKey, FlowKey]]:
        found = self.ports.replay(events)
        assert placed(self.table) == self.ports.counted
        return found

    def send(self, flags: str, key: FlowKey = KEY, now: float = 0.0, path=..., **numbers):
        """A segment is copied where its sender is, by ``path`` (for KEY) or the network's."""
        path = self.path if path is ... else path
        towards = path if to_server(key) else path.reversed
        return self.replay(
            self.table.segment(segment(key, flags, **numbers), towards.backward[-1], towards, now)
        )

    def open(self, now: float = 0.0, isn: int = ISN, peer_isn: int = PEER_ISN, key: FlowKey = KEY) -> None:
        self.send("S", key, seq=isn, now=now)
        self.send("SA", key.reversed, seq=peer_isn, ack=isn + 1, now=now)

    def fin(self, key: FlowKey = KEY, now: float = 0.0, seq: int | None = None):
        """A FIN of the connection that open() opens."""
        if seq is None:
            seq = (ISN if to_server(key) else PEER_ISN) + 1
        return self.send("FA", key, now, seq=seq)

    def close(self, now: float = 0.0) -> None:
        self.fin(KEY, now)
        self.fin(BACK, now)

    def reconcile(self, *seen: SeenFlow, now: float, dpid: int = 1):
        return self.replay(reconcile(self.table, dpid, seen, now))

    def tell(self, path: FlowPath, now: float, dpids: Iterable[int] = (), **more):
        """The switches of a path (or some of them) report both directions, in turn."""
        events = []
        for dpid in dpids or {port.dpid: None for port in path.forward}:
            seen = [record(KEY, port, **more) for port in path.forward if port.dpid == dpid]
            seen += [record(BACK, port, **more) for port in path.backward if port.dpid == dpid]
            events += self.reconcile(*seen, now=now, dpid=dpid)
        return events

    @property
    def entry(self) -> Connection:
        connection = self.table.get(KEY)
        assert connection is not None
        return connection

    @property
    def state(self) -> FlowState | None:
        connection = self.table.get(KEY)
        return connection.state if connection else None

    @property
    def counted(self) -> Placed:
        return self.ports.counted
