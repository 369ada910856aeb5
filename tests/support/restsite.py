"""A controller without switches, its REST interface, and the same on 127.0.0.1 in a process.

``python -m tests.support.restsite PORT [SETTING=NUMBER...]`` serves it until it is ended. No values are
measured, but all rows are made by the code of a real controller.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import webob
from ryu.app.wsgi import WSGIApplication
from ryu.lib import hub

from fairq_ryu.channel import oxm
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.channel.description import Description
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.config.loader import Config
from fairq_ryu.control.operations.announcing import Announcing
from fairq_ryu.control.operations.far_control import FarControl
from fairq_ryu.control.operations.mode_control import ModeControl
from fairq_ryu.control.operations.policy_control import PolicyControl
from fairq_ryu.control.operations.requests import Requests
from fairq_ryu.control.operations.state import ControllerState
from fairq_ryu.control.operations.tenant_control import TenantOperations
from fairq_ryu.control.paths.fabric_controller import FabricController, PortState
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.reports.port_traffic import PortTrafficTable
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.fabric.flows.table import FlowTable
from fairq_ryu.metrics.exporter import Metrics
from fairq_ryu.model import Congestion, FlowKey, PortKey
from fairq_ryu.packet.parse import Frame
from fairq_ryu.policies.choice import PolicyChoice, make
from fairq_ryu.rest import server, setup
from fairq_ryu.rest.streams import MAX_STREAMS, Streams
from tests.support.fakes import FakeSwitch
from tests.support.flownet import reconcile, record, segment

TOKEN = "0123456789abcdef-of-tests"
LIMIT = 125_000
KEY = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    """Serves an application on 127.0.0.1; the URL."""
    http = make_server("127.0.0.1", 0, app, handler_class=_Quiet)
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}).start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        http.server_close()


class RestSite:
    """Two bridges with a link and two hosts, one agent, and flows from host to host."""

    def __init__(
        self,
        policy: str = "fairq",
        token: str = TOKEN,
        flows: int = 3,
        turns: str = "off",
        requests: Requests | None = None,
        streams: int = MAX_STREAMS,
        **values: Any,
    ) -> None:
        """``turns`` of new connections; ``requests``: None: kept by itself."""
        self.requests = requests or Requests()
        laws = {("fairq_ryu", "turns"): turns}
        self.config = Config(laws | {("fairq_ryu", name): value for name, value in values.items()})
        self.logger = logging.getLogger("fairq_ryu.test")
        self.log: list[tuple[int, Any]] = []
        self.fabric = FabricController(self.config, self.logger)
        self.flows = FlowTable(60.0)
        self.streams = Streams(limit=streams)
        self.reporter = EventReporter(self.streams.add, lambda port: self.fabric.names.get(port, ""))
        choice = PolicyChoice(make(policy, self.config))
        self.windows = WindowController(
            choice, self.config, self.fabric, self.flows, self.logger, self.reporter
        )
        self.traffic = PortTrafficTable()
        self.counts, self.events = Counts(), hub.Queue(128)
        state = ControllerState(
            fabric=self.fabric,
            flows=self.flows,
            windows=self.windows,
            traffic=self.traffic,
            counts=self.counts,
            history=self.streams.history,
            event_queue=self.events,
            open_streams=lambda: len(self.streams),
            copies_waiting=lambda: 0,
        )
        self.state, self.metrics = state, Metrics(state)
        self.app = self.register(WSGIApplication(), token)
        self.service = self.app.service
        self._build()
        self.open(flows)
        self.sample()

    def register(self, wsgi: Any, token: str) -> Any:
        policies = PolicyControl(self.windows, self.config, self.requests, self.streams.add, self.logger)
        self.modes = ModeControl(self.fabric, self.windows, self.requests, self.streams.add, self.logger)
        self.far = FarControl(
            self.windows, self.modes.named, self.requests, self.streams.add, self.logger, answer_s=0.01
        )
        tenants = TenantOperations(self.windows, self.requests, self.streams.add, self.logger)
        announcing = Announcing(self.windows, self.requests, self.logger)
        controls = policies, self.modes, self.far, tenants, announcing
        return setup.register(wsgi, self.config, self.state, self.streams, *controls, self.metrics, token)

    def _build(self) -> None:
        now = time.monotonic()
        for dpid in (1, 2):
            ports = [PortState(number, True, f"s{dpid}-eth{number}") for number in (1, 2)]
            self.fabric.bridge_connected(FakeSwitch(dpid, self.log), ports, [], now - 10)
            self.reporter.bridge(dpid, connected=True)
        for a, b in ((PortKey(1, 2), PortKey(2, 2)), (PortKey(2, 2), PortKey(1, 2))):
            self.fabric.link_seen(a, b, now)
        self.fabric.tick(now)
        for number in (1, 2):
            frame = Frame(f"02:00:00:00:00:0{number}", "ff:ff:ff:ff:ff:ff", (), f"10.0.0.{number}", None, 0)
            self.fabric.host_seen(self.fabric.bridges[number], frame, PortKey(number, 1), now)
        self.fabric.refresh()
        self.windows.name_ports(now)
        agent = FakeSwitch(oxm.agent_dpid(2), self.log)
        self.link = self.windows.agent_connected(agent, Description("br2"))

    def open(self, count: int, sport: int = 33000) -> None:
        """Connections from the first host to the second."""
        now = time.monotonic()
        for number in range(count):
            key = KEY._replace(sport=sport + number % 30000, dport=80 + number // 30000)
            found = self.fabric.assign_path(key, PortKey(1, 1), "02:00:00:00:00:02")
            path = None if found is None else found.path
            for copied, port, way in (
                (segment(key, "S", seq=1, mss=1460, wscale=9), PortKey(1, 1), path),
                (
                    segment(key.reversed, "SA", seq=9, ack=2, mss=1460, wscale=7),
                    PortKey(2, 1),
                    None if path is None else path.reversed,
                ),
            ):
                self.windows.apply(self.flows.segment(copied, port, way, now), now)
        if self.flows.get(KEY) is None:
            return
        seen = [record(KEY, PortKey(2, 1), bytes=5000)._replace(rtt=0.00125, rewritten=7)]
        reconcile(self.flows, 2, seen, now + 3)

    def sample(self, backlog: int = 30_000, drops: int = 0) -> None:
        """The agent reports its queues."""
        now = time.monotonic()
        depths = [
            QueueDepth(number, 2, backlog, backlog + 999, LIMIT, 6_250_000, drops, 0, int(now * 1e9))
            for number in (1, 2)
        ]
        self.windows.queues_read(self.link, depths, now)

    def congestion(self, state: Congestion, backlog: int = 60_000) -> None:
        """The agent reports that the second host's queue has crossed a threshold."""
        self.windows.threshold_crossed(self.link, CongestionNotice(1, state, backlog, 1), time.monotonic())

    def ask(self, path: str, method: str = "GET", body: bytes | None = None, **environ: Any) -> Any:
        """A request as the server passes it on; writes have the token, and None removes a header."""
        path, _, query = path.partition("?")
        asked = webob.Request.blank("/", method=method, base_url="http://127.0.0.1:8080")
        path = path.encode(errors="surrogateescape").decode("latin-1")  # PEP 3333
        asked.environ |= {"PATH_INFO": path, "QUERY_STRING": query, "HTTP_AUTHORIZATION": f"Bearer {TOKEN}"}
        if body is not None:
            asked.body = body
            asked.environ["CONTENT_TYPE"] = "application/json"
        asked.environ.update(environ)
        given = {name: value for name, value in asked.environ.items() if value is not None}
        return webob.Request(given).get_response(self.app)


def main() -> None:
    """Serve on a port of 127.0.0.1; events happen all the time."""
    import eventlet

    settings = dict(each.split("=") for each in sys.argv[2:])
    site = RestSite("sed", **{name: int(value) for name, value in settings.items()})
    agent = FakeSwitch(oxm.agent_dpid(1), site.log)
    site.windows.agent_connected(agent, Description("br1"))  # so that it is ready

    def happen() -> None:
        state = Congestion.NOM
        drops = 0
        while True:
            hub.sleep(0.2)
            state = Congestion.CNG if state is Congestion.NOM else Congestion.NOM
            drops += 1
            site.sample(drops=drops)
            site.congestion(state)
            site.windows.report_overdue(time.monotonic())
            site.streams.tick()

    hub.spawn(happen)
    listening = eventlet.listen(("127.0.0.1", int(sys.argv[1])))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    server.serve(listening, site.app)


if __name__ == "__main__":
    main()
