"""A simulated agent: the agent's own modules around ports that exist in memory only.

Messages are decoded, checked and answered, and rules, laws and leases are kept, by the modules that
``fairq agent`` uses. Simulated are the queues, the flows and the eBPF maps.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.simulated_bridge import bridge_port
from bench.simulated_flows import PORT_BYTES, Flows
from bench.simulated_map import SimulatedMap
from fairq_ryu.agent import layout
from fairq_ryu.agent.flow_changes import FlowChanges
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.flow_map import KEY_WIDTH, FlowMap
from fairq_ryu.agent.programs.flow_sweep import FlowSweep
from fairq_ryu.agent.programs.queue import QueueState
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.rule_table import PortOrFlow
from fairq_ryu.agent.turn_queue import TurnCounts
from fairq_ryu.channel import description, flow_records
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.channel.flow_changes import ChangeRequest, Changes
from fairq_ryu.channel.flow_priorities import FlowPriority
from fairq_ryu.channel.hidden_queue import HiddenQueue
from fairq_ryu.channel.segment_copies import SegmentMatch
from fairq_ryu.channel.tenants import SetTenants, TenantState
from fairq_ryu.model import Congestion, FlowKey, SegmentState, Thresholds, WindowRule

LIMITS = QueueLimits("htb", 125_000, 25_000_000)
TARGET = LIMITS.limit // 4
# The queue moves around its target by half of it, in this time, seconds.
_PERIOD = 0.03
# Records in a part of a reply: as many as fit in one message.
_PART = 60000 // flow_records.RECORD_SIZE - 1
_RULES = 4096
# As the agent's.
_IDLE_NS, _CLOSED_NS = 300 * 10**9, 2 * 10**9


@dataclass(slots=True)
class Leases:
    """The leases of the rules of ports, as the agent sees them. Times in ns.

    ``renewals``: of rules that were in force; ``lapses``: rules whose lease has ended; ``gap``: the longest
    time between two renewals of a port; ``left``: the least part of a lease that was left at its renewal.
    """

    renewals: int = 0
    lapses: int = 0
    gap: int = 0
    left: float = 1.0


class SimulatedPorts:
    """The ports of a bridge, each with a busy queue (what a server uses of
    :class:`fairq_ryu.agent.programs.bridge.BridgePrograms`).
    """

    reports_drops = True
    capabilities = description.ALL

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self._ports = {number: bridge_port(flows.bridge, number) for number in range(1, flows.ports + 1)}
        self._born = time.monotonic_ns()
        self._laws: dict[int, Any] = {}
        self._rules: dict[int, tuple[int, int]] = {}  # renewed at, and end of the lease, by port
        self._thresholds: dict[int, Thresholds] = {}
        self._leases = Leases()
        table: Any = SimulatedMap(flows)
        self._map = FlowMap(table, table)
        self._changes = FlowChanges(KEY_WIDTH)

    # Ports and queues

    @property
    def ports(self) -> dict[int, BridgePort]:
        """The ports by number."""
        return self._ports

    def has_port(self, port: int) -> bool:
        """Whether this is a port of the bridge."""
        return port in self._ports

    def queue(self, port: BridgePort) -> QueueState:
        """A queue that moves around the target; each port at its own time."""
        now = time.monotonic_ns()
        age = now - self._born
        phase = math.tau * (age / 1e9 / _PERIOD + port.ofport / len(self._ports))
        backlog = int(TARGET * (1 + 0.5 * math.sin(phase)))
        sent = int(age / 1e9 * PORT_BYTES)
        return QueueState(backlog, TARGET * 3 // 2, 0, TARGET * age, sent // 1500, sent, now)

    def queue_limits(self, port: BridgePort) -> QueueLimits:
        """Its buffer and rate."""
        return LIMITS

    def limits_of(self, port: int) -> QueueLimits:
        """Its buffer and rate."""
        return LIMITS

    def active_flows(self, port: BridgePort) -> int:
        """Its active flows."""
        return self._flows.active

    def restart_peaks(self) -> None:
        """The queues have the same peak all the time."""

    def flow_records(self, idle_ms: int, ports: list[BridgePort]) -> list[bytes]:
        """Records of the flows that leave by some ports, encoded, in parts that fit in a message."""
        wanted = {port.ofport for port in ports}
        found = list(self._flows.records(time.monotonic(), wanted))
        return [
            flow_records.encode_reply(found[start : start + _PART]) for start in range(0, len(found), _PART)
        ]

    def flow_changes(self, wanted: ChangeRequest) -> Changes:
        """The changes of flow records that a controller asks for, as one message."""
        return self._map.changed(self._changes, wanted, time.monotonic_ns(), self._interfaces)

    def sweep(self) -> None:
        """A pass through the flow map."""
        sweep = FlowSweep(
            self._map, [(self._changes, self._interfaces)], time.monotonic_ns(), _IDLE_NS, _CLOSED_NS
        )
        while (part := sweep.read()) is not None:
            sweep.process(part)
        sweep.finish()

    @property
    def _interfaces(self) -> dict[int, int]:
        return {port.ifindex: number for number, port in self._ports.items()}

    def segment_state(self, key: FlowKey) -> SegmentState:
        """No segment is known."""
        return SegmentState(key, False)

    def untagged_vlan(self, port: int) -> int:
        """No port is in a VLAN."""
        return 0

    def send_frame(self, port: int, frame: bytes) -> bool:
        """There is nobody to send it to."""
        return False

    @property
    def observed(self) -> frozenset[int]:
        """All ports act."""
        return frozenset()

    def observe(self, port: int, observed: bool) -> None:
        """No ACK leaves by them."""

    def window_counts(self, port: int) -> tuple[int, int, int]:
        """No ACK is counted."""
        return 0, 0, 0

    def set_thresholds(self, ofport: int, thresholds: Thresholds | None) -> None:
        """Thresholds are stored; the queues never cross them."""
        self._thresholds.pop(ofport, None)
        if thresholds is not None:
            self._thresholds[ofport] = thresholds

    def congestion(self, ofport: int) -> CongestionNotice:
        """No queue is congested."""
        return CongestionNotice(ofport, Congestion.NOM, TARGET, 0)

    # Rules and laws

    def install_rule(self, target: PortOrFlow, window: WindowRule, expires_ns: int, slot: int) -> None:
        """A rule was installed or renewed: note what was left of its lease."""
        if not isinstance(target, int):
            return
        now, leases = time.monotonic_ns(), self._leases
        if target in self._rules:
            renewed, ends = self._rules[target]
            leases.renewals += 1
            leases.gap = max(leases.gap, now - renewed)
            leases.left = min(leases.left, (ends - now) / (ends - renewed))
        self._rules[target] = now, expires_ns

    def remove_rule(self, target: PortOrFlow) -> None:
        """A rule was removed."""
        if isinstance(target, int):
            self._rules.pop(target, None)

    def counters(self, slot: int) -> tuple[int, int]:
        """No ACK is counted."""
        return 0, 0

    def reset_counters(self, slot: int) -> None:
        """No ACK is counted."""

    def install_law(self, port: int, law_id: int, law: Any, expires_ns: int) -> None:
        """A law was installed, changed, or its lease renewed."""
        if port not in self._laws:
            self._laws[port] = layout.fq_law_state(granted=4 * TARGET, segment=1460)

    def remove_law(self, port: int) -> None:
        """A law was removed."""
        self._laws.pop(port, None)

    def law_state(self, port: int) -> Any | None:
        """The state of a port's law: it ticks every 200 us."""
        state = self._laws.get(port)
        if state is not None:
            state.flows = self._flows.active
            state.updates = (time.monotonic_ns() - self._born) // 200_000
            state.queue = TARGET
        return state

    def install_queue_law(self, port: int, law_id: int, law: Any, expires_ns: int) -> None:
        """The simulated queues drop nothing, and their packets are not judged."""

    def remove_queue_law(self, port: int) -> None:
        """No packet is judged."""

    def queue_law_state(self, port: int) -> Any | None:
        """No packet is judged."""
        return None

    def queue_law_counts(self, port: int) -> Any:
        """No packet is judged."""
        return layout.fq_queue_law_counts()

    def turn_counts(self, port: int) -> TurnCounts:
        """No connection waits for its turn."""
        return TurnCounts()

    def set_priorities(self, wanted: Sequence[FlowPriority]) -> None:
        """Nothing."""

    def set_tenants(self, wanted: SetTenants, now_ns: int) -> None:
        """Windows are not lowered, whoever the flows belong to."""

    def tenant_states(self, port: int) -> list[TenantState]:
        """No tenant has been seen."""
        return []

    def hidden_queue(self, port: BridgePort) -> HiddenQueue:
        """Asked for far queues, which the bridge does not have. Raises `NotImplementedError`."""
        raise NotImplementedError(f"port {port.ofport} is no far queue")

    def set_deadline(self, flow: FlowKey, deadline_ns: int | None, now_ns: int) -> None:
        """No connection waits for its turn."""

    # Copies, which the bridges send here

    def install_copies(self, rule: SegmentMatch, expires_ns: int) -> None:
        """The connections are in the bridge's copies."""

    def remove_copies(self, rule: SegmentMatch) -> None:
        """None are sent."""

    def copy_counts(self, rule: SegmentMatch) -> tuple[int, int]:
        """None are sent."""
        return 0, 0

    def reset_copy_counts(self, rule: SegmentMatch) -> None:
        """None are sent."""

    # The outcome

    def governed(self, now_ns: int) -> int:
        """The number of ports whose rule is in force."""
        return sum(ends > now_ns for _, ends in self._rules.values())

    def ruled_since(self, since_ns: int) -> bool:
        """Whether the rules of all ports have been installed or renewed since then."""
        renewed = [at for at, _ in self._rules.values()]
        return len(renewed) == len(self._ports) and min(renewed) >= since_ns

    @property
    def laws(self) -> int:
        """The number of ports with a law."""
        return len(self._laws)

    def expire(self, server: OpenFlowServer, now_ns: int) -> None:
        """Remove the rules whose lease has ended, and count them."""
        self._leases.lapses += sum(ends <= now_ns for _, ends in self._rules.values())
        server.expire_rules(now_ns)

    def take_leases(self, now_ns: int) -> Leases:
        """The leases since the last call. A rule that waits for its renewal counts in ``gap``, too."""
        taken, self._leases = self._leases, Leases()
        taken.gap = max([taken.gap, *(now_ns - renewed for renewed, _ in self._rules.values())])
        return taken


def make_server(flows: Flows, dpid: int, ports: SimulatedPorts) -> OpenFlowServer:
    """The agent's server of a bridge."""
    return OpenFlowServer(f"b{flows.bridge}", dpid, ports, _RULES + flows.ports)
