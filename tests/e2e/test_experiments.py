"""Each kind of traffic once, with few flows, on real switches: all figures are there, and no byte was
altered.
"""

import contextlib
import json
import os
import signal
import subprocess

import pytest

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.measure import tcp_trace
from fairq_ryu.experiments.testbed import INSISTS_S
from fairq_ryu.experiments.workloads.empirical.figures import RECORD
from fairq_ryu.experiments.workloads.empirical.schedule import schedule
from tests.support.lab import ENVIRONMENT, FAIRQ, ROOT, Process, fairq, until
from tests.support.small_runs import run

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]


def test_a_queue_that_no_agent_sees_is_governed_from_behind(tmp_path):
    """The drops are those of the port of the top-of-rack switch, as tc counts them there."""
    small = ("senders=6", "elephants=3", "mice_per_sender=2", "rounds=4", "warmup_s=1", "elephants_only_s=0")
    plain, governed = run(
        tmp_path / "out", "incast-tor", "floor=no", "rate_mbit=20", "buffer_bytes=60000", *small,
        policy="droptail,fairq", pictures=False,
    )  # fmt: skip
    queues = [each["queue"] for each in (plain, governed)]
    assert all(each["port"] == "tor-eth7" for each in queues)
    assert plain["queue"]["qdisc_drops"] > 0 and plain["queue"]["rounds"]["acks_rewritten"] == 0
    assert governed["queue"]["qdisc_drops"] < plain["queue"]["qdisc_drops"]
    assert governed["queue"]["rounds"]["acks_rewritten"] > 0
    assert governed["queue"]["rounds"]["mean_bytes"] < plain["queue"]["rounds"]["mean_bytes"]
    assert governed["mice"]["unfinished"] == 0


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 3 MB."""
    path = tmp_path / "disk"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(path)], check=True)
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_disk_that_is_full_at_the_end_loses_no_figures(tmp_path, small_disk):
    out, other = small_disk / "out", tmp_path / "other"
    other.mkdir()
    words = ["run", "incast", "--policy", "bare", "--out", str(out), "--set", "floor=no"]
    for each in ("senders=2", "elephants=1", "rounds=2", "warmup_s=0.5", "elephants_only_s=0"):
        words += ["--set", each]
    run = Process(tmp_path / "log", FAIRQ, *words, env={**ENVIRONMENT, "TMPDIR": str(other)})
    run.wait_for("round 1 of 2")
    with contextlib.suppress(OSError), (small_disk / "others").open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    assert run.process.wait(120) == 2, run.text
    assert "No space left on device" in run.text and "Traceback" not in run.text
    assert "mice FCT p99" in run.text  # the table
    assert {each.name for each in out.iterdir()} == {"logs"}
    (kept,) = other.iterdir()
    assert f"it is in {kept}/result.json" in run.text
    assert json.loads((kept / "result.json").read_text())["policies"][0]["failed"] is None


@pytest.fixture
def mnexec(tmp_path):
    """Replace Mininet's program by a script; returns the environment in which it is found."""

    def write(script):
        path = tmp_path / "mnexec"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return {**ENVIRONMENT, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    return write


def test_a_run_without_namespaces_is_refused_before_anything_is_built(tmp_path, mnexec, nothing_left):
    environment = mnexec("echo unshare: Operation not permitted >&2; exit 1")
    answer = fairq("run", "incast", "--out", str(tmp_path / "out"), env=environment)
    assert answer.returncode == 2 and answer.stderr.count("\n") == 1
    assert "unshare: Operation not permitted" in answer.stderr and "Remedy: run it where" in answer.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "numbers",
    [(signal.SIGINT, signal.SIGINT), (signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGHUP)],
)
def test_a_second_signal_ends_a_run_whose_hosts_do_not_start(tmp_path, mnexec, nothing_left, numbers):
    # Namespaces can be made, but no shell of a host ever shows its prompt.
    environment = mnexec(f'[ "$1" = -n ] && exec true; echo >> {tmp_path}/started; exec sleep 600')
    arguments = ["run", "incast", "--policy", "bare", "--out", str(tmp_path / "out"), "--set", "floor=no"]
    run = Process(tmp_path / "log", FAIRQ, *arguments, env=environment)
    try:
        assert until((tmp_path / "started").exists, 60), run.text
        run.process.send_signal(numbers[0])
        with pytest.raises(subprocess.TimeoutExpired):
            run.process.wait(2 * INSISTS_S)  # the program may take the first one late
        assert run.end(numbers[1], 30) == 130
    finally:
        run.process.kill()
    assert "interrupted" in run.text and "Traceback" not in run.text


def test_flows_with_deadlines(tmp_path):
    found = run(
        tmp_path, "deadlines", "sizes_bytes=[200_000, 400_000]", "deadlines_s=[0.001, 15]", "repeats=2"
    )
    figures = found["deadlines"]
    assert (figures["deadlines"], figures["unfinished"]) == (4, 0)
    # Not even the bits fit into the first deadline; the second is far off.
    assert [each["missed"] for each in figures["by_flow"]] == [2, 0]
    assert figures["endless_goodput_mbit"] > 0
    assert found["integrity"]["flows"] >= 6
    assert (tmp_path / "completion.png").exists()


