"""A law in the switch with a real controller, agent, queue and TCP: what happens when one of them stops."""

import json
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from fairq_ryu import client
from tests.support.capture import frames
from tests.support.fixtures import made_lab
from tests.support.lab import TOKEN, fairq, output, received, until

pytestmark = pytest.mark.root
LEASE = 3
ON_THE_WAY = 60
"""There are never more ACKs between bridge and sender than the window has segments; all windows of a law
together are no more than the buffer of 60,000 bytes and what is on the line.
"""
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 5002), 5)"


@pytest.fixture(scope="module")
def governed(tmp_path_factory):
    """A bulk flow whose windows a law in the switch lowers. Each test leaves it like that."""
    with made_lab(tmp_path_factory.mktemp("laws")) as lab:
        # A policy of a mode of its own: the mode can be changed while the controller runs.
        config = f"[fairq_ryu]\nlease = {LEASE}\n\n[modes]\npolicy:fixed = observe\n"
        lab.govern("fairq", config)
        lab.sink, _ = lab.bulk()
        assert until(lambda: lab.port_status()["rewritten"] > 1000)
        yield lab


def law(lab):
    """The state of the law of the receiver's port; None: the port has none."""
    rule = lab.port_status()["rule"]
    return rule and rule["law"]


def change(lab, policy="fairq", **parameters):
    lab.change_policy(policy, **parameters)


def test_a_law_goes_on_while_the_controller_is_stopped_and_ends_with_its_lease(governed):
    lab = governed
    lab.manager.process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(0.2)  # what the controller has sent before
        before, first = lab.port_status(), law(lab)
        assert until(
            lambda: (
                (now := law(lab))
                and now["updates"] > first["updates"] + 100
                and lab.port_status()["rewritten"] > before["rewritten"]
            ),
            LEASE,
        )
        assert until(lambda: law(lab) is None, 2 * LEASE)
        freed = lab.port_status()["rewritten"]
        count = received(lab.sink)
        assert until(lambda: received(lab.sink) > count + 1_000_000)
        assert lab.port_status()["rewritten"] == freed
    finally:
        lab.manager.process.send_signal(signal.SIGCONT)
    assert until(lambda: law(lab) is not None and lab.port_status()["rewritten"] > freed + 1000)


def test_a_law_ends_with_its_agent_and_comes_back_with_the_next(governed):
    lab = governed
    port = lab.port_status()["name"]

    def dropped():
        """Packets that the qdiscs of the port have dropped."""
        shown = output("tc", "-s", "-j", "qdisc", "show", "dev", port)
        return sum(each["drops"] for each in json.loads(shown))

    lab.agent_process.end(signal.SIGKILL)
    time.sleep(2 * LEASE)
    # Nobody lowers its windows any more, so TCP fills the queue until it overflows.
    before = dropped()
    assert until(lambda: dropped() > before)
    lab.agent_process = lab.agent(f"tcp:127.0.0.1:{lab.manager.port}")
    rewritten = lab.port_status()["rewritten"]
    assert until(lambda: law(lab) is not None and lab.port_status()["rewritten"] > rewritten + 1000)


def test_a_law_that_is_changed_under_load_applies_to_every_ack(governed):
    lab = governed
    snmp = Path(f"/proc/{lab['h1'].pid}/net/snmp")

    def updates():
        return (now := law(lab)) and now["updates"]

    def counted():
        return lab.port_status()["acks"]

    def arrived():
        names, values = (line.split() for line in snmp.read_text().splitlines() if line.startswith("Tcp:"))
        return int(dict(zip(names, values, strict=True))["InSegs"])

    before, first = counted(), arrived()
    for alpha in (0.5, 0.1, 0.4, 0.25):
        change(lab, alpha=alpha)
        assert until(lambda alpha=alpha: (now := law(lab)) and now["target"] == alpha * 60_000)
        then = until(updates)
        assert until(lambda then=then: (updates() or 0) > then + 1000)
    last = arrived()  # before what is counted, so that the bridge has counted each of these
    assert last - first > 1000
    assert counted() - before >= last - first - ON_THE_WAY


def test_acdc_holds_the_queue_of_hosts_without_dctcp_at_its_threshold(governed):
    lab = governed

    def highest():
        """The highest mean of an interval among some, when the law has reduced the window many times."""
        before = until(lambda: (now := law(lab)) and now["updates"])
        assert until(lambda: (now := law(lab)) and now["updates"] > before + 20)
        return max(((now := law(lab)) and now["queue"]) or 0 for _ in range(50))

    def set_threshold(packets):
        change(lab, "acdc", threshold=packets)
        target = packets * 1514
        assert until(lambda: (now := law(lab)) and now["target"] == target and now["updates"] > 20)

    def holds_both_without_a_drop():
        set_threshold(5)
        first = lab.port_status()
        short = highest()
        set_threshold(25)
        assert until(lambda: (now := law(lab)) and now["queue"] > 20 * 1514 > short)
        last = lab.port_status()
        assert last["rewritten"] > first["rewritten"]
        return last["queue"]["drops"] == first["queue"]["drops"]

    try:
        # A sender that had no processor for a while may overflow the queue whatever its window.
        assert until(holds_both_without_a_drop, 60, 0)
    finally:
        change(lab)
    assert until(lambda: (now := law(lab)) and now["kind"] == "fairq")


