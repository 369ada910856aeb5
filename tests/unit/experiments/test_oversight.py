"""A policy that failed or was changed during a run must be reported as unsound."""

import logging
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer  # Ryu replaces http.server by another module
from types import SimpleNamespace

import pytest

from fairq_ryu.agent import messages
from fairq_ryu.channel import window_law
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.channel.window_law import RefusedLaw
from fairq_ryu.control.arrivals.refusals import Refusals
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.experiments import oversight
from fairq_ryu.experiments.report import table
from fairq_ryu.experiments.traffic.workers import RunError
from fairq_ryu.laws.codel import CodelLaw
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import PortKey, QueueSample
from fairq_ryu.policies.base import PortLaw
from fairq_ryu.policies.engine import PolicyEngine
from tests.support.fakes import ryu_decode
from tests.support.flownet import B
from tests.support.site import Site

FINE = 'fairq_policy_failures_total 0.0\nfairq_events_total{kind="cng"} 7.0\n'


@pytest.fixture
def controller():
    """Makes a REST interface that answers /metrics with a text; returns its port."""
    servers = []

    def controller(text):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path == "/metrics" else 404)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1].server_port

    yield controller
    for server in servers:
        server.shutdown()
        server.server_close()


class Broken:
    name, interval = "broken", 0.1

    def __init__(self, parameters):
        pass

    def port_law(self, port):
        class Law(PortLaw):
            def queue_sampled(self, sample, flows, now):
                raise ZeroDivisionError("no flows\nto divide by")

        return Law()


def log_of_a_failure(caplog):
    """The controller's log when a law raises, and the number of failures."""
    engine = PolicyEngine(Broken({}), 2.0)
    engine.sampled(PortKey(1, 1), QueueSample(0, 0, 100_000, 0, 0, 0, 0.0), 0.0)
    return "started\n" + caplog.text + "another line\n", engine.failures


def test_a_policy_that_governed_all_the_time(controller, tmp_path):
    (tmp_path / "log").write_text("a line\n")
    assert oversight.unsound(controller(FINE), tmp_path / "log") is None
    assert oversight.unsound(None, tmp_path / "none") is None


@pytest.mark.parametrize("spec", [FairQLaw(), FairQLaw(interval_us=1)])
def test_a_law_that_the_switch_did_not_run(controller, tmp_path, caplog, spec):
    """Refused by the agent, and out of bounds for any agent: two log lines."""
    caplog.set_level("WARNING")
    site = Site(SimpleNamespace(name="lawful", interval=0.1, switch_law=lambda _: spec))
    site.sample(B, 0.1)
    refused = window_law.set_law(site.agent, window_law.LawCommand.ADD, B.port, spec)
    refused.set_xid(1)
    refused.serialize()
    error = messages.error(0xFFFF, window_law.ERROR_LAW_NO_QUEUE, bytes(refused.buf), "no queue")
    message = ryu_decode(error)
    message.datapath = site.agent
    log = logging.getLogger("laws")
    Refusals(site.fabric, site.windows, Counts(), log, lambda *_: None).refused(message)
    (tmp_path / "log").write_text(f"started\n{caplog.text}another line\n")
    why = "no queue" if spec.interval_us > 1 else "interval_us 1 is not between 50 and 10000"
    found = oversight.unsound(controller(FINE), tmp_path / "log")
    assert found == f"the switch did not run its law: {why}"


def test_a_queue_law_that_the_switch_did_not_run():
    spec = CodelLaw()
    site = Site(SimpleNamespace(name="q", interval=0.1, queue_law=lambda _: spec))
    depth = QueueDepth(B.port, 0, 0, 0, 60_000, 6_250_000, 0, 0, 1)
    site.windows.queues_read(site.link, [depth], 0.1)
    line = site.windows.queue_laws.refused(site.link, RefusedLaw(B.port, "no room"))
    log = f"started\nagent of bridge 0000000000000001: {line}\nanother line\n"
    assert oversight.verdict(FINE, log) == "its queue law was not in force: no room"


def test_a_law_that_raised(controller, tmp_path, caplog):
    text, failures = log_of_a_failure(caplog)
    assert failures == 1
    (tmp_path / "log").write_text(text)
    port = controller(FINE.replace("0.0", "1.0", 1))
    assert (
        oversight.unsound(port, tmp_path / "log")
        == "the policy failed once, at last with ZeroDivisionError: no flows"
    )


def test_a_policy_that_was_changed_and_failed_twice(caplog):
    metrics = 'fairq_policy_failures_total 2.0\nfairq_events_total{kind="policy"} 3.0\n'
    assert oversight.verdict(metrics, "nothing of it here") == (
        "the policy failed 2 times and the policy was changed 3 times over REST"
    )
    assert oversight.verdict(metrics.replace(" 2.0", " 0.0"), "") == (
        "the policy was changed 3 times over REST"
    )


def test_a_controller_that_cannot_be_asked(controller, tmp_path):
    (tmp_path / "log").write_text("")
    with pytest.raises(RunError, match="has no fairq_policy_failures_total"):
        oversight.unsound(controller("fairq_rules 1\n"), tmp_path / "log")
    with pytest.raises(RunError, match="does not report whether its policy failed"):
        oversight.unsound(1, tmp_path / "log")


def test_the_names_are_those_of_the_metrics():
    from fairq_ryu.control.reports.events import Kind
    from fairq_ryu.metrics import health

    families = {family.name for family in health.HEALTH}
    assert {"fairq_policy_failures_total", "fairq_events_total"} <= families
    assert f'{{kind="{Kind.POLICY}"}}' in oversight._CHANGES


def test_the_line_under_the_table():
    assert table.unsound({"policy": "fairq"}) is None
    line = table.unsound({"policy": "fairq", "unsound": "the policy failed once"})
    assert line.startswith("fairq: the policy failed once; these figures are not those of the policy")
