"""The policies for deadlines and incast on a real switch, with real TCP."""

import json
import re
import signal
import time
import urllib.request

import pytest

from fairq_ryu import client
from tests.support.lab import TOKEN, end, received, until

pytestmark = pytest.mark.root
# A receiver's port of 50 Mbit/s and 60,000 bytes (tests/support/lab.py): K is a quarter of the buffer.
K, NOM = 15_000, 3_000
LEASE = 1.0


@pytest.fixture
def fabric(lab):
    """A bridge under our controller, its agent connected, and its ports known to be hosts'."""

    def start(app="policy", config=""):
        lab.govern(app, config)
        # Before that, ARP requests do not reach every host.
        assert until(lambda: [row["role"] for row in show(lab, "ports")] == ["host"] * 3)
        return lab

    return start


def show(lab, what):
    with urllib.request.urlopen(f"{lab.manager.url}/v1/{what}", timeout=20) as answer:
        return json.load(answer)[what]


def announce(lab, source, port, size, deadline):
    client.announce(
        lab[source].IP(), lab["r"].IP(), port, size=size, deadline=deadline, url=lab.manager.url, token=TOKEN
    )


def goes_on(sink):
    """Whether some more segments are received."""
    before = received(sink)
    return until(lambda: received(sink) >= before + 20_000)


def spoken(lab, kind):
    """How many segments of a kind the agent and the controller have sent to hosts."""
    with urllib.request.urlopen(f"{lab.manager.url}/metrics", timeout=20) as answer:
        ((_, told),) = [
            line.rsplit(" ", 1)
            for line in answer.read().decode().splitlines()
            if line.startswith(f'fairq_spoken_total{{kind="{kind}"}}')
        ]
    return float(told)


def wakes(lab):
    """How many flows the agent and the controller have woken."""
    sent = lab.status()["recovery"]["sent"].get("wake", 0)
    return {"agent": sent, "controller": spoken(lab, "wake")}


def still(sink, seconds):
    """Whether nothing is received for ``seconds``, beginning at some time while the first flow sends."""

    def unchanged():
        before = received(sink)
        time.sleep(seconds)
        return received(sink) == before

    return until(unchanged, 10, 0)


def two_flows_of_which_one_is_paused(lab):
    """The first flow needs most of the link; the second, with a later deadline, needs more than the rest and
    less than the whole link.

    Returns both.
    """
    announce(lab, "h1", 5001, 90_000_000, 18)
    announce(lab, "h2", 5002, 60_000_000, 24)
    first = lab.bulk("h1", 5001)
    assert until(lambda: received(first[0]) > 100_000)
    second = lab.bulk("h2", 5002)
    # It may be paused before its first byte or after some.
    assert until(lambda: any(row["dport"] == 5002 for row in show(lab, "flows")), step=0.01)
    return first, second


@pytest.mark.parametrize("policy", ["iqm", "sed"])
def test_the_configuration_names_the_policy(fabric, policy):
    lab = fabric("policy", f"[fairq_ryu]\npolicy = {policy}\n")
    assert {row["policy"] for row in show(lab, "ports")} == {policy}
    sink, _ = lab.bulk()
    assert until(lambda: received(sink) > 2_000_000)
    assert "Traceback" not in lab.manager.text


def test_fairq_as_published_sets_the_window_of_a_port_while_it_has_flows(fabric):
    lab = fabric("fairq_paper")
    sink, source = lab.bulk()
    assert until(lambda: received(sink) > 2_000_000)
    rule = lab.port_status()["rule"]
    assert rule["kind"] == "window" and rule["bytes"] > 0
    assert until(lambda: lab.port_status()["rewritten"] > 100)
    (row,) = [row for row in show(lab, "ports") if row["port"] == lab.port]
    assert (row["policy"], row["law"], row["target_bytes"]) == ("fairq-paper", "controller", 15_000)
    end(source)
    end(sink)
    assert until(lambda: not lab.port_status()["rule"])
    assert "Traceback" not in lab.manager.text


def test_iqm_as_published_sets_no_window_outside_an_incast(fabric):
    lab = fabric("iqm_paper")
    sink, _ = lab.bulk()
    assert until(lambda: received(sink) > 5_000_000)
    assert not lab.port_status()["rule"]
    assert "Traceback" not in lab.manager.text


def test_rsed_as_published_reports_losses_to_the_controller_which_sends_duplicates(fabric):
    lab = fabric("rsed_paper")
    sinks = [lab.bulk(host, port)[0] for host, port in (("h1", 5001), ("h2", 5002))]
    assert all(until(lambda sink=sink: received(sink) > 2_000_000) for sink in sinks)
    assert until(lambda: any(row["flow_windows"] for row in show(lab, "ports")), step=0.01)
    assert until(lambda: spoken(lab, "dupack") > 0)
    assert not lab.status()["recovery"]["sent"].get("dupack"), "no agent has sent them"
    assert "Traceback" not in lab.manager.text