def test_a_queue_law_judges_packets_and_ends_with_its_lease(governed):
    """The target is so short that CoDel drops packets of a bulk flow that nothing else limits."""
    lab = governed

    def shown():
        with urllib.request.urlopen(f"{lab.manager.url}/v1/ports", timeout=20) as answer:
            return next(row for row in json.load(answer)["ports"] if row["port"] == lab.port)

    def judged():
        return lab.port_status()["queue_law"]

    change(lab, "codel", delay_target=0.0005)
    try:
        assert until(lambda: judged() and judged()["judged"] > 1000 and judged()["dropped"] > 0)
        assert (judged()["kind"], judged()["target_us"]) == ("codel", 500)
        assert until(lambda: shown()["judged"] and shown()["judged_dropped"] > 0)
        assert (shown()["queue_law"], shown()["queue_law_missing"]) == ("codel", None)
        assert shown()["drops"] >= shown()["judged_dropped"], "they count among the drops of the port"
        lab.manager.process.send_signal(signal.SIGSTOP)
        try:
            assert until(lambda: judged() is None, 2 * LEASE)
            count = received(lab.sink)
            assert until(lambda: received(lab.sink) > count + 1_000_000)
        finally:
            lab.manager.process.send_signal(signal.SIGCONT)
        assert until(lambda: judged() is not None)
    finally:
        change(lab)
    assert until(lambda: judged() is None and law(lab) is not None)


def test_the_agent_knows_the_deadline_of_an_announced_connection_when_it_begins(governed):
    lab = governed

    def takes_turns():
        with urllib.request.urlopen(f"{lab.manager.url}/v1/ports", timeout=20) as answer:
            ports = json.load(answer)["ports"]
        return [row["name"] for row in ports if row["turns_waiting"] is not None]

    def announce():
        address = {"url": lab.manager.url, "token": TOKEN}
        client.announce(lab["h2"].IP(), lab["r"].IP(), 5002, size=9000, deadline=0.5, **address)

    with pytest.raises(client.Refused, match="409"):
        announce()
    change(lab, turns="on")
    try:
        assert until(lambda: f"s1-eth{lab.port}" in takes_turns())
        announce()
        assert lab.status()["deadlines"] == 0
        # Nobody listens there: the SYN is enough.
        assert "refused" in lab["h2"].cmd(f"python3 -c '{CONNECT}' {lab['r'].IP()} 2>&1")
        assert until(lambda: lab.status()["deadlines"] == 1)
    finally:
        change(lab, turns="off")
    assert until(lambda: not takes_turns())


def ports(lab):
    with urllib.request.urlopen(f"{lab.manager.url}/v1/ports", timeout=20) as answer:
        return json.load(answer)["ports"]


def captured(lab, folder):
    """The frames of the bulk flow at both its ends, the sender's from before to after the receiver's."""
    programs = {}
    for host in ("h1", "r"):
        command = f"tcpdump --immediate-mode -U -s 1600 -B 32768 -Z root -i {host}-eth0 -w {folder / host}"
        programs[host] = lab[host].popen([*command.split(), "tcp", "port", "5001"], stderr=subprocess.PIPE)
        while b"listening on" not in (line := programs[host].stderr.readline()):
            assert line, "tcpdump has ended"
    count = received(lab.sink)
    assert until(lambda: received(lab.sink) > count + 2_000_000)
    found = []
    for host in ("r", "h1"):
        programs[host].send_signal(signal.SIGINT)
        assert b"\n0 packets dropped by kernel" in programs[host].communicate(timeout=30)[1]
        time.sleep(1)
        found.append(Counter(frames((folder / host).read_bytes())))
    return found


def test_an_observed_port_changes_no_packet_and_counts_what_it_would_lower(governed, tmp_path):
    """Every frame at the receiver, of both directions, is at the sender byte by byte. Not so when it acts."""
    lab = governed
    for name in ("act", "observe"):
        (tmp_path / name).mkdir()
    receiver, sender = captured(lab, tmp_path / "act")
    assert (receiver - sender).total() > 100
    change(lab, "fixed")
    try:
        assert until(
            lambda: lab.port_status()["mode"] == "observe" and lab.port_status()["would_lower"] > 500
        )
        first = lab.port_status()
        receiver, sender = captured(lab, tmp_path / "observe")
        last = lab.port_status()
        assert receiver.total() > 500 and receiver - sender == Counter()
        assert last["rewritten"] == first["rewritten"] and last["would_lower"] > first["would_lower"]
        assert last["rule"]["kind"] == "pool"
        assert until(lambda: ports(lab)[-1]["would_lower"] >= last["would_lower"])
        assert ports(lab)[-1]["mode"] == "observe" and ports(lab)[-1]["pool_bytes"]
    finally:
        change(lab)
    assert until(lambda: lab.port_status()["rewritten"] > last["rewritten"] + 500)
    assert lab.port_status()["mode"] == "act"


def test_a_disable_takes_effect_before_a_lease_would_end_and_ends_by_itself(governed):
    lab = governed
    where = ("--url", lab.manager.url, "--bridge", "s1", "--port", f"s1-eth{lab.port}")

    def told():
        shown = fairq("show", "events", "--kind", "mode", "--json", "--url", lab.manager.url)
        return " ".join(each["message"] for each in json.loads(shown.stdout)["events"])

    def disable(*duration):
        answer = fairq("disable", *where, *duration)
        assert answer.returncode == 0, answer.stderr
        assert "act -> disabled" in answer.stdout and "1 -> 0" in answer.stdout

    disable()
    assert until(lambda: law(lab) is None, LEASE, 0.01)
    freed, count = lab.port_status()["rewritten"], received(lab.sink)
    assert until(lambda: received(lab.sink) > count + 1_000_000)
    assert lab.port_status()["rewritten"] == freed
    assert fairq("enable", *where).returncode == 0
    assert until(lambda: law(lab) is not None)
    began = time.monotonic()
    disable("--for", "1s")
    assert until(lambda: "the time of a disable is over" in told())
    assert time.monotonic() - began >= 1
    assert until(lambda: law(lab) is not None)
    assert until(lambda: lab.port_status()["rewritten"] > freed + 500)
