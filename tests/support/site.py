"""A bridge, its agent and the policies, without Ryu's hub: shared by the tests of the controller."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

from fairq_ryu.channel import oxm
from fairq_ryu.channel.description import Description
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.config.loader import Config
from fairq_ryu.control.paths.fabric_controller import FabricController, PortState
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.fabric.flows.table import FlowTable
from fairq_ryu.model import NO_WINDOWS, FlowKey, FlowPath, PortKey, SegmentState, Thresholds, WindowPlan
from fairq_ryu.packet.parse import Frame
from fairq_ryu.policies.base import PortLaw, Recovery
from fairq_ryu.policies.choice import PolicyChoice
from tests.support.fakes import FakeSwitch
from tests.support.flownet import IDLE, KEY, LOCAL, A, B, segment

CLIENT_MAC, SERVER_MAC = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
LIMIT = 125_000
DESCRIPTION = Description("s1")


class Law(PortLaw):
    """Records its calls, and answers with the plan of its policy."""

    def __init__(self, policy: Obedient) -> None:
        self.policy = policy
        self.calls: list[tuple[Any, ...]] = []

    def flow_started(self, flow, flows, now):
        self.calls.append(("started", flow.key))

    def flow_ended(self, flow, flows, now):
        self.calls.append(("ended", flow.key))

    def queue_sampled(self, sample, flows, now):
        return self.policy.plan

    def congestion(self, state, backlog, now):
        self.calls.append(("congestion", state, backlog))

    def announced(self, flow, announcement, now):
        self.calls.append(("announced", flow, announcement))

    def progressed(self, flows, now):
        self.calls.append(("progressed", dict(flows)))

    def wants_progress(self):
        return self.policy.progress

    def thresholds(self):
        return self.policy.wanted


class Obedient:
    """A policy whose answers the test sets."""

    def __init__(self, name: str = "obedient", interval: float = 0.01, recovery: Recovery | None = None):
        self.name = name
        self.interval = interval
        self.recovery = recovery
        self.plan: WindowPlan = NO_WINDOWS
        self.progress = False
        self.wanted: Thresholds | None = None
        self.laws: dict[PortKey, Law] = {}

    def port_law(self, port: PortKey) -> Law:
        self.laws[port] = Law(self)
        return self.laws[port]


class Site:
    """Bridge 1 with the ports of ``flownet``; its agent is connected by default."""

    def __init__(
        self,
        policy: Obedient | None = None,
        rules: tuple[tuple[str, Obedient], ...] = (),
        agent: bool = True,
        config: Config | None = None,
        **limits: int,
    ) -> None:
        self.log: list[tuple[int, Any]] = []
        self.policy = policy or Obedient()
        config, log = config or Config(), logging.getLogger(__name__)
        self.fabric = FabricController(config, log)
        self.flows = FlowTable(IDLE, **limits)
        self.windows = WindowController(
            PolicyChoice(self.policy, rules), config, self.fabric, self.flows, log
        )
        self.bridge = FakeSwitch(1, self.log)
        ports = [PortState(number, True, f"s1-eth{number}") for number in (1, 2, 3)]
        self.fabric.bridge_connected(self.bridge, ports, [], 0.0)
        if agent:
            self.connect_agent()
        self.log.clear()

    def connect_agent(self, about: Description = DESCRIPTION) -> None:
        self.agent = FakeSwitch(oxm.agent_dpid(1), self.log)
        self.agent.ports = {n: SimpleNamespace(name=f"s1-eth{n}\0".encode()) for n in (1, 2, 3)}
        self.link = self.windows.agent_connected(self.agent, about)

    @property
    def injector(self):
        return self.windows.injector

    def law(self, port: PortKey) -> Law:
        return self.policy.laws[port]

    def syn(
        self,
        key: FlowKey = KEY,
        now: float = 0.0,
        flags: str = "S",
        path: FlowPath | None = LOCAL,
        **numbers: int,
    ) -> None:
        """A SYN is copied at its sender's port, and the copy reaches the controller. ``path`` is
        that of KEY.
        """
        macs = (CLIENT_MAC, SERVER_MAC) if key.dport == KEY.dport else (SERVER_MAC, CLIENT_MAC)
        tcp = segment(key, flags, **numbers)
        frame = Frame(*macs, (), key.src, None, tcp, 0)
        self.windows.syn_seen(frame)
        self.segment(tcp, now, path)
        self.windows.syn_seen(frame)  # as the controller does if it turns out to be believed

    def segment(self, tcp, now: float, path: FlowPath | None = LOCAL) -> None:
        there = tcp.key.dport == KEY.dport
        towards = path if path is None or there else path.reversed
        self.apply(self.flows.segment(tcp, A if there else B, towards, now), now)

    def apply(self, events, now: float) -> None:
        self.windows.apply(events, now)
        for event in events:
            if not event.started:  # as the controller does
                connection = self.flows.get(event.flow.key)
                if connection is None or connection.state == "closed":
                    self.windows.flow_over(event.flow.key)

    def open(self, key: FlowKey = KEY, now: float = 0.0) -> None:
        self.syn(key, now, seq=100)
        self.syn(key.reversed, now, "SA", seq=900, ack=101)

    def reset(self, key: FlowKey = KEY, now: float = 0.0) -> None:
        self.segment(segment(key, "R", seq=101), now)

    def sample(self, port: PortKey, now: float, backlog: int = 0) -> None:
        record = QueueDepth(port.port, 0, backlog, backlog, LIMIT, 25_000_000, 0, 0, int(now * 1e9))
        self.windows.queues_read(self.link, [record], now)

    def answer_barriers(self) -> None:
        for dpid, message in list(self.log):
            if type(message).__name__ == "OFPBarrierRequest":
                self.fabric.barriers.answered((dpid, message.xid))


def state(flow: FlowKey, **values: Any) -> SegmentState:
    """The last state of the receiver of a flow."""
    known = {"found": True, "port": 1, "seq_next": 901, "ack": 101, "window": 500, "wscale": 7}
    return SegmentState(key=flow.reversed, **(known | values))
