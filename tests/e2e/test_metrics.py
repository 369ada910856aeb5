"""/metrics of a real controller with a bridge, its agent and TCP: the samples exist, are correct, and
counters grow.
"""

import http.client
import sys
import urllib.request

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fairq_ryu.agent.status import run_directory
from tests.support.lab import near_target, received, until

pytestmark = pytest.mark.root
S1 = "0000000000000001"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


@pytest.fixture
def started(lab):
    """The lab with a controller and an agent that are connected."""

    def start(config=""):
        lab.govern("fairq", config)
        return lab

    return start


def scrape(lab):
    """All samples: name -> labels -> value."""
    request = urllib.request.Request(f"{lab.manager.url}/metrics", headers={"Accept": OPENMETRICS})
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.headers["Content-Type"].startswith(OPENMETRICS.partition(";")[0])
        text = answer.read().decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(lab, name, /, **labels):
    """The sum of the samples of that name with these labels; None if there are none."""
    found = [
        number
        for (known, *pairs), number in scrape(lab).items()
        if known == name and labels.items() <= dict(pairs).items()
    ]
    return sum(found) if found else None


def test_the_queue_of_a_loaded_port_and_packet_ins_are_exported(started):
    lab = started()
    sink, _ = lab.bulk()
    port = {"dpid": S1, "port": str(lab.port), "name": f"s1-eth{lab.port}"}
    assert until(lambda: value(lab, "fairq_port_queue_bytes", **port))
    assert until(lambda: received(sink) > 5_000_000)
    assert until(lambda: value(lab, "fairq_port_pool_bytes", **port))
    assert until(lambda: value(lab, "fairq_packet_ins_total", kind="tcp") >= 2)  # SYN and SYN-ACK
    assert until(lambda: value(lab, "fairq_flows", state="established") == 1)
    first = scrape(lab)
    labels = tuple(sorted(port.items()))

    def grown(name, *more):
        key = (name, *more)
        return until(lambda: scrape(lab)[key] > first[key])

    status = lab.port_status()
    assert first["fairq_port_queue_limit_bytes", *labels] == status["queue"]["limit"] == 60000
    assert first["fairq_port_queue_peak_bytes", *labels] >= first["fairq_port_queue_bytes", *labels]
    assert first["fairq_port_pool_bytes", *labels] > 0 and first["fairq_port_flows", *labels] == 1
    assert first["fairq_agent_connected", ("dpid", S1)] == first["fairq_bridge_connected", ("dpid", S1)] == 1
    assert first["fairq_flows", ("state", "established")] == 1
    assert first["fairq_packet_ins_total", ("kind", "arp")] >= 1
    assert first["fairq_rules", ("dpid", S1)] == lab.status()["rules"] == 1
    assert grown("fairq_port_queue_byte_seconds_total", *labels)
    assert grown("fairq_loop_delay_seconds_count")
    assert grown("fairq_channel_round_trip_seconds_count", ("dpid", S1))
    assert grown("fairq_rule_messages_total", ("dpid", S1))
    assert grown("process_cpu_seconds_total")

    # The mean between two scrapes is near the target.
    def queue():
        at = lab.port_status()["queue"]["clock_ns"]
        return {
            "byte_ns": scrape(lab)["fairq_port_queue_byte_seconds_total", *labels] * 1e9,
            "clock_ns": at,
        }

    assert near_target(queue, 60000 * 0.25)
    after = scrape(lab)
    # Samples stay, and a counter never decreases.
    assert all(after[key] >= number for key, number in first.items() if key[0].endswith(("_total", "_count")))


def test_requests_are_counted_whichever_way_they_are_answered(started):
    lab = started()
    host, name = lab.manager.url.removeprefix("http://"), "fairq_http_requests_total"
    settled = value(lab, name, path="/v1/ports", code="200", method="GET")  # while it started
    for path, times in (("/v1/ports", 5), ("/v1/ports?no=1", 2), ("/v1/hosts", 3)):
        connection = http.client.HTTPConnection(host, timeout=20)
        for _ in range(times):
            connection.request("GET", path)
            connection.getresponse().read()
        connection.close()
    assert value(lab, name, path="/v1/ports", code="200", method="GET") == settled + 5
    assert value(lab, name, path="/v1/ports", code="400") == 2
    assert value(lab, name, path="/v1/hosts") == 3
    assert value(lab, "fairq_http_request_duration_seconds_count", path="/v1/ports") == settled + 7


def test_a_disconnected_agent_is_missing_and_its_samples_are_removed(started):
    lab = started()
    lab.bulk()
    assert until(lambda: value(lab, "fairq_rules", dpid=S1) == 1)
    lab.agent_process.end()
    assert until(lambda: value(lab, "fairq_agent_connected", dpid=S1) == 0)
    assert value(lab, "fairq_leases_lost_total", reason="agent gone") == 1
    assert value(lab, "fairq_rules", dpid=S1) is None
    assert value(lab, "fairq_port_queue_bytes", dpid=S1, port=str(lab.port)) is None
    assert value(lab, "fairq_bridge_connected", dpid=S1) == 1


def test_flows_older_than_the_agent_are_exported_as_unchanged_for_unknown_scale(started):
    lab = started()
    sink, _ = lab.bulk()
    assert until(lambda: received(sink) > 1_000_000)
    assert until(lambda: value(lab, "fairq_flows_unscaled", dpid=S1) == 0)
    lab.agent_process.end()
    # An agent that is no upgrade of another: what the other one has left for its successor is gone.
    (run_directory() / "s1.flows").unlink()
    lab.agent_process = lab.agent(f"tcp:127.0.0.1:{lab.manager.port}")
    assert until(lambda: value(lab, "fairq_flows_unscaled", dpid=S1) == 2), (lab.status(), lab.manager.text)


def test_copies_that_a_bridge_drops_are_counted(started):
    lab = started("[fairq_ryu]\npacket_in_rate = 5\n")
    assert until(lambda: value(lab, "fairq_packet_ins_dropped_total", dpid=S1) == 0)
    dials = f"import socket\nfor _ in range(300): socket.socket().connect_ex(('{lab['r'].IP()}', 9))"
    dialling = lab["h1"].popen([sys.executable, "-c", dials])
    assert dialling.wait(30) == 0

    def counted():
        dropped = value(lab, "fairq_packet_ins_dropped_total", dpid=S1)
        return dropped, value(lab, "fairq_packet_ins_total", kind="tcp")

    # A SYN and its refusal are two copies.
    assert until(lambda: sum(counted()) >= 600), counted()
    dropped, copied = counted()
    assert dropped > copied > 0
