"""Shared by the tests of queues: ports with a real htb and bfifo, and the kernel's counters of them."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.program import ProgramLimits
from fairq_ryu.agent.qdisc import read_queue_limits
from tests.switch.rig import make_port, namespace, run

LIMITS = ProgramLimits(flows=64, rules=16, ports=4)
EXPERIMENTAL = 0x88B5


def set_queue_limits(name: str, rate: str, limit: int) -> None:
    """A bottleneck: htb at ``rate`` over a bfifo of ``limit`` bytes."""
    if "burst" not in rate:
        rate += " burst 2k cburst 2k"
    if kernel_counters(name).get("kind") != "htb":
        run(*f"tc qdisc add dev {name} root handle 1: htb default 1".split())
    run(*f"tc class replace dev {name} parent 1: classid 1:1 htb rate {rate}".split())
    run(*f"tc qdisc replace dev {name} parent 1:1 handle 10: bfifo limit {limit}".split())


def tc(words: str) -> None:
    run("tc", *words.split())


def kernel_counters(name: str) -> dict[str, Any]:
    """The root qdisc as tc shows it."""
    found = json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", name))
    return next((q for q in found if q.get("root")), {})


def send(name: str, number: int, size: int) -> None:
    """Send Ethernet frames of ``size`` bytes by an interface, through its qdisc."""
    frame = b"\xff" * 6 + b"\x02\0\0\0\0\x09" + EXPERIMENTAL.to_bytes(2, "big")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        raw.bind((name, EXPERIMENTAL))
        for _ in range(number):
            try:
                raw.send(frame.ljust(size, b"\0"))
            except OSError as error:
                assert "buffer" in str(error)  # ENOBUFS: the queue dropped it


def wait_empty(name: str) -> None:
    deadline = time.monotonic() + 20
    while kernel_counters(name)["backlog"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@dataclass
class Watched:
    datapath: BridgePrograms
    port: BridgePort


def read_limits(watched: Watched) -> None:
    """As the agent does every second."""
    indexes = [watched.port.ifindex]
    watched.datapath.set_queue_limits(read_queue_limits(indexes), indexes)


def crossed(datapath: BridgePrograms) -> list[int]:
    """The ports whose queues have crossed a threshold since the last call."""
    return datapath.crossed(datapath.queues.crossed())


def take_drops(datapath: BridgePrograms, limit: int) -> list[tuple[int, bytes, int]]:
    """Dropped packets that have arrived."""
    return datapath.dropped(datapath.drops.take(limit))


@contextmanager
def watching(port: BridgePort) -> Iterator[Watched]:
    host = HostPrograms(LIMITS)
    try:
        host.load([port.ifindex])
        datapath = BridgePrograms(host)
        datapath.add_port(port)
        found = Watched(datapath, port)
        read_limits(found)
        yield found
    finally:
        host.close()


@contextmanager
def bottleneck(rate: str, limit: int) -> Iterator[Watched]:
    """A watched port ``p1`` in a namespace of its own, with such a queue."""
    with namespace():
        port = make_port(1, "p1")
        set_queue_limits("p1", rate, limit)
        with watching(port) as found:
            yield found
