"""Stand-ins that several unit tests share: a datapath without eBPF, and Ryu's codec without a socket."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ryu.ofproto import ofproto_parser
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto.ofproto_protocol import ProtocolDesc

from fairq_ryu.agent import layout
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.queue import QueueState
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.rule_table import PortOrFlow
from fairq_ryu.agent.turn_queue import TurnCounts
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.channel.description import ALL, Capability
from fairq_ryu.channel.flow_changes import ChangeRequest, Changes, Chunk, ChunkFlags
from fairq_ryu.channel.flow_priorities import FlowPriority
from fairq_ryu.channel.flow_records import FlowRecord, encode_reply
from fairq_ryu.channel.hidden_queue import HiddenQueue
from fairq_ryu.channel.segment_copies import SegmentMatch
from fairq_ryu.channel.tenants import SetTenants, TenantState
from fairq_ryu.model import Congestion, FlowInfo, FlowKey, SegmentState, Thresholds, WindowRule
from fairq_ryu.openflow.barriers import Barriers
from fairq_ryu.ryu_compat import cached_matches, controller_actions, experimenter_multipart

# As the controller does.
cached_matches.register()
controller_actions.register()
experimenter_multipart.register()

DATAPATH: Any = ProtocolDesc(ofp.OFP_VERSION)
EMPTY_QUEUE = QueueState(backlog=0, peak=0, drops=0, byte_ns=0, packets=0, bytes=0, clock_ns=1)


def info(key: FlowKey, mss: int = 1460, step: int = 1) -> FlowInfo:
    """A flow as policies get it."""
    return FlowInfo(key, mss, step, key.src)


def wire(message: Any, xid: int = 1) -> bytes:
    """A Ryu message as it goes over the wire."""
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def ryu_decode(data: bytes) -> Any:
    """One whole message, decoded by Ryu's parser as in a controller."""
    version, kind, length, xid = ofproto_parser.header(data)
    assert length == len(data)
    return ofproto_parser.msg(DATAPATH, version, kind, length, xid, data)


def split(stream: bytes) -> list[bytes]:
    """A byte stream cut into its messages."""
    found = []
    while stream:
        length = ofproto_parser.header(stream)[2]
        found.append(stream[:length])
        stream = stream[length:]
    return found


def bridge_port(number: int) -> BridgePort:
    """A port that is up, at 1 Gbit/s."""
    return BridgePort(
        ofport=number,
        name=f"s1-eth{number}",
        ifindex=100 + number,
        mac=f"02:00:00:00:00:{number:02x}",
        link_up=True,
        admin_up=True,
        speed=1_000_000_000,
    )


class FakeSwitch(ProtocolDesc):
    """A Ryu datapath without a connection: it records the messages that are sent. Switches that share a
    ``log`` show the order in which they were sent.
    """

    def __init__(self, dpid: int, log: list[tuple[int, Any]] | None = None) -> None:
        super().__init__(ofp.OFP_VERSION)
        self.id = dpid
        self.log: list[tuple[int, Any]] = [] if log is None else log
        self.packets: list[bytes] = []
        self.ports: dict[int, Any] = {}
        self._xid = 0
        self.closed = False  # by this end

    def set_xid(self, message: Any) -> None:
        self._xid += 1
        message.set_xid(self._xid)

    def send_msg(self, message: Any, close_socket: bool = False) -> None:
        """The message is encoded, as on a real connection."""
        self.closed |= close_socket
        if message.xid is None:
            self.set_xid(message)
        message.serialize()
        self.log.append((self.id, message))

    def send(self, data: bytes) -> None:
        self.packets.append(data)

    def close(self) -> None:
        self.closed = True

    @property
    def sent(self) -> list[Any]:
        return [message for dpid, message in self.log if dpid == self.id]

    def answer_barriers(self, barriers: Barriers) -> None:
        """Reply to all barriers that were sent to the switch."""
        for message in self.sent:
            if type(message).__name__ == "OFPBarrierRequest":
                barriers.answered((self.id, message.xid))


