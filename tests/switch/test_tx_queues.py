"""A port with several transmit queues, each with a qdisc of its own: real packets choose the queue."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from ctypes import c_uint32
from dataclasses import dataclass
from typing import Any

import pytest

from bench.program_run import LoadedProgram
from fairq_ryu.agent import layout
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.copies import RULES
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.program import ProgramLimits
from fairq_ryu.agent.qdisc import read_backlogs, read_queue_limits
from fairq_ryu.agent.tx_queues import queue_of, tx_queue_id
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import Thresholds
from tests.switch.packets import Segment
from tests.switch.queue_rig import crossed, send
from tests.switch.rig import Connection, Switch, make_port, run
from tests.switch.test_copies import NO_LIMIT, in_bucket, limited, take

QUEUES, LIMIT = 4, 30_000
POOL = 24_000


def tc(words: str) -> None:
    run("tc", *words.split())


def shape(name: str, queue: int, rate: str) -> None:
    """The queue has htb at ``rate`` over a bfifo of LIMIT bytes."""
    number = queue + 1
    if counted(name)[queue]["kind"] != "htb":
        tc(f"qdisc replace dev {name} parent 1:{number} handle 1{number}: htb default 1")
    tc(f"class replace dev {name} parent 1{number}: classid 1{number}:1 htb rate {rate} burst 3k cburst 3k")
    tc(f"qdisc replace dev {name} parent 1{number}:1 bfifo limit {LIMIT}")


def counted(name: str) -> list[dict[str, Any]]:
    """What tc shows of each transmit queue."""
    found = json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", name))
    by_parent = {each.get("parent"): each for each in found}
    return [by_parent[f"1:{number}"] for number in range(1, QUEUES + 1)]


def sent(name: str) -> list[int]:
    return [each["packets"] for each in counted(name)]


def settled(name: str) -> None:
    """Wait until all queues are empty."""
    deadline = time.monotonic() + 10
    while any(each["backlog"] for each in counted(name)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@dataclass
class QueueSwitch(Switch):
    """What leaves by port 2 is really sent there."""

    def leave(self, port: int, what: Segment | bytes) -> bytes:
        if port != 2:
            return super().leave(port, what)
        frame = what.frame() if isinstance(what, Segment) else what
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
            raw.bind((self.ports[2].name, 0x0800))
            raw.send(frame)
        return frame

    def recorded(self, flow: Connection) -> int:
        """What the data of a connection leaves by."""
        found = self.flow(flow.data_key)
        assert found is not None
        return int(found[0].out.ifindex)

    def reset(self) -> None:
        super().reset()
        window = self.datapath.window
        for known in window.ids(self.ports[2].ifindex):
            window._port_states.set(c_uint32(window.slots[known]), layout.fq_port(ifindex=known))

    def read_limits(self) -> None:
        indexes = [port.ifindex for port in self.ports.values()]
        self.datapath.set_queue_limits(read_queue_limits(indexes), indexes)


@pytest.fixture(scope="module")
def made(own_namespace: None) -> Iterator[QueueSwitch]:
    ports = {1: make_port(1, "p1")}
    several = ["numtxqueues", str(QUEUES), "numrxqueues", str(QUEUES)]
    run("ip", "link", "add", "p2", *several, "type", "veth", "peer", "name", "p2h", *several)
    for name in ("p2", "p2h"):
        run("ip", "link", "set", name, "up")
    ports[2] = BridgePort(2, "p2", socket.if_nametoindex("p2"), "02:00:00:00:00:00", True, True, 0)
    tc("qdisc add dev p2 root handle 1: mq")
    for queue in range(QUEUES):
        shape("p2", queue, "80mbit")
    host = HostPrograms(ProgramLimits(flows=1024, rules=16, ports=16, active_timeout=600))
    try:
        host.load([port.ifindex for port in ports.values()])
        datapath = BridgePrograms(host)
        for port in ports.values():
            datapath.add_port(port)
        with LoadedProgram.attached(ports[1].ifindex) as program:
            yield QueueSwitch(datapath, ports, program)
    finally:
        host.close()


@pytest.fixture
def switch(made: QueueSwitch) -> QueueSwitch:
    made.read_limits()
    made.reset()
    made.datapath.remove_law(2)
    settled("p2")
    return made


def choose(queue: int | None) -> None:
    """The kernel chooses this queue for all packets (XPS); None: by their hash."""
    for each in range(QUEUES):
        mask = f"{(1 << (os.cpu_count() or 1)) - 1:x}" if each == queue else "0"
        path = f"/sys/class/net/p2/queues/tx-{each}/xps_cpus"
        run("unshare", "-m", "sh", "-c", f"mount -t sysfs sysfs /sys && echo {mask} > {path}")


@pytest.fixture
def chosen(switch: QueueSwitch) -> Iterator[int]:
    choose(3)
    yield 3
    choose(None)


def test_each_queue_has_limits(switch: QueueSwitch) -> None:
    found = switch.datapath.limits_of(2)
    assert (found.kind, found.limit, found.rate, found.queues) == ("mq", LIMIT, 10_000_000, QUEUES)


def test_a_flow_belongs_to_the_queue_that_it_uses(switch: QueueSwitch) -> None:
    used = set()
    for _ in range(8):
        flow = Connection(switch).open()
        settled("p2")
        before = sent("p2")
        flow.data()
        settled("p2")
        (queue,) = [number for number, (a, b) in enumerate(zip(before, sent("p2"), strict=True)) if b > a]
        assert switch.recorded(flow) == tx_queue_id(switch.ports[2].ifindex, queue)
        used.add(queue)
    assert len(used) > 1
    assert switch.active(2) == 8
    records = switch.datapath.flow_records(0, [switch.ports[2]])
    assert sum(len(part) for part in records) == 8 * 88, "records have the number of the port"


def test_the_queues_share_the_rate_of_copies(switch: QueueSwitch) -> None:
    """Copies of SYN, FIN and RST are limited at the port, and have its number."""
    copies = switch.datapath.copies
    before = copies.port_limit, copies.bridge_limit
    try:
        limited(switch, port=in_bucket(5), bridge=NO_LIMIT)
        for _ in range(8):
            Connection(switch).syn()
        assert [copy.port for copy in take(switch)] == [2] * 5
        assert (switch.state(2).copies, switch.state(2).copies_suppressed) == (5, 3)
    finally:
        for rule in RULES:
            copies.remove(rule)
        copies.port_limit, copies.bridge_limit = before


def test_each_queue_has_a_pool_of_its_own(switch: QueueSwitch) -> None:
    switch.pool(2, POOL)
    flows = [Connection(switch, server_scale=0).open() for _ in range(8)]
    queues = [switch.recorded(flow) for flow in flows]
    assert len(set(queues)) > 1
    for flow, queue in zip(flows, queues, strict=True):
        assert flow.granted() == max(POOL // queues.count(queue), 1460)


def test_a_flow_whose_packets_are_seen_in_another_queue_moves_there(switch: QueueSwitch, chosen: int) -> None:
    """XPS overrides the hash, which is what is expected first."""
    switch.pool(2, POOL)
    flows = [Connection(switch, server_scale=0).open() for _ in range(6)]
    for flow in flows:
        flow.data()
        flow.data(seq=flow.client_isn + 1001)
    settled("p2")
    assert {queue_of(switch.recorded(flow)) for flow in flows} == {chosen}
    assert switch.active(2) == 6
    assert [flow.granted() for flow in flows] == [POOL // 6] * 6


def test_counts_and_backlogs_are_those_of_tc(switch: QueueSwitch, chosen: int) -> None:
    before = switch.datapath.tx_queues(switch.ports[2])
    shape("p2", chosen, "400kbit")
    switch.read_limits()
    send("p2", 60, 1000)
    index = tx_queue_id(switch.ports[2].ifindex, chosen)
    assert switch.datapath.queue(switch.ports[2]).backlog > 20_000
    assert 20_000 < read_backlogs([index])[index] <= LIMIT
    assert switch.datapath.queue(switch.ports[2]).peak > 25_000
    shape("p2", chosen, "80mbit")
    settled("p2")
    after, kernel = switch.datapath.tx_queues(switch.ports[2]), counted("p2")
    grown = [b.packets - a.packets for a, b in zip(before, after, strict=True)]
    assert grown == [0, 0, 0, grown[chosen]] and grown[chosen] + kernel[chosen]["drops"] >= 60
    assert after[chosen].drops == kernel[chosen]["drops"] > 0
    assert switch.datapath.queue(switch.ports[2]).drops == after[chosen].drops


def test_one_congested_queue_is_enough(switch: QueueSwitch, chosen: int) -> None:
    switch.datapath.set_thresholds(2, Thresholds(20_000, 5_000))
    crossed(switch.datapath)
    shape("p2", chosen, "400kbit")
    switch.read_limits()
    send("p2", 30, 1000)
    assert crossed(switch.datapath) == [2]
    notice = switch.datapath.congestion(2)
    assert (notice.state.value, notice.backlog > 20_000) == ("CNG", True)
    shape("p2", chosen, "80mbit")
    settled("p2")
    assert crossed(switch.datapath) == [2]
    assert switch.datapath.congestion(2).state.value == "NOM"
    switch.datapath.set_thresholds(2, None)


def test_the_law_of_a_port_has_a_state_in_each_queue(switch: QueueSwitch, chosen: int) -> None:
    data = switch.datapath
    law = parameters(FairQLaw(), data.limits_of(2))
    data.install_law(2, 1, law, time.monotonic_ns() + 3600 * 10**9)
    send("p2", 20, 1000)
    settled("p2")
    slots = [data.window.slots[known] for known in data.window.ids(switch.ports[2].ifindex)]
    ticked = [bool(data.window.law_states.get(c_uint32(slot)).last_ns) for slot in slots]
    assert ticked == [False, False, False, True]
    assert data.law_state(2).last_ns, "the port shows the one that has run"
    data.remove_law(2)
    assert not any(data.window.law_states.get(c_uint32(slot)).last_ns for slot in slots)


def test_a_queue_that_cannot_be_measured_makes_it_one_port(switch: QueueSwitch) -> None:
    flow = Connection(switch).open()
    assert queue_of(switch.recorded(flow)) is not None
    tc("qdisc replace dev p2 parent 1:2 pfifo_fast")
    switch.read_limits()
    try:
        found = switch.datapath.limits_of(2)
        assert (found.limit, found.measured) == (0, False)
        assert "transmit queue 1: pfifo_fast counts" in found.reason
        flow.data()
        assert switch.recorded(flow) == switch.ports[2].ifindex
        assert switch.active(2) == 1
    finally:
        shape("p2", 1, "80mbit")
        switch.read_limits()
    assert switch.datapath.limits_of(2).queues == QUEUES
    flow.data(seq=flow.client_isn + 1001)
    assert queue_of(switch.recorded(flow)) is not None


def test_bfifo_alone(switch: QueueSwitch) -> None:
    for number in range(1, QUEUES + 1):
        tc(f"qdisc replace dev p2 parent 1:{number} bfifo limit {1000 * number + 20_000}")
    switch.read_limits()
    found = switch.datapath.limits_of(2)
    assert (found.kind, found.limit, found.rate, found.queues) == ("mq", 21_000, 0, QUEUES)
    flow = Connection(switch).open()
    assert queue_of(switch.recorded(flow)) is not None, "also where packets pass an empty queue"
    for queue in range(QUEUES):
        shape("p2", queue, "80mbit")


def test_a_forged_segment_in_another_queue_moves_no_flow(switch: QueueSwitch) -> None:
    switch.pool(2, POOL)
    flow = Connection(switch, server_scale=0).open()
    flow.data()
    settled("p2")
    queue = queue_of(switch.recorded(flow))
    choose((queue + 1) % QUEUES)
    try:
        flow.data(seq=flow.client_isn + 2**31, ack=77)
        settled("p2")
    finally:
        choose(None)
    flow.ack(ack=flow.client_isn + 1001)
    flow.data(seq=flow.client_isn + 1001)
    settled("p2")
    assert queue_of(switch.recorded(flow)) == queue
