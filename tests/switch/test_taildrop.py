"""Tail drop, packet by packet, compared with the kernel's counters: real packets through a real htb and
bfifo.
"""

from __future__ import annotations

import ctypes
import json
import socket
import time
from collections.abc import Iterator

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.taildrop import start_taildrop
from fairq_ryu.experiments.measure.queues import PortLosses, read_losses
from tests.switch.queue_rig import kernel_counters, send, set_queue_limits, wait_empty
from tests.switch.rig import make_port, namespace, run


@pytest.fixture
def port() -> Iterator[str]:
    with namespace():
        make_port(1, "p1")
        set_queue_limits("p1", "40kbit", 20_000)  # five packets of 1000 bytes a second
        yield "p1"


def kernels_losses(name: str) -> PortLosses:
    return read_losses(json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", name)))


def test_a_packet_that_does_not_fit_is_dropped_without_an_error_for_its_sender(port: str) -> None:
    drop = start_taildrop({port: 20_000})
    before = kernels_losses(port)
    send(port, 60, 1000)
    counters = kernel_counters(port)
    assert counters["drops"] == 0 and 19_000 <= counters["backlog"] <= 20_000
    lost = kernels_losses(port).since(before)
    assert lost.refused == 0 and lost.taken == drop.dropped(socket.if_nametoindex(port))
    # The others are in the queue or on the wire.
    assert drop.dropped(socket.if_nametoindex(port)) == 60 - counters["packets"] - counters["qlen"] > 30
    set_queue_limits(port, "100mbit", 20_000)
    wait_empty(port)
    seen = drop.dropped(socket.if_nametoindex(port))
    send(port, 20, 1000)  # packets that fit are queued
    assert drop.dropped(socket.if_nametoindex(port)) == seen
    drop.close()


def test_a_packet_that_just_fits_is_queued(port: str) -> None:
    drop = start_taildrop({port: 20_000})
    set_queue_limits(port, "160bit", 20_000)
    send(port, 1, 1500)  # sent at once, and the next waits for more than a minute
    room = 20_000 - kernel_counters(port)["backlog"]
    sizes = [1000] * ((room - 1000) // 1000)
    sizes.append(room - sum(sizes))
    for size in sizes:
        send(port, 1, size)
    assert kernel_counters(port)["backlog"] == 20_000 and drop.dropped(socket.if_nametoindex(port)) == 0
    send(port, 1, 60)
    assert kernel_counters(port)["drops"] == 0 and drop.dropped(socket.if_nametoindex(port)) == 1
    drop.close()


def test_ports_that_share_a_memory_hold_as_much_as_is_free() -> None:
    """One busy port has half of the memory, two have a third each; a port of another group has its own."""
    names = ("p1", "p2", "p3")
    with namespace():
        for number, name in enumerate(names, start=1):
            make_port(number, name)
            set_queue_limits(name, "160bit", 60_000)  # what waits, waits for minutes
        drop = start_taildrop(dict.fromkeys(names, 30_000), {"p1": 1, "p2": 1, "p3": 2})
        held = {}
        for name in names:
            send(name, 60, 1000)
            held[name] = kernel_counters(name)["backlog"]
            assert kernel_counters(name)["drops"] == 0
        drop.close()
    # A packet of 1000 bytes is let in if it and what the group holds fit into what is left of the memory.
    assert 14_000 < held["p1"] <= 15_000 and held["p1"] == held["p3"]
    assert held["p2"] <= (31_000 - held["p1"]) / 2 < held["p2"] + 1000


def test_a_stale_full_queue_does_not_drop_every_packet(port: str) -> None:
    """The events that emptied it were missed. The rate is not known here: it is believed for a second."""
    drop = start_taildrop({port: 20_000})
    set_queue_limits(port, "100mbit", 20_000)
    time.sleep(0.05)  # a program has been attached
    ifindex = socket.if_nametoindex(port)
    queues, key = drop._queue.queues, ctypes.c_uint32(ifindex)
    for age, dropped in ((-(10**9), 5), (2 * 10**9, 5)):
        queues.set(key, layout.fq_queue(backlog=20_000, last_ns=time.monotonic_ns() - age))
        send(port, 5, 1000)
        assert drop.dropped(ifindex) == dropped
    wait_empty(port)
    assert kernel_counters(port)["packets"] == 5
    assert queues.get(key).backlog == 0
    drop.close()


def test_when_it_is_closed_the_queue_refuses_again(port: str) -> None:
    drop = start_taildrop({port: 20_000})
    drop.close()
    drop.close()
    send(port, 60, 1000)
    assert kernels_losses(port).refused > 30


def test_a_missing_interface_is_an_error_and_leaves_nothing(port: str) -> None:
    with pytest.raises(OSError, match="no interface"):
        start_taildrop({port: 20_000, "nobody": 1})
    assert "filter" not in run("tc", "filter", "show", "dev", port, "egress")