class FakeDatapath:
    """Records the rules that the table installs; the test sets queues and counters."""

    def __init__(self, *numbers: int) -> None:
        self._ports = {number: bridge_port(number) for number in numbers}
        self.installed: dict[PortOrFlow, tuple[WindowRule, int, int]] = {}
        self.counted: dict[int, tuple[int, int]] = {}
        self.writes = 0
        self.failure: Exception | None = None
        self.queues: dict[int, QueueState] = {}
        self.limits: dict[int, QueueLimits] = {}
        self.active: dict[int, int] = {}
        self.peaks_restarted = 0
        self.records: list[FlowRecord] = []
        self.thresholds: dict[int, Thresholds] = {}
        self.congested: dict[int, Congestion] = {}
        self.reports_drops = True
        self.segments: dict[FlowKey, SegmentState] = {}
        self.flows_asked: list[tuple[int, list[int]]] = []
        self.changes = Changes(Chunk(0, ChunkFlags(0), 0, 1000, 0, 0, 0), b"", b"")
        self.changes_asked: list[ChangeRequest] = []
        self.laws: dict[int, tuple[int, Any, int]] = {}
        self.law_states: dict[int, Any] = {}
        self.queue_laws: dict[int, tuple[int, Any, int]] = {}
        self.queue_law_states: dict[int, Any] = {}
        self.tenants: list[tuple[SetTenants, int]] = []
        self.priorities: list[list[FlowPriority]] = []
        self.tenant_states_: list[TenantState] = []
        self.frames: list[tuple[int, bytes]] = []  # sent, with their ports
        self.full: set[int] = set()  # ports that take no frame
        self.turns: dict[int, TurnCounts] = {}
        self.deadlines: list[tuple[FlowKey, int | None, int]] = []  # set, and when
        self.copies: dict[SegmentMatch, int] = {}  # rules for copies: until when
        self.copies_counted: dict[SegmentMatch, tuple[int, int]] = {}
        self.observed: frozenset[int] = frozenset()
        self.window_counted: dict[int, tuple[int, int, int]] = {}
        self.untagged: dict[int, int] = {}  # VLANs of frames without a tag, by port

    @property
    def ports(self) -> dict[int, BridgePort]:
        return self._ports

    @property
    def capabilities(self) -> Capability:
        return ALL if self.reports_drops else ALL & ~Capability.DROP_REPORTS

    def has_port(self, port: int) -> bool:
        return port in self._ports

    def install_rule(self, target: PortOrFlow, window: WindowRule, expires_ns: int, slot: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.writes += 1
        self.installed[target] = (window, expires_ns, slot)

    def remove_rule(self, target: PortOrFlow) -> None:
        self.writes += 1
        del self.installed[target]

    def install_copies(self, rule: SegmentMatch, expires_ns: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.writes += 1
        self.copies[rule] = expires_ns

    def remove_copies(self, rule: SegmentMatch) -> None:
        self.writes += 1
        del self.copies[rule]

    def copy_counts(self, rule: SegmentMatch) -> tuple[int, int]:
        return self.copies_counted.get(rule, (0, 0))

    def reset_copy_counts(self, rule: SegmentMatch) -> None:
        self.copies_counted[rule] = (0, 0)

    def install_law(self, port: int, law_id: int, law: Any, expires_ns: int) -> None:
        self.laws[port] = (law_id, law, expires_ns)

    def remove_law(self, port: int) -> None:
        self.laws.pop(port, None)

    def law_state(self, port: int) -> Any | None:
        return self.law_states.get(port)

    def install_queue_law(self, port: int, law_id: int, law: Any, expires_ns: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.queue_laws[port] = (law_id, law, expires_ns)

    def remove_queue_law(self, port: int) -> None:
        self.queue_laws.pop(port, None)

    def queue_law_state(self, port: int) -> Any | None:
        return self.queue_law_states.get(port)

    def queue_law_counts(self, port: int) -> Any:
        state = self.queue_law_states.get(port)
        return layout.fq_queue_law_counts() if state is None else state.counts

    def turn_counts(self, port: int) -> TurnCounts:
        return self.turns.get(port, TurnCounts())

    def limits_of(self, port: int) -> QueueLimits:
        return self.queue_limits(self._ports[port])

    def counters(self, slot: int) -> tuple[int, int]:
        return self.counted.get(slot, (0, 0))

    def reset_counters(self, slot: int) -> None:
        self.counted[slot] = (0, 0)

    def queue(self, port: BridgePort) -> QueueState:
        return self.queues.get(port.ofport, EMPTY_QUEUE)

    def hidden_queue(self, port: BridgePort) -> HiddenQueue:
        return HiddenQueue(port.ofport, 0, 0, 0, 0, 0, 0, 0, 0)

    def queue_limits(self, port: BridgePort) -> QueueLimits:
        return self.limits.get(port.ofport, QueueLimits("netem", 125_000, 25_000_000))

    def active_flows(self, port: BridgePort) -> int:
        return self.active.get(port.ofport, 0)

    def restart_peaks(self) -> None:
        """The peaks restart from the current backlogs, as in the eBPF program."""
        self.peaks_restarted += 1
        self.queues = {n: q._replace(peak=q.backlog) for n, q in self.queues.items()}

    def flow_records(self, idle_ms: int, ports: list[BridgePort]) -> list[bytes]:
        self.flows_asked.append((idle_ms, [port.ofport for port in ports]))
        return [encode_reply([record]) for record in self.records]

    def flow_changes(self, wanted: ChangeRequest) -> Changes:
        self.changes_asked.append(wanted)
        return self.changes

    def segment_state(self, key: FlowKey) -> SegmentState:
        return self.segments.get(key, SegmentState(key, False))

    def send_frame(self, port: int, frame: bytes) -> bool:
        if port in self.full or port not in self._ports:
            return False
        self.frames.append((port, frame))
        if port in self.queues:
            queue = self.queues[port]
            self.queues[port] = queue._replace(backlog=queue.backlog + len(frame))
        return True

    def untagged_vlan(self, port: int) -> int:
        return self.untagged.get(port, 0)

    def set_deadline(self, flow: FlowKey, deadline_ns: int | None, now_ns: int) -> None:
        self.deadlines.append((flow, deadline_ns, now_ns))

    def set_priorities(self, wanted: Sequence[FlowPriority]) -> None:
        self.priorities.append(list(wanted))

    def set_tenants(self, wanted: SetTenants, now_ns: int) -> None:
        if self.failure is not None:
            raise self.failure
        self.tenants.append((wanted, now_ns))

    def tenant_states(self, port: int) -> list[TenantState]:
        return [state for state in self.tenant_states_ if state.port == port]

    def observe(self, port: int, observed: bool) -> None:
        if self.failure is not None:
            raise self.failure
        self.observed = self.observed | {port} if observed else self.observed - {port}

    def window_counts(self, port: int) -> tuple[int, int, int]:
        return self.window_counted.get(port, (0, 0, 0))

    def set_thresholds(self, ofport: int, thresholds: Thresholds | None) -> None:
        if thresholds is None:
            self.thresholds.pop(ofport, None)
            return
        if self.failure is not None:
            raise self.failure
        self.thresholds[ofport] = thresholds

    def congestion(self, ofport: int) -> CongestionNotice:
        state = self.congested.get(ofport, Congestion.NOM)
        return CongestionNotice(ofport, state, self.queue(self._ports[ofport]).backlog, 99)
