"""Two bridges of one host with one set of programs: data leaves by one of them, ACKs by the other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from ctypes import c_uint32
from dataclasses import dataclass, replace

import pytest

from bench.program_run import LoadedProgram
from fairq_ryu.agent import layout, unanswered_flows
from fairq_ryu.agent.far_ports import with_far_queues
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.copies import RULES
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.program import ProgramLimits
from fairq_ryu.channel import flow_changes, flow_records
from fairq_ryu.channel.flow_changes import ChangeRequest
from fairq_ryu.channel.segment_copies import SegmentMatch
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.model import FlowKey, WindowKind, WindowRule
from fairq_ryu.packet.tcp_build import Addressing
from tests.switch import packets
from tests.switch.packets import Segment
from tests.switch.rig import Connection, Switch, lowered, make_port, run
from tests.switch.test_injection import Host

LIMITS = ProgramLimits(flows=1024, rules=8, ports=16, active_timeout=600, bridges=2)
SIZE = 6000
SYN_IP = SegmentMatch(0x0800, 2)
HOUR = 3_600_000_000_000


@dataclass
class Joined:
    """Bridges ``inner``, with ports 1 and 2, and ``outer``, with port 1. Data of a connection leaves by
    port 1 of ``outer``, the ACKs by port 1 of ``inner``.
    """

    inner: BridgePrograms
    outer: BridgePrograms
    ports: dict[str, BridgePort]
    switch: Switch

    def counts(self) -> list[tuple[int, int]]:
        """ACKs that met a rule, and those that were lowered, of port 1 of both bridges."""
        return [bridge.window_counts(1)[:2] for bridge in (self.inner, self.outer)]

    def sweep(self) -> None:
        self.switch.datapath.host.sweep(10**12, 10**12)


@pytest.fixture
def joined(own_namespace: None) -> Iterator[Joined]:
    ports = {name: make_port(number, name) for name, number in (("in1", 1), ("in2", 2), ("out1", 1))}
    host = HostPrograms(LIMITS)
    try:
        host.load([])
        inner, outer = BridgePrograms(host), BridgePrograms(host)
        inner.add_port(ports["in1"])
        inner.add_port(ports["in2"])
        outer.add_port(ports["out1"])
        with LoadedProgram.attached(ports["in1"].ifindex) as program:
            switch = Switch(outer, {1: ports["in1"], 2: ports["out1"]}, program)
            yield Joined(inner, outer, ports, switch)
    finally:
        host.close()
        for port in ports.values():
            run("ip", "link", "del", port.name)


def install(bridge: BridgePrograms, target: int | FlowKey, size: int, slot: int = 0) -> None:
    window = WindowRule(WindowKind.WINDOW, size)
    bridge.install_rule(target, window, time.monotonic_ns() + HOUR, slot)


def test_windows_are_lowered_across_bridges(joined: Joined) -> None:
    install(joined.outer, 1, SIZE)
    connection = Connection(joined.switch).open()
    connection.data()
    assert connection.granted(1000) == lowered(1000, SIZE, 7, 1460) < 1000
    # With the SYN-ACK, whose window is not scaled.
    assert joined.counts() == [(0, 0), (2, 2)]
    assert (joined.inner.counters(0), joined.outer.counters(0)) == ((0, 0), (2, 2))


def test_rules_of_both_bridges_have_counters_of_their_own(joined: Joined) -> None:
    connection = Connection(joined.switch).open()
    connection.data()
    install(joined.inner, 1, SIZE)
    install(joined.outer, connection.ack_key, SIZE // 2)
    assert connection.granted(1000) == lowered(1000, SIZE // 2, 7, 1460)
    assert (joined.inner.counters(0), joined.outer.counters(0)) == ((0, 0), (1, 1))
    joined.inner.reset_counters(0)
    assert joined.outer.counters(0) == (1, 1)


def test_each_bridge_lists_what_leaves_by_its_ports(joined: Joined) -> None:
    connection = Connection(joined.switch).open()
    connection.data()
    joined.sweep()
    for bridge, key in ((joined.outer, connection.data_key), (joined.inner, connection.ack_key)):
        found = [
            record
            for part in bridge.flow_records(0, list(bridge.ports.values()))
            for record in flow_records.decode_reply(part)
        ]
        changes = flow_changes.decode_reply(
            flow_changes.encode_reply(bridge.flow_changes(ChangeRequest(0, 1000, 640)))
        )
        found += flow_records.decode_reply(changes.records)
        assert [(each.key, each.port, each.wscale) for each in found] == [(key, 1, 7)] * 2


def test_a_port_that_moves_has_its_far_queue_when_the_other_bridge_has_let_go(joined: Joined) -> None:
    """The bridge to which it moves may be the first to see it."""
    inner, outer, slots = joined.inner, joined.outer, joined.inner.window.slots
    queues = {"in1": FarQueue("in1", rate=12_500, buffer=125_000)}
    port, far = with_far_queues([joined.ports["in1"]], queues)
    moved, far_moved = with_far_queues([replace(port, ofport=2)], queues)
    free = len(slots._free)
    inner.add_port(far)
    for each, why in ((moved, "still a port"), (far_moved, "still the far queue")):
        with pytest.raises(BpfError, match=f"{why} of another bridge"):
            outer.add_port(each)
    inner.remove_port(far.ofport)
    with pytest.raises(BpfError, match="its port is still one of another bridge"):
        outer.add_port(far_moved)
    inner.remove_port(port.ofport)
    assert len(slots._free) == free + 1
    outer.add_port(moved)
    outer.add_port(far_moved)
    assert outer.queue(far_moved).packets == 0 and outer.window.bridge_of(far.ifindex) == outer.number
    outer.remove_port(far_moved.ofport)
    assert len(slots._free) == free


def test_copies_are_those_of_the_bridge_that_wants_them(joined: Joined) -> None:
    """The SYN leaves by the outer bridge and the SYN-ACK by the inner one. So does their rate."""
    inner, outer = joined.inner, joined.outer
    inner.install_copies(SYN_IP, time.monotonic_ns() + HOUR)
    Connection(joined.switch).open()
    records = inner.copies.take(100)
    assert [(copy.port, copy.frame[47] & 0x12) for copy in inner.copied(records)] == [(1, 0x12)]
    assert outer.copied(records) == []
    assert (inner.copy_counts(SYN_IP), outer.copy_counts(SYN_IP)) == ((1, 1), (0, 0))
    inner.copies.bridge_limit = layout.fq_copy_limit(gap_ns=HOUR, burst_ns=0)
    for bridge in (inner, outer):
        bridge.install_copies(SYN_IP, time.monotonic_ns() + HOUR)
        inner.copies.bridge_limit = layout.fq_copy_limit()
    Connection(joined.switch).open()
    assert [copy.port for copy in outer.copied(outer.copies.take(100))] == [1]
    assert (inner.not_copied, outer.not_copied) == ((1, 0), (0, 0))
    assert (inner.copy_counts(SYN_IP), outer.copy_counts(SYN_IP)) == ((2, 1), (1, 1))
    for bridge in (inner, outer):
        bridge.remove_copies(SYN_IP)
    Connection(joined.switch).open()
    assert inner.copies.take(100) == []
    assert RULES[SYN_IP] == 0  # of the first bridge; the second has others


def test_a_sender_is_woken_by_the_other_bridge(joined: Joined) -> None:
    """Its window update leaves by the port by which the ACKs leave, which has the number of another one."""
    client = Host("in1h")
    connection = Connection(joined.switch).open()
    connection.data()
    connection.ack(500, ack=2001)
    server = OpenFlowServer("outer", 1, joined.outer, 8)
    known = Addressing(connection.ack_key, "02:00:00:00:00:01", "02:00:00:00:00:02")
    client.received()
    server.injector.wake([known])
    (update,) = client.received()
    client.close()
    assert packets.window(update) == 500 and server.injector.counts == {"wake": 1}
    joined.outer.observe(1, True)
    for number, bridge in enumerate((joined.outer, joined.inner)):
        observing = OpenFlowServer("inner", 1 + number, bridge, 8)
        observing.injector.wake([known])
        assert observing.injector.counts == {"wake: the port is only observed": 1}


def test_a_bridge_keeps_the_peaks_that_another_has_restarted(
    joined: Joined, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, outer = joined.inner, joined.outer
    port = joined.ports["out1"]
    run("tc", "qdisc", "add", "dev", "out1", "root", "pfifo")
    known, segment = c_uint32(port.ifindex), Segment("10.0.0.1", "10.0.0.2", 1, 2, 1, 1)
    assert joined.inner.host.frames.send("out1", segment.frame())
    found = outer.queues.queues.get(known)
    assert found.peak_epoch == 1 and found.bridge == outer.number
    found.peak = 5000
    outer.queues.queues.set(known, found)
    with monkeypatch.context() as unread:
        unread.setattr(joined.inner.queues, "state", None)  # controllers ask 500 times a second
        for _ in range(2):
            inner.restart_peaks()
    assert joined.inner.host.frames.send("out1", segment.frame())
    assert outer.queues.queues.get(known).last_ns > found.last_ns
    assert outer.queue(port).peak == 5000
    outer.restart_peaks()
    assert outer.queue(port).peak == 0


def test_a_port_that_moves_to_another_bridge(joined: Joined) -> None:
    """The new bridge may be seen to have it first."""
    port = joined.ports["in2"]
    moved = BridgePort(7, port.name, port.ifindex, port.mac, True, True, 0)
    with pytest.raises(BpfError, match="still a port of another bridge"):
        joined.outer.add_port(moved)
    assert joined.outer.ports.keys() == {1}
    joined.inner.remove_port(2)
    joined.outer.add_port(moved)
    joined.inner.install_copies(SYN_IP, time.monotonic_ns() + HOUR)
    joined.switch.ports[1] = moved
    Connection(joined.switch).open()
    assert joined.outer.copy_counts(SYN_IP) == joined.inner.copy_counts(SYN_IP) == (0, 0)
    assert joined.outer.port_state(moved).handshakes == 1


def test_flows_without_acks_are_counted_exactly(joined: Joined, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unanswered_flows, "PATIENCE_NS", 1)
    outer, port = joined.outer, joined.ports["out1"]
    alone = [Connection(joined.switch) for _ in range(3)]
    whole = Connection(joined.switch).open()
    for _ in range(2):
        for connection in (*alone, whole):
            connection.data()
        whole.ack()
        joined.sweep()
    assert outer.unanswered(port) == (3, 3)
    assert joined.inner.unanswered(joined.ports["in1"]) == (0, 0)
    alone[0].ack()
    joined.sweep()
    assert outer.unanswered(port) == (2, 3)
    outer.remove_port(1)
    outer.add_port(port)
    assert outer.unanswered(port) == (0, 0)
