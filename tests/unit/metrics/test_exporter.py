"""/metrics: a scrape of a controller whose tables all have entries."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

import prometheus_client
import pytest
import webob
import webob.exc
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu import __version__
from fairq_ryu.metrics import exporter
from fairq_ryu.metrics.exporter import FAMILIES, Metrics
from fairq_ryu.model import WindowPlan
from fairq_ryu.rest import handler
from fairq_ryu.rest.guard import RequestGuard
from fairq_ryu.rest.operations import RestService
from fairq_ryu.rest.views import FabricView
from tests.support import full_controller
from tests.support.flownet import B
from tests.support.scrape import names_of, scrape
from tests.support.site import LIMIT, Obedient, Site

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
# The header that Prometheus 2 sends.
PROMETHEUS = f"{OPENMETRICS};q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
S1 = f"{1:016x}"


@pytest.fixture(scope="module")
def controller() -> Any:
    return full_controller.full_controller()


def value(found: dict[str, list[Any]], name: str, /, **labels: str) -> float:
    (sample,) = [each for each in found[name] if labels.items() <= each.labels.items()]
    return sample.value


# Names


def test_names_follow_the_conventions_of_prometheus():
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    for family in FAMILIES:
        assert re.fullmatch(r"fairq(_[a-z]+)+", family.name), family
        assert family.name.endswith("_total") == (family.kind == "counter"), family
        assert family.name.endswith("_info") == (family.kind == "info"), family
        assert family.kind in ("gauge", "counter", "histogram", "info")
        assert family.help[0].isupper() or family.help[0] in "10"
        assert family.help.endswith(".")
        words = family.name.split("_")
        assert not {"ms", "us", "bits", "bps", "percent", "kb", "count", "sum", "bucket"} & set(words)
        if family.kind == "histogram":
            assert words[-1] == "seconds"


def test_labels_are_bounded_by_the_network_and_the_code(controller):
    allowed = {"dpid", "port", "name", "role", "policy", "kind", "state", "outcome", "reason", "by"}
    allowed |= {"version", "python", "method", "path", "code", "mode", "way", "tenant", "part"}
    for family in FAMILIES:
        assert set(family.labels) <= allowed
    body = controller.metrics.render("")[0].decode()
    assert not [word for word in full_controller.flow_words() if word in body]


# Scrapes


@pytest.mark.parametrize("accept", ["", PROMETHEUS, "text/plain", "*/*"])
def test_every_metric_is_exported_and_all_formats_agree(controller, accept):
    found = scrape(controller, accept)
    process = {name for name in found if name.startswith("process_")}
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total"} <= process
    assert set(found) - process == {name for family in FAMILIES for name in names_of(family)}
    for name, samples in found.items():
        assert all(math.isfinite(sample.value) for sample in samples), name
        places = Counter(tuple(sorted(sample.labels.items())) for sample in samples)
        assert set(places.values()) == {1}, name


def test_the_format_is_the_requested_one(controller):
    body, content_type = controller.metrics.render(PROMETHEUS)
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith(b"# EOF\n")
    for other in (
        "text/html",
        "text/html,*/*;q=0.8",
        f"{OPENMETRICS};q=0.1,text/plain",
        f"{OPENMETRICS};q=0",
    ):
        assert controller.metrics.render(other)[1].startswith("text/plain; version=0.0.4")


@given(
    st.text(max_size=60)
    | st.builds(
        "application/openmetrics-text;version={};escaping={}".format,
        st.text(max_size=8) | st.sampled_from(["0.0.1", "1.0.0", "2.0.0", "999", "1.0.0.0"]),
        st.text(max_size=8) | st.sampled_from(["values", "dots", "underscores", "allow-utf-8"]),
    )
)
def test_every_accept_header_gets_an_answer(accept):
    body, content_type = EMPTY.render(accept)
    assert b"fairq_build_info{" in body and content_type.isascii()
    assert "\n" not in content_type and "\r" not in content_type


def test_no_metric_is_global(controller):
    names = {family.name for family in prometheus_client.REGISTRY.collect()}
    assert not any(name.startswith("fairq") for name in names)
    other = Metrics(full_controller.of(Site(Obedient())).state)
    other.observe_request("GET", "/v1/gif", 200, 0.1)
    assert not [s for s in scrape(controller)["fairq_http_requests_total"] if s.labels["path"] == "/v1/gif"]


def test_the_control_loop_gets_its_turns_during_a_scrape(controller, monkeypatch):
    turns = []
    monkeypatch.setattr(exporter.hub, "sleep", turns.append)
    controller.metrics.render("")
    assert turns == [0] * len(FAMILIES)


# Values


def test_the_numbers_of_ports(controller):
    found = scrape(controller)
    here = {"dpid": S1, "port": "2", "name": "s1-eth2"}
    expected = {
        "queue_bytes": full_controller.QUEUE,
        "queue_peak_bytes": full_controller.PEAK,
        "queue_limit_bytes": LIMIT,
        "queue_byte_seconds_total": 5.0,
        "rate_bytes_per_second": full_controller.RATE,
        "dropped_packets_total": full_controller.DROPS,
        "transmitted_bytes_total": full_controller.TX,
        "received_bytes_total": full_controller.RX,
        "flows": 1,
        "active_flows": 1,
        "window_bytes": 6000,
        "flow_windows": 0,
    }
    for name, number in expected.items():
        assert value(found, f"fairq_port_{name}", **here) == number, name
    assert value(found, "fairq_port_info", **here, policy="rsed", role="undecided") == 1
    assert value(found, "fairq_port_queue_target_bytes", **here) == 0.25 * LIMIT
    assert value(found, "fairq_port_congested", **here) == 1
    assert value(found, "fairq_port_congested", port="1") == 0
    assert value(found, "fairq_port_incast", port="3") == 0
    assert [s.labels["port"] for s in found["fairq_port_incast"]] == ["3"]
    assert value(found, "fairq_port_law_in_switch", **here) == 1
    assert [(s.labels["port"], s.value) for s in found["fairq_port_turns_waiting"]] == [("3", 2)]
    turns = {s.labels["outcome"]: s.value for s in found["fairq_port_turns_total"]}
    assert turns == {"released": 4, "overdue": 3, "overflowed": 1}
    assert value(found, "fairq_port_pool_bytes", port="1") == 50_000
    # A port without a reading has no samples; its name is exported unchanged.
    other = [s for name in found for s in found[name] if s.labels.get("name") == 's2-"eth1"']
    assert {s.name for s in other} == {
        "fairq_port_info",
        "fairq_port_flows",
        "fairq_port_flow_windows",
        "fairq_port_mode",
    }


def test_an_unknown_size_or_rate_is_not_exported():
    controller = full_controller.of(site := Site(Obedient()))
    controller.metrics = Metrics(controller.state)
    record = full_controller.QueueDepth(B.port, 0, 0, 0, 0, 0, 0, 0, 10**9)
    site.windows.queues_read(site.link, [record], 1.0)
    found = scrape(controller)
    assert "fairq_port_queue_bytes" in found
    assert "fairq_port_queue_limit_bytes" not in found and "fairq_port_rate_bytes_per_second" not in found


def test_the_numbers_of_the_fabric(controller):
    found = scrape(controller)
    assert value(found, "fairq_bridge_connected", dpid=S1) == 1
    assert value(found, "fairq_bridge_connected", dpid=f"{2:016x}") == 0
    assert value(found, "fairq_agent_connected", dpid=f"{2:016x}") == 0
    assert value(found, "fairq_hosts") == 1
    assert value(found, "fairq_flows", state="established") == value(found, "fairq_flows_opened_total") == 1
    assert value(found, "fairq_flows_unscaled", dpid=S1) == 4
    assert value(found, "fairq_repins_total") == 2 and value(found, "fairq_paths_pinned") == 1
    assert value(found, "fairq_announcements") == value(found, "fairq_announcements_made_total") == 1
    assert value(found, "fairq_gif_flows", state="open") == value(found, "fairq_gif_flows", state="none") == 1
    assert value(found, "fairq_losses_total") == value(found, "fairq_losses_settled_total", outcome="ignored")
    assert value(found, "fairq_spoken_total", kind="wake") == 3
    assert value(found, "fairq_unspoken_total", kind="dupack", reason="addresses not known") == 2


def test_the_numbers_of_the_controller():
    controller = full_controller.full_controller()  # a new one: the leases of its rules run
    found = scrape(controller)
    assert value(found, "fairq_build_info", version=__version__) == 1
    assert value(found, "fairq_policy_info", policy="rsed") == 1
    assert value(found, "fairq_packet_ins_total", kind="tcp") == 5
    assert value(found, "fairq_packet_ins_dropped_total", dpid=S1) == 11
    assert value(found, "fairq_faults_total", part="tick") == 2
    assert value(found, "fairq_event_queue_capacity") == 128
    assert value(found, "fairq_events_total", kind="cng") == 2
    assert value(found, "fairq_events_total", kind="loss") == 7
    assert value(found, "fairq_events_total", kind="missed") == 0
    assert value(found, "fairq_loop_delay_seconds_sum") == pytest.approx(full_controller.LATE)
    assert value(found, "fairq_loop_delay_seconds_bucket", le="0.005") == 1
    assert value(found, "fairq_loop_delay_seconds_bucket", le="0.002") == 0
    assert value(found, "fairq_channel_round_trip_seconds_sum") == pytest.approx(full_controller.ROUND_TRIP)
    assert (
        value(found, "fairq_rules", dpid=S1) == sum(full_controller.installed_rules(controller).values()) > 0
    )
    assert value(found, "fairq_rule_messages_total", dpid=S1) >= value(found, "fairq_rules", dpid=S1)


def test_rules_and_agents_appear_and_disappear():
    site = Site(Obedient())
    controller = full_controller.of(site)
    controller.metrics = Metrics(controller.state)
    site.policy.plan = WindowPlan(pool=9000)
    site.open()
    site.sample(B, 0.1)
    site.windows.agent_disconnected(site.link)
    found = scrape(controller)
    assert value(found, "fairq_agent_connected", dpid=S1) == 0
    assert value(found, "fairq_leases_lost_total", reason="agent gone") == 1
    assert "fairq_rules" not in found and "fairq_port_queue_bytes" not in found
    site.fabric.bridge_disconnected(site.bridge)
    assert value(scrape(controller), "fairq_bridge_connected", dpid=S1) == 0


def test_meters_are_asked_where_there_are_meters():
    site = Site(Obedient())
    site.fabric.request_meter_counters()
    (asked,) = site.bridge.sent
    assert type(asked).__name__ == "OFPMeterStatsRequest"
    site.log.clear()
    site.fabric.copy_meters.refused(1, meter=True)
    site.fabric.request_meter_counters()
    assert site.log == []
    site.fabric.copy_meters.counted(site.bridge, [])
    assert site.fabric.copy_meters.dropped == {1: 0}
    site.fabric.bridge_disconnected(site.bridge)
    assert site.fabric.copy_meters.dropped == {}


# Requests


def test_requests_are_counted_by_path_and_code():
    controller = full_controller.of(Site(Obedient()))
    made = controller.metrics = Metrics(controller.state)
    for code, seconds in ((200, 0.001), (200, 0.02), (404, 0.001)):
        made.observe_request("GET", "/v1/announcements/{id}", code, seconds)
    found = scrape(controller)
    here = {"method": "GET", "path": "/v1/announcements/{id}"}
    assert value(found, "fairq_http_requests_total", **here, code="200") == 2
    assert value(found, "fairq_http_requests_total", **here, code="404") == 1
    assert value(found, "fairq_http_request_duration_seconds_count", path=here["path"]) == 3


def test_requests_cannot_create_new_labels():
    controller = full_controller.of(Site(Obedient()))
    made = controller.metrics = Metrics(controller.state)
    for number in range(500):
        made.observe_request(f"M{number}", f"/{number}", 400 + number % 5, 0.001)
        made.observe_request("GET", "", 404, 0.001)
    found = scrape(controller)
    assert {s.labels["method"] for s in found["fairq_http_requests_total"]} == {"other", "GET"}
    assert len(found["fairq_http_request_duration_seconds_count"]) <= 65
    assert sum(s.value for s in found["fairq_http_requests_total"]) == 1000


# The page


def page(controller: Any, metrics_of: Any) -> Any:
    """The interface of a controller, as a WSGI application."""
    return handler.Rest(
        RestService(FabricView(controller.state), metrics=metrics_of),
        RequestGuard(),
        webob.exc.HTTPNotFound(),
    )


def ask(application: Any, path: str = "/metrics", method: str = "GET", **headers: str) -> Any:
    return webob.Request.blank(path, method=method, headers=headers).get_response(application)


def test_the_page_is_served(controller):
    application = page(controller, controller.metrics)
    answer = ask(application)
    assert answer.status_code == 200 and answer.body.startswith(b"# HELP fairq_port_queue_bytes ")
    assert answer.headers["Content-Type"] == prometheus_client.CONTENT_TYPE_PLAIN_0_0_4
    assert answer.headers["Cache-Control"] == "no-store"
    answer = ask(application, Accept=PROMETHEUS)
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert ask(application, method="HEAD").body == b""
    answer = ask(application, method="POST")
    assert answer.status_code == 405 and answer.headers["Content-Type"] == "application/problem+json"


def test_requests_to_the_interface_are_counted():
    controller = full_controller.full_controller()
    application = page(controller, controller.metrics)
    before = controller.metrics.render("")[0]
    assert b"/v1/switches" not in before
    for path in ("/v1/switches", "/v1/switches", "/v1/switches?no=1", "/v1/nothing", "/elsewhere"):
        ask(application, path)
    found = scrape(controller)
    count = {(s.labels["path"], s.labels["code"]): s.value for s in found["fairq_http_requests_total"]}
    assert count["/v1/switches", "200"] == 2 and count["/v1/switches", "400"] == 1
    assert count["other", "404"] == 1  # requests of other applications are not counted


def test_a_fault_is_a_problem_document_and_in_the_log(controller, caplog):
    class Broken:
        def render(self, accept: str) -> None:
            raise RuntimeError("secret")

        def observe_request(self, *about: Any) -> None:
            pass

    answer = ask(page(controller, Broken()))
    assert answer.status_code == 500 and b"secret" not in answer.body
    assert "secret" in caplog.text


EMPTY = Metrics(full_controller.of(Site(Obedient(), agent=False)).state)