def test_ports_have_the_policies_of_their_patterns(fabric):
    lab = fabric("fairq", "[ports]\ns1-eth3 = sed\n")
    assert {row["name"]: row["policy"] for row in show(lab, "ports")} == {
        "s1-eth1": "fairq",
        "s1-eth2": "fairq",
        "s1-eth3": "sed",
    }


def test_a_bulk_flow_causes_congestion_and_its_windows_are_removed_at_its_end(fabric):
    lab = fabric("sed")
    sink, source = lab.bulk()
    congestion = until(
        lambda: (found := lab.port_status()["congestion"]) and found["state"] == "CNG" and found
    )
    assert congestion and (congestion["cng"], congestion["nom"]) == (K, NOM)
    # The switch sets the base windows, and the controller the share of the flow.
    rule = until(lambda: (found := lab.port_status()["rule"]) and found["law"]["mode"] & 1 and found)
    assert rule and (rule["kind"], rule["law"]["kind"]) == ("law", "sed")
    assert until(lambda: any(row["flow_windows"] for row in show(lab, "ports")))
    assert until(lambda: lab.status()["congestion_messages"] > 0)
    announce(lab, "h1", 5001, 300_000_000, 200)

    def announced():
        return [row for row in show(lab, "gif") if row["size_bytes"]]

    (row,) = until(announced)
    assert (row["src"], row["dport"], row["size_bytes"]) == (lab["h1"].IP(), 5001, 300_000_000)
    assert row["deadline_s"] == pytest.approx(200, abs=0.1)
    assert row["state"] == "open" and row["remaining_bytes"] <= 300_000_000
    assert until(lambda: announced()[0]["remaining_bytes"] < 295_000_000)
    end(source)
    end(sink)
    assert until(lambda: not any(row["flow_windows"] for row in show(lab, "ports")))
    assert until(lambda: (rule := lab.port_status()["rule"]) and rule["kind"] == "law")
    assert until(lambda: not show(lab, "gif"))


def test_a_flow_that_was_paused_is_woken_when_it_gets_a_window(fabric):
    """Without a wake it would wait for its next probe, up to 3 s (RFC 9293, section 3.8.6.1)."""
    lab = fabric("sed")
    first, second = two_flows_of_which_one_is_paused(lab)
    assert still(second[0], 1.6)
    before = wakes(lab)
    end(first[0])  # a reset; a sender that closes would first send its buffered data
    assert goes_on(second[0])
    assert wakes(lab)["agent"] > before["agent"]
    assert until(lambda: wakes(lab)["controller"] > before["controller"])  # as the agent reports them


def test_a_controller_that_dies_leaves_no_flow_paused(fabric):
    """Only its own probe wakes it: its rule ends with the lease, and it probes after 1.4, 3 and 6.2 s."""
    lab = fabric("sed", f"[fairq_ryu]\nlease = {LEASE:g}\n")
    _, second = two_flows_of_which_one_is_paused(lab)
    assert still(second[0], 0.15)
    lab.manager.end(signal.SIGKILL)
    assert goes_on(second[0])
    assert until(lambda: lab.status()["rules"] == 0)


@pytest.fixture
def ecn(lab):
    """Sender and receiver negotiate ECN as in RFC 3168."""
    for host in ("h1", "r"):
        lab[host].cmd("sysctl -qw net.ipv4.tcp_ecn=1")
    yield lab
    for host in ("h1", "r"):
        lab[host].cmd("sysctl -qw net.ipv4.tcp_ecn=2")


def test_acdc_lowers_windows_for_the_marks_of_others_and_hides_their_echo_from_the_sender(fabric, ecn):
    """A law of which it knows nothing marks above 5 packets; its own threshold is 36."""
    marking = "[fairq_ryu]\nqueue_law = mark\n\n[mark]\nthreshold = 5\n"
    lab = fabric("acdc", marking + "\n[acdc]\nthreshold = 36\n")
    sink, _ = lab.bulk()

    def marked():
        return (lab.port_status()["queue_law"] or {}).get("marked", 0)

    def met():
        """Packets with a mark that the receiver has had, and echoes of which the sender has heard."""
        lines = [line.split() for line in lab["r"].cmd("cat /proc/net/netstat").splitlines()]
        names, counts = (line for line in lines if line[:1] == ["IpExt:"])
        return int(counts[names.index("InCEPkts")]), sum(
            map(int, re.findall(r"delivered_ce:(\d+)", lab["h1"].cmd("ss -tinO dport 5001")))
        )

    def grows():
        first = marked()
        return until(lambda: marked() > first + 200)

    assert until(lambda: marked() > 0 and lab.port_status()["rewritten"] > 1000)
    before = met()
    assert grows()
    after = met()
    assert after[0] > before[0] and after[1] == before[1]
    assert until(lambda: lab.port_status()["rule"]["law"]["queue"] < 18 * 1514)
    assert goes_on(sink)
    lab.change_policy("droptail")
    assert until(lambda: lab.port_status()["rule"] is None)
    assert grows() and until(lambda: met()[1] > after[1])