def test_fan_in_of_prepared_connections_and_hosts_without_options(tmp_path):
    settings = ["senders=4", "flows=[2, 8]", "rounds=2", "round_interval_s=0.3"]
    settings += ["sack=no", "timestamps=no", "cc=reno"]
    found = run(tmp_path, "rounds", *settings, policy="fairq")
    few, many = found["fanin"]["sweep"]
    assert (few["n"], few["flows"], many["n"], many["flows"]) == (2, 4, 8, 16)
    assert found["fanin"]["unfinished"] == 0
    assert few["last_byte_ms"]["p50"] > 0 and many["last_byte_ms"]["p50"] > 0


def test_messages_beside_an_elephant(tmp_path):
    settings = [
        "senders=3",
        "connections=5",
        "rate_mbit=50",
        "warmup_s=0.5",
        "elephants_only_s=0.5",
        "messages_s=1",
    ]
    found = run(tmp_path, "messages", *settings)
    assert 5 * 6 <= found["messages"]["sent"] <= 5 * 7 and found["messages"]["unanswered"] == 0
    assert found["elephants"]["alone_sum_mbit"] > 0 and found["elephants"]["goodput_sum_mbit"] > 0


def test_a_flood_beside_elephants(tmp_path):
    settings = ["senders=3", "elephants=2", "warmup_s=0.5", "elephants_only_s=0.5"]
    settings += ["flood_s=1", "after_s=0.5"]
    found = run(tmp_path, "flood", *settings, "syn_rate=500", "flood_addresses=3")
    assert 0 < found["flood"]["syns"] <= 501  # one at once, and 500 in the second
    assert found["elephants"]["alone_sum_mbit"] > 0 and found["elephants"]["after_sum_mbit"] > 0


def test_dropped_segments_are_put_back_before_their_senders_time_out(tmp_path):
    """150 flows of two segments each, more than the buffer can store: a sender that loses its last segment
    can only wait for its timeout. Timestamps are on: a segment that is put back must not be older than the
    last one of the receiver. The timeout is long, so that a busy machine puts a segment back before it. A
    base window of ten segments lets the volley overflow the buffer.
    """
    config = "[sed]\nbase_segments = 10\n"
    settings = ("senders=10", "rate_mbit=20", "flows=[150]", "rounds=2", "rto_min_ms=2500", "floor=no")
    sed, rsed = run(tmp_path, "rounds", *settings, policy="sed,rsed", config=config, pictures=False)
    assert (sed["fanin"]["unfinished"], rsed["fanin"]["unfinished"]) == (0, 0)
    assert rsed["fanin"]["rto_timeouts"] < sed["fanin"]["rto_timeouts"]
    # What is put back was dropped all the same. Over the whole run tc counts a few more.
    for each in sed, rsed:
        assert each["losses"]["taken"] >= each["queue"]["qdisc_drops"] > each["losses"]["taken"] / 2


def test_deadlines_are_met_when_many_flows_start_at_once(tmp_path):
    """Five applications, each with its own receiver, open 75 connections at one moment: each SYN is queued
    until its windows are installed, and the one with the earliest deadline is forwarded first. The link is
    slow, so that the port and not the machine is the bottleneck: 390 KB overflow it even if the machine needs
    half a second to send them.
    """
    settings = ("senders=15", "rate_mbit=4", "buffer_bytes=60000", "flows=[15]", "rounds=2", "floor=no")
    droptail, sed = (
        each["fanin"]
        for each in run(
            tmp_path, "deadlines-fanin", *settings, policy="droptail,sed", config="", pictures=False
        )
    )
    for each in droptail, sed:
        assert (each["flows"], each["deadlines"]) == (150, 150)
    assert sed["unfinished"] == 0  # DropTail may lose a SYN again and again
    assert sed["announced"] >= 150
    # Started at once they overflow the queue; started one after the other they do not.
    assert sed["qdisc_drops"] < droptail["qdisc_drops"]


