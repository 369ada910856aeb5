"""The queue programs compared with the kernel's counters: real packets through a real htb and bfifo."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.programs.queue import QueueState
from fairq_ryu.laws.fairq import FairQLaw
from tests.switch.queue_rig import (
    Watched,
    bottleneck,
    kernel_counters,
    read_limits,
    send,
    set_queue_limits,
    tc,
    wait_empty,
)
from tests.switch.rig import namespace, run


@pytest.fixture
def watched() -> Iterator[Watched]:
    with bottleneck("8mbit", 20_000) as found:
        yield found


def counted(watched: Watched) -> tuple[QueueState, dict[str, Any], int]:
    """What the programs and tc have counted when the queue is empty, and the packets that were sent for it:
    while any process attaches a program to the tracepoints, the kernel calls none, and the next packet
    corrects the counts.
    """
    for more in range(20):
        wait_empty("p1")
        counters, found = kernel_counters("p1"), watched.datapath.queue(watched.port)
        if (found.packets, found.backlog) == (counters["packets"], 0):
            return found, counters, more
        send("p1", 1, 60)
    pytest.fail(f"{found.packets} and {counters['packets']} packets")


def test_queue_limits_are_read(watched: Watched) -> None:
    found = watched.datapath.queue_limits(watched.port)
    assert (found.kind, found.limit, found.rate) == ("htb", 20_000, 1_000_000)


def test_packets_bytes_and_drops_are_those_of_tc(watched: Watched) -> None:
    before = watched.datapath.queue(watched.port)
    assert (before.packets, before.bytes, before.drops, before.backlog) == (0, 0, 0, 0)
    for size in (60, 1000, 1514, 333):
        send("p1", 60, size)
    found, counters, more = counted(watched)
    assert counters["drops"] > 0
    assert (found.packets, found.bytes, found.drops, found.backlog) == (
        counters["packets"],
        counters["bytes"],
        counters["drops"],
        0,
    )
    assert found.packets + found.drops == 240 + more
    assert 20_000 - 1514 < found.peak <= 20_000


def test_packets_that_leave_together(watched: Watched) -> None:
    """The kernel dequeues several packets at once where it can."""
    set_queue_limits("p1", "8kbit", 100_000)
    for size in (60, 1000, 1514, 333) * 10:
        send("p1", 1, size)
    set_queue_limits("p1", "1gbit burst 200k cburst 200k", 100_000)
    found, counters, more = counted(watched)
    assert (found.packets, found.bytes) == (counters["packets"], counters["bytes"])
    assert found.packets == 40 + more


def test_backlog_while_the_queue_is_not_drained(watched: Watched) -> None:
    set_queue_limits("p1", "40kbit", 20_000)  # 5 packets a second
    read_limits(watched)
    send("p1", 10, 1000)
    for _ in range(20):
        before, found, after = (
            kernel_counters("p1"),
            watched.datapath.queue(watched.port),
            kernel_counters("p1"),
        )
        if before["backlog"] == after["backlog"]:
            assert found.backlog == before["backlog"] > 0
            assert found.peak >= found.backlog
            return
    pytest.fail("the queue never stood still")


def test_mean_and_histogram(watched: Watched) -> None:
    set_queue_limits("p1", "400kbit", 60_000)
    read_limits(watched)
    send("p1", 1, 100)
    wait_empty("p1")
    start = watched.datapath.queue(watched.port)
    spent = dict.fromkeys([(0, 0)], 0) | {(a, b): ns for a, b, ns in watched.datapath.histogram(watched.port)}
    began = time.monotonic_ns()
    send("p1", 50, 1000)
    sent = time.monotonic_ns()
    # The backlog of tc meanwhile: about a second, while 50,000 bytes drain. It was read after the first time,
    # which is before tc was started, and before the second; on a slow machine both are far from each other.
    samples = [(sent, 50_000, began)]
    while samples[-1][1]:
        asked = time.monotonic_ns()
        samples.append((asked, int(kernel_counters("p1")["backlog"]), time.monotonic_ns()))
    end = watched.datapath.queue(watched.port)
    ours = end.byte_ns - start.byte_ns
    pairs = list(itertools.pairwise(samples))
    # It never grows after the last packet was sent.
    least = sum((later[0] - earlier[0]) * later[1] for earlier, later in pairs)
    most = sum((later[2] - earlier[2]) * earlier[1] for earlier, later in pairs)
    assert least <= ours <= most
    # The histogram covers the same time, to the width of its bins.
    after = {(a, b): ns for a, b, ns in watched.datapath.histogram(watched.port)}
    low = sum(pair[0] * (ns - spent.get(pair, 0)) for pair, ns in after.items())
    high = sum(pair[1] * (ns - spent.get(pair, 0)) for pair, ns in after.items())
    assert low <= ours <= high
    assert max(b for _, b in after) >= end.peak >= max(b for _, b, _ in samples[1:])


def test_peak_restarts_from_the_backlog(watched: Watched) -> None:
    send("p1", 15, 1000)
    wait_empty("p1")
    assert watched.datapath.queue(watched.port).peak > 5000
    watched.datapath.restart_peaks()
    assert watched.datapath.queue(watched.port).peak == 0
    send("p1", 1, 500)
    wait_empty("p1")
    assert watched.datapath.queue(watched.port).peak <= 500


def test_drops_are_counted_on_when_the_qdisc_is_replaced(watched: Watched) -> None:
    send("p1", 60, 1000)
    wait_empty("p1")
    before = watched.datapath.queue(watched.port).drops
    assert before > 0
    run("tc", "qdisc", "del", "dev", "p1", "root")
    set_queue_limits("p1", "8mbit", 20_000)
    send("p1", 40, 1000)
    wait_empty("p1")
    counters = kernel_counters("p1")
    assert 0 < counters["drops"] < before
    assert watched.datapath.queue(watched.port).drops == before + counters["drops"]


def test_same_index_in_another_namespace_is_not_counted(watched: Watched) -> None:
    send("p1", 3, 1000)
    wait_empty("p1")
    before = watched.datapath.queue(watched.port)
    index = str(watched.port.ifindex)
    with namespace():
        run("ip", "link", "add", "p1", "index", index, "type", "veth", "peer", "name", "p1h")
        for end in ("p1", "p1h"):
            run("ip", "link", "set", end, "up")
        set_queue_limits("p1", "8mbit", 5000)
        send("p1", 30, 1000)
        wait_empty("p1")
        assert socket.if_nametoindex("p1") == watched.port.ifindex
        assert kernel_counters("p1")["packets"] > 0
    after = watched.datapath.queue(watched.port)
    assert after[:6] == before[:6]


def test_interface_that_is_no_port_is_not_counted(watched: Watched) -> None:
    set_queue_limits("p1h", "8mbit", 20_000)
    before = watched.datapath.queue(watched.port)
    send("p1h", 10, 1000)
    wait_empty("p1h")
    assert watched.datapath.queue(watched.port)[:6] == before[:6]


def test_port_without_a_queue(watched: Watched) -> None:
    run("tc", "qdisc", "del", "dev", "p1", "root")
    send("p1", 5, 1000)
    found = watched.datapath.queue(watched.port)
    assert (found.backlog, found.peak, found.drops) == (0, 0, 0)


def test_a_queue_that_is_several_or_cannot_be_read_has_no_limit(watched: Watched) -> None:
    tc("class add dev p1 parent 1: classid 1:2 htb rate 8mbit")
    tc("qdisc add dev p1 parent 1:2 handle 20: bfifo limit 20000")
    read_limits(watched)
    found = watched.datapath.queue_limits(watched.port)
    assert (found.limit, found.measured) == (0, False) and "2 leaf classes" in found.reason
    tc("qdisc del dev p1 root")
    tc("qdisc add dev p1 root pfifo_fast")
    read_limits(watched)
    found = watched.datapath.queue_limits(watched.port)
    assert (found.kind, found.limit, found.measured) == ("pfifo_fast", 0, False)
    tc("qdisc del dev p1 root")
    tc("qdisc add dev p1 root handle 1: tbf rate 8mbit burst 3k limit 20000")
    tc("qdisc add dev p1 parent 1:1 bfifo limit 9000")
    read_limits(watched)
    found = watched.datapath.queue_limits(watched.port)
    assert (found.kind, found.limit, found.rate, found.reason) == ("tbf", 9000, 1_000_000, "")


def test_queues_under_a_multiqueue_root_are_not_mixed_into_one(watched: Watched) -> None:
    """Each of them would overwrite the others' backlog; so none of them is counted."""
    run("tc", "qdisc", "del", "dev", "p1", "root")
    run("tc", "qdisc", "add", "dev", "p1", "root", "handle", "1:", "mq")
    # Less than a full frame: the kernel then never bypasses an empty queue.
    run("tc", "qdisc", "add", "dev", "p1", "parent", "1:1", "bfifo", "limit", "1000")
    run("tc", "qdisc", "add", "dev", "p1", "parent", "1:2", "bfifo", "limit", "1000")
    send("p1", 5, 60)
    assert kernel_counters("p1")["packets"] == 5
    assert watched.datapath.queue(watched.port).packets == 0


def test_a_law_ticks_with_the_packets_of_its_queue(watched: Watched) -> None:
    """Thirty frames queue behind 1 MB/s; the law sees the queue grow, and its mean."""
    data, port = watched.datapath, watched.port
    limits = data.limits_of(port.ofport)
    assert (limits.limit, limits.rate) == (20_000, 1_000_000)
    law = parameters(FairQLaw(), limits)
    send("p1", 1, 1000)
    assert data.law_state(port.ofport) is None
    data.install_law(port.ofport, 1, law, time.monotonic_ns() + 3600 * 10**9)
    send("p1", 30, 1000)
    wait_empty("p1")
    state = data.law_state(port.ofport)
    assert state.last_ns and state.segment == 1460
    assert state.pool == law.target << 8 == 5_000 << 8, "without flows the pool is the target"
    ticked = state.last_ns
    send("p1", 1, 1000)
    assert data.law_state(port.ofport).last_ns > ticked
    data.install_law(port.ofport, 1, law, 1)
    ticked = data.law_state(port.ofport).last_ns
    time.sleep(0.001)
    send("p1", 1, 1000)
    wait_empty("p1")
    assert data.law_state(port.ofport).last_ns == ticked, "its lease has ended"
