"""A controller and a real agent's server that exchange their messages, without sockets and without eBPF."""

from __future__ import annotations

import logging
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.config.loader import Config
from fairq_ryu.control.arrivals.agent_messages import AgentMessages
from fairq_ryu.control.arrivals.refusals import Refusals
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.model import PortKey, WindowKind
from fairq_ryu.policies.choice import make
from tests.support.agent_peer import Peer
from tests.support.fakes import FakeDatapath
from tests.support.site import LIMIT, Site

NOW = 100.0
RATE = 25_000_000


def policy(name: str = "fairq", **values: Any) -> Any:
    return make(name, Config().changed(name, values))


class Network:
    """Bridge 1, its agent and a controller. Each reading of the queues takes the controller's messages to the
    agent and the answers back, until nothing is left. ``warned``: rate-limited lines.
    """

    def __init__(self, chosen: Any = None, config: Config | None = None) -> None:
        self.site = Site(chosen or policy(), agent=False, config=config)
        self.windows = self.site.windows
        self.data = FakeDatapath(1, 2, 3)
        self.warned: list[str] = []
        self.now = NOW
        log, counts = logging.getLogger("laws"), Counts()
        self.refusals = Refusals(
            self.site.fabric, self.windows, counts, log, lambda _, line: self.warned.append(line)
        )
        self.messages = AgentMessages(self.windows, lambda *_: None, lambda *_: None, counts, log)
        self.connect()

    def connect(self) -> None:
        """Another agent on the same bridge: it has no rules and no laws."""
        if self.windows.links:
            self.windows.agent_disconnected(self.site.link)
        self.data.installed.clear()
        self.data.laws.clear()
        self.server = OpenFlowServer("s1", 1, self.data, rule_capacity=8)
        self.peer = Peer(self.server)
        self.site.connect_agent()
        self.deliver()

    def deliver(self) -> None:
        while self.site.agent.sent:
            requests = [bytes(message.buf) for message in self.site.agent.sent]
            self.site.log.clear()
            for answer in [answer for request in requests for answer in self.peer.ask(request)]:
                answer.datapath = self.site.agent
                if answer.msg_type == ofp.OFPT_ERROR:
                    self.refusals.refused(answer)
                else:
                    self.messages.reply(answer, self.now)

    def read(self, *ports: PortKey, limit: int = LIMIT, rate: int = RATE, after: float = 0.05) -> None:
        """The agent reports the queues of ports."""
        self.now += after
        found = [QueueDepth(port.port, 3, 0, 0, limit, rate, 0, 0, int(self.now * 1e9)) for port in ports]
        self.windows.queues_read(self.site.link, found, self.now)
        self.deliver()

    def rule(self, port: PortKey) -> WindowKind | None:
        found = self.data.installed.get(port.port)
        return None if found is None else found[0].kind

    def shown(self, port: PortKey) -> tuple[str | None, str | None]:
        view = self.windows.engine.view().get(port)
        return (None, None) if view is None else (view.shown.where, view.shown.missing)