def test_flows_of_published_sizes_start_when_they_are_due_and_are_traced(tmp_path):
    """Both policies have the flows that follow from the scenario."""
    settings = [
        "senders=3",
        "rate_mbit=20",
        "buffer_bytes=60000",
        "sizes=data-mining",
        "size_divisor=20",
        "size_cap_bytes=60000",
        "load=0.5",
        "warmup_s=0.5",
        "measured_s=2",
        "trace_flows=1",
        "floor=no",
    ]
    chosen = scenario.load("web-search", dict(each.split("=") for each in settings))
    due = [flow for flow in schedule(chosen) if flow.due_s >= chosen.warmup_s]
    plain, governed = run(tmp_path, "web-search", *settings, policy="droptail,fairq")
    for found in (plain, governed):
        figures = found["empirical"]
        assert figures["all"]["count"] == len(due) and figures["all"]["unfinished"] == 0
        assert figures["load"] == pytest.approx(sum(flow.size for flow in due) * 8 / (2 * 20e6))
        assert [part["count"] for part in figures["by_size"]] == [
            part["count"] for part in plain["empirical"]["by_size"]
        ]
        assert sum(part["count"] for part in figures["by_size"]) == len(due)
        # A probe for each sender, those on the empty network, and the flows of the warm-up.
        assert found["integrity"]["flows"] >= 3 + 50 + len(schedule(chosen))
        assert figures["alone_probe_ms"] == figures["probe_ms"] > 0
        assert 0 < figures["utilisation"] <= 1.05
        logs = tmp_path / "logs" / found["policy"]
        lines = (logs / "flows.csv").read_text().splitlines()
        assert lines[0] == ",".join(RECORD)
        assert [int(line.split(",")[2]) for line in lines[1:]] == [flow.size for flow in due]
        trace = tcp_trace.load(logs / tcp_trace.FILE_NAME)
        assert len(trace["flows"]) == 1 and trace["queue"]
        assert all(flow["samples"] and flow["bytes"] > 0 for flow in trace["flows"])
        assert (tmp_path / "tcp" / f"{found['policy']}-1.png").exists()
    assert (tmp_path / "slowdown_p99.png").exists()
    kinds = [
        {rule[1] for rule in tcp_trace.load(tmp_path / "logs" / name / tcp_trace.FILE_NAME)["law"]}
        for name in ("droptail", "fairq")
    ]
    assert kinds[0] == {""} and "fairq" in kinds[1]


def test_a_tenant_with_two_receivers_beside_short_flows(tmp_path):
    settings = [
        "rtt_ms=5",
        "receiver_delays_ms=[0, 60]",
        "stage_s=2.5",
        "settle_s=1",
        "short_rate=6",
        "short_most_bytes=20000",
    ]
    figures = run(tmp_path, "two-receivers", *settings)["tenants"]
    near, far = figures["flow_goodput_mbit"]
    assert near > 0 and far > 0
    assert figures["members"][0]["share"] == 1.0 and figures["jain"] is None
    assert not (tmp_path / "fairness.png").exists()
    assert figures["short"]["count"] > 0 and figures["short"]["unfinished"] == 0
    assert (tmp_path / "logs/droptail/delayline-2.log").exists()


def test_a_short_flow_beside_a_long_one_at_two_rates(tmp_path):
    settings = [
        "rates_mbit=[5, 10]",
        "rtt_ms=10",
        "buffer_bytes=40000",
        "long_bytes=1500000",
        "short_after_s=1",
        "repeats=2",
    ]
    found = run(tmp_path, "short-beside-long", *settings)
    slow, fast = found["pairs"]["rates"]
    assert [(each["rate_mbit"], each["buffer_bytes"]) for each in (slow, fast)] == [(5, 20_000), (10, 40_000)]
    # What the wire alone needs, without headers.
    assert all(each["long"]["fct_ms"]["mean"] > 12_000 / each["rate_mbit"] for each in (slow, fast))
    assert slow["long"]["fct_ms"]["mean"] > fast["long"]["fct_ms"]["mean"]
    assert all(each["short"]["fct_ms"]["count"] == 2 for each in (slow, fast))
    assert found["pairs"]["unfinished"] == 0
    # A probe of each sender too, in each network.
    assert found["integrity"]["flows"] >= 2 * (2 * 2 + 2)
    assert found["queue"]["limit_bytes"] == 40_000
    assert sorted(path.name for path in (tmp_path / "logs/droptail").iterdir()) == ["10mbit", "5mbit"]
    assert (tmp_path / "short_fct.png").exists() and (tmp_path / "long_fct.png").exists()


RAISES = """
from fairq_ryu.policies.base import PortLaw

class Law(PortLaw):
    def flow_started(self, flow, flows, now):
        raise RuntimeError("this law is broken")

class Broken:
    name, interval = "broken", 0.1
    def __init__(self, parameters):
        pass
    def port_law(self, port):
        return Law()
"""


def test_a_policy_that_raises_is_named_and_the_run_fails(tmp_path):
    """A package of someone else, whose law fails with the first flow."""
    site, out = tmp_path / "site", tmp_path / "out"
    metadata = site / "broken-1.dist-info"
    metadata.mkdir(parents=True)
    (site / "broken.py").write_text(RAISES)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[fairq_ryu.policies]\nbroken = broken:Broken\n")
    settings = [
        "senders=2",
        "elephants=1",
        "mice_per_sender=1",
        "rounds=1",
        "warmup_s=0.5",
        "elephants_only_s=0",
        "floor=no",
    ]
    answer = fairq(
        *("run", "incast", "--policy", "broken", "--out", str(out)),
        *(word for each in settings for word in ("--set", each)),
        env={**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])},
    )
    assert answer.returncode == 1, answer.stderr
    (policy,) = json.loads((out / "result.json").read_text())["policies"]
    assert policy["failed"] is None and policy["mice"]["count"] == 2
    assert "RuntimeError: this law is broken" in policy["unsound"]
    assert f"broken: {policy['unsound']}" in answer.stdout
