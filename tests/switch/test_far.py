"""Far queues: what arrives by a port is counted in a virtual queue, whose rules and laws lower windows.

The client is behind port 1, where the switch above is: its data arrives there, and the server's ACKs leave
there.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from ctypes import c_uint32
from dataclasses import replace
from typing import Any

import pytest

from bench.program_run import UNSPEC, LoadedProgram, Segments
from fairq_ryu.agent import layout, tcx
from fairq_ryu.agent.far_ports import far_id, with_far_queues
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.libbpf import BpfError, load_library
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.program import FAR_PRIORITY
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.tc import INGRESS, TcFilter
from fairq_ryu.far_queue import FAR, FarQueue, Why
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.model import WindowKind
from tests.switch import packets
from tests.switch.queue_rig import EXPERIMENTAL
from tests.switch.rig import Connection, Switch, make_port, run

UP, DOWN, OTHER = 1, 2, 3
"""The port to the switch above, that to the server, and one more."""
NEAR, FAR_UP = DOWN, FAR | UP
# Slow, so that little drains while a test runs: 12.5 bytes/ms.
QUEUE = FarQueue("p1", rate=12_500, buffer=125_000, share=1.0)
HEADERS = 14 + 20 + 20
OVERHEAD = 24
WAITING_SHIFT = layout.CONSTANTS["FQ_WAITING_SHIFT"]


@pytest.fixture
def far(switch: Switch) -> Iterator[BridgePort]:
    """Port 1 has a far queue, which is empty."""
    yield from with_queue(switch, QUEUE)


def with_queue(switch: Switch, queue: FarQueue) -> Iterator[BridgePort]:
    port = next(each for each in with_far_queues(switch.ports.values(), {queue.port: queue}) if each.far)
    switch.datapath.add_port(port)
    try:
        yield port
    finally:
        switch.datapath.remove_law(port.ofport)
        switch.datapath.observe(port.ofport, False)
        switch.datapath.remove_port(port.ofport)


def arrive(switch: Switch, frame: bytes, segments: Segments | None = None) -> None:
    """A frame arrives by port 1. It passes on, unchanged."""
    ifindex = switch.ports[UP].ifindex
    with LoadedProgram.attached(ifindex, FAR_PRIORITY, INGRESS) as program:
        result = program.run(frame, ifindex, segments=segments)
    assert (result.verdict, result.packet) == (UNSPEC, frame)


def counted(switch: Switch, port: BridgePort) -> tuple[int, int]:
    """Packets and bytes that have arrived."""
    queue = switch.datapath.queue(port)
    return queue.packets, queue.bytes


def far_state(switch: Switch, port: BridgePort) -> Any:
    return switch.datapath.port_state(port)


def active(switch: Switch, port: BridgePort) -> int:
    return switch.datapath.active_flows(port)


# Counting


def test_every_frame_counts_with_what_it_takes_on_the_wire(switch: Switch, far: BridgePort) -> None:
    frames = [
        packets.Segment(payload=bytes(1000)).frame(),
        b"\xff" * 12 + EXPERIMENTAL.to_bytes(2, "big") + bytes(186),  # neither TCP nor IP
        packets.Segment(vlans=((packets.VLAN, 5),)).frame(),
    ]
    for number, frame in enumerate(frames, 1):
        arrive(switch, frame)
        assert counted(switch, far) == (number, sum(len(each) + OVERHEAD for each in frames[:number]))
    assert switch.datapath.queue(far).backlog <= sum(len(each) + OVERHEAD for each in frames)


V6 = {"src": "fd00::1", "dst": "fd00::2"}


@pytest.mark.parametrize(
    ("shape", "headers"),
    [
        ({}, HEADERS),
        ({"options": packets.padded(packets.timestamps())}, HEADERS + 12),
        ({"ip_options": bytes(4)}, HEADERS + 4),
        ({"vlans": ((packets.VLAN, 5),)}, HEADERS + 4),
        (V6, HEADERS + 20),
    ],
)
def test_the_headers_of_each_segment_count(
    switch: Switch, far: BridgePort, shape: dict[str, Any], headers: int
) -> None:
    """A packet that GRO has made of three segments has the headers of one."""
    frame = packets.Segment(payload=bytes(2500), **shape).frame()
    arrive(switch, frame, Segments(3, 1000, 0))
    assert counted(switch, far) == (3, 2500 + 3 * (headers + OVERHEAD))


def test_segments_of_datagrams_count_too(switch: Switch, far: BridgePort) -> None:
    frame = b"\xff" * 12 + bytes.fromhex("0800 4500 0bd4 0000 0000 4011 0000 0a000001 0a000002") + bytes(3008)
    arrive(switch, frame, Segments(3, 1000, 0))
    assert counted(switch, far) == (3, len(frame) + 2 * (14 + 20 + 8) + 3 * OVERHEAD)


def test_what_really_arrives_is_counted(switch: Switch, far: BridgePort) -> None:
    """The other end of the veth pair sends; with the program at ingress, nothing has to be forwarded."""
    before = counted(switch, far)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((f"{switch.ports[UP].name}h", EXPERIMENTAL))
        for _ in range(7):
            raw.send(b"\xff" * 12 + EXPERIMENTAL.to_bytes(2, "big") + bytes(86))
    packets_now, bytes_now = counted(switch, far)
    assert (packets_now - before[0], bytes_now - before[1]) == (7, 7 * (100 + OVERHEAD))


def test_no_packet_is_lost_that_arrives_on_several_processors_at_once(
    switch: Switch, far: BridgePort
) -> None:
    """One of them writes the queue; what the others have is added by the next that does."""
    frame, repeat, ifindex = bytes(186), 1_000_000, switch.ports[UP].ifindex
    processors = sorted(os.sched_getaffinity(0))[:2]
    with LoadedProgram.attached(ifindex, FAR_PRIORITY, INGRESS) as program:

        def run_on(processor: int) -> None:
            os.sched_setaffinity(0, {processor})
            program.run(frame, ifindex, repeat=repeat)

        threads = [threading.Thread(target=run_on, args=(each,)) for each in processors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    arrive(switch, frame)
    number = len(threads) * repeat + 1
    assert counted(switch, far) == (number, number * (len(frame) + OVERHEAD))


@pytest.mark.parametrize("waiting", [30_000, (1 << WAITING_SHIFT) - 1])
def test_what_another_processor_has_left_behind_drains_until_the_next_packet(
    switch: Switch, waiting: int
) -> None:
    """10 ms are enough for all that the queue holds."""
    for port in with_queue(switch, FarQueue("p1", rate=10_000_000, buffer=100_000, share=1.0)):
        frame, queues, key = bytes(1500), switch.datapath.queues.queues, c_uint32(port.ifindex)
        arrive(switch, frame)
        state = queues.get(key)
        state.waiting = 3 << WAITING_SHIFT | waiting
        queues.set(key, state)
        time.sleep(0.011)
        arrive(switch, frame)
        assert queues.get(key).backlog == 1500 + OVERHEAD
        assert counted(switch, port) == (5, 2 * (1500 + OVERHEAD) + waiting)


def test_the_queue_drains_between_packets_and_is_bounded(switch: Switch) -> None:
    for port in with_queue(switch, FarQueue("p1", rate=10_000_000, buffer=3000, share=0.5)):
        frame = bytes(12) + EXPERIMENTAL.to_bytes(2, "big") + bytes(1462)  # 1,500 bytes
        for _ in range(5):
            arrive(switch, frame)
        queue = switch.datapath.queue(port)
        assert queue.backlog <= 3000 and queue.peak <= 3000 and queue.packets == 5
        time.sleep(3000 / 5_000_000 + 0.001)
        assert switch.datapath.queue(port).backlog == 0
        drained = switch.datapath.queue(port).byte_ns
        time.sleep(0.002)
        assert switch.datapath.queue(port).byte_ns == drained, "an empty queue adds nothing"
        assert switch.datapath.silent_queues(time.monotonic_ns() + 10**12) == {}


def test_a_port_without_a_far_queue_has_no_program_at_ingress(switch: Switch) -> None:
    for port in with_queue(switch, QUEUE):
        ingress = run("tc", "filter", "show", "dev", "p1", "ingress")
        assert f"pref {FAR_PRIORITY} " in ingress and "fq_arrives" in ingress
        assert run("tc", "filter", "show", "dev", "p2", "ingress") == ""
        assert port.ifindex == far_id(switch.ports[UP].ifindex)
    assert run("tc", "filter", "show", "dev", "p1", "ingress") == ""


def test_a_program_that_somebody_has_removed_is_attached_again(switch: Switch, far: BridgePort) -> None:
    run("tc", "filter", "del", "dev", "p1", "ingress", "pref", str(FAR_PRIORITY))
    ifindex = switch.ports[UP].ifindex
    assert switch.datapath.host.restore_filters(ifindex)
    arrive(switch, bytes(100))
    assert counted(switch, far)[0] == 1
    assert not switch.datapath.host.restore_filters(ifindex)


@pytest.mark.skipif(
    not tcx.is_available(load_library()), reason="before Linux 6.6 such a port is not watched"
)
def test_a_policed_port_may_have_a_far_queue(switch: Switch) -> None:
    """Its ingress qdisc stays as it is."""
    made = make_port(4, "p4")
    run("tc", "qdisc", "add", "dev", "p4", "ingress")
    _, far = with_far_queues([made], {"p4": replace(QUEUE, port="p4")})
    data = switch.datapath
    data.add_port(made)
    data.add_port(far)
    try:
        assert "fq_arrives" in run("tc", "filter", "show", "dev", "p4", "ingress")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
            raw.bind(("p4h", EXPERIMENTAL))
            raw.send(b"\xff" * 12 + EXPERIMENTAL.to_bytes(2, "big") + bytes(86))
        assert counted(switch, far) == (1, 100 + OVERHEAD)
    finally:
        data.remove_port(far.ofport)
        data.remove_port(made.ofport)
    assert run("tc", "filter", "show", "dev", "p4", "ingress") == ""
    assert "ingress" in run("tc", "qdisc", "show", "dev", "p4")
    run("ip", "link", "del", "p4")


def test_what_a_dead_agent_has_left_is_removed(switch: Switch) -> None:
    for _ in with_queue(switch, QUEUE):
        ifindex = switch.ports[UP].ifindex
        fd = switch.datapath.host.far._load().program_fd("fq_arrives")
        TcFilter(load_library(), FAR_PRIORITY).attach(switch.ports[DOWN].ifindex, fd, INGRESS)
        assert "fq_arrives" in run("tc", "filter", "show", "dev", "p2", "ingress")
        switch.datapath.host.far.add_port(switch.ports[DOWN].ifindex)
        assert run("tc", "filter", "show", "dev", "p2", "ingress") == ""
        assert TcFilter(load_library(), FAR_PRIORITY).attached_program(ifindex, INGRESS)


def test_a_filter_of_others_in_its_place_stays(switch: Switch) -> None:
    data, ifindex = switch.datapath, switch.ports[UP].ifindex
    theirs = TcFilter(load_library(), FAR_PRIORITY)
    refusal = r"a filter of others, bpf .*\(pref 250 at ingress\), is in the agent's place"

    def attached() -> str:
        return run("tc", "filter", "show", "dev", "p1", "ingress")

    with LoadedProgram.empty() as other:
        theirs.attach(ifindex, other._fd, INGRESS)
        before = attached()
        data.host.far.add_port(ifindex)
        with pytest.raises(BpfError, match=refusal):
            next(with_queue(switch, QUEUE))
        assert attached() == before and not data.has_port(FAR_UP)
        theirs.detach(ifindex, INGRESS)
        for _ in with_queue(switch, QUEUE):
            theirs.attach(ifindex, other._fd, INGRESS)
            with pytest.raises(BpfError, match=refusal):
                data.host.restore_filters(ifindex)
        assert attached() == before
        theirs.detach(ifindex, INGRESS)


@pytest.mark.parametrize("what", ["no room", "no limits"])
def test_of_a_far_queue_that_cannot_be_nothing_is_left(
    switch: Switch, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    data = switch.datapath
    _, far = with_far_queues([switch.ports[UP]], {"p1": QUEUE})
    data.add_port(far)
    data.observe(far.ofport, True)  # it stays so
    data.remove_port(far.ofport)

    def refuse(*_: object) -> None:
        raise BpfError("no limits")

    with monkeypatch.context() as broken:
        if what == "no room":
            broken.setattr(data.window.slots, "_free", [])
        else:
            broken.setattr(data.host.far, "set_limits", refuse)
        with pytest.raises(BpfError, match="watched already" if what == "no room" else what):
            data.add_port(far)
    window = data.window
    for each in (window.slots, window._bridges, window._observed, window._far):
        assert far.ifindex not in each
    assert run("tc", "filter", "show", "dev", "p1", "ingress") == ""
    for port in with_queue(switch, QUEUE):
        assert data.has_port(port.ofport)


def test_a_far_queue_needs_its_port(switch: Switch) -> None:
    ghost = BridgePort(9, "p9", 12345, "02:00:00:00:00:09", True, True, 0)
    (_, far) = with_far_queues([ghost], {"p9": QUEUE})
    with pytest.raises(Exception, match="its port is not watched"):
        switch.datapath.add_port(far)
    assert not switch.datapath.has_port(far.ofport)


# Windows


def test_only_flows_whose_acks_leave_by_the_port_have_its_windows(switch: Switch, far: BridgePort) -> None:
    switch.rule(far.ofport, 20_000)
    here = Connection(switch, server_scale=0).open()
    assert here.granted(60_000) == 20_000
    assert switch.leave(DOWN, here.from_client(window=60_000)) == here.from_client(window=60_000).frame()
    state = far_state(switch, far)
    assert (state.acks, state.rewritten) == (2, 2)  # the SYN-ACK and the ACK
    assert (switch.state(UP).rewritten, switch.state(DOWN).rewritten) == (0, 0)
    # Another one, whose ACKs leave by the third port.
    there = Connection(switch, client="10.0.0.3", server_scale=0)
    there.syn()
    switch.leave(OTHER, there.syn_ack_segment())
    ack = there.from_server(window=60_000)
    assert switch.leave(OTHER, ack) == ack.frame()
    assert far_state(switch, far).acks == 2


def test_the_port_by_which_the_kernel_saw_data_arrive_counts(switch: Switch, far: BridgePort) -> None:
    """A bond: data comes by one member, its ACKs leave by another."""
    switch.rule(far.ofport, 20_000)
    flow = Connection(switch, server_scale=0)
    switch.leave(DOWN, packets_syn(flow), arrived=UP)
    switch.leave(OTHER, flow.syn_ack_segment(), arrived=DOWN)
    switch.leave(DOWN, flow.from_client(payload=bytes(1000)), arrived=UP)
    assert active(switch, far) == 1
    ack = flow.from_server(window=60_000, ack=flow.client_isn + 1001)
    assert packets.window(switch.leave(OTHER, ack, arrived=DOWN)) == 20_000
    # And the other way round: the ACKs leave by the port, but the data comes by another.
    flow = Connection(switch, server_scale=0)
    switch.leave(DOWN, packets_syn(flow), arrived=OTHER)
    switch.leave(UP, flow.syn_ack_segment(), arrived=DOWN)
    switch.leave(DOWN, flow.from_client(payload=bytes(1000)), arrived=OTHER)
    ack = flow.from_server(window=60_000, ack=flow.client_isn + 1001)
    assert packets.window(switch.leave(UP, ack, arrived=DOWN)) == 60_000


def packets_syn(flow: Connection) -> packets.Segment:
    options = packets.syn_options(flow.client_mss, flow.client_scale, packets.sack_permitted())
    return flow.from_client(seq=flow.client_isn, ack=0, flags="S", options=options)


@pytest.mark.parametrize(("near", "away", "wanted"), [(9_000, 20_000, 9_000), (20_000, 9_000, 9_000)])
def test_the_smaller_window_wins(switch: Switch, far: BridgePort, near: int, away: int, wanted: int) -> None:
    switch.rule(NEAR, near, slot=0)
    switch.rule(far.ofport, away, slot=1)
    flow = Connection(switch, server_scale=0).open()
    assert flow.granted(60_000) == wanted
    lowered = [2 * (near < away), 2 * (away < near)]  # the SYN-ACK and the ACK
    assert [switch.state(NEAR).rewritten, far_state(switch, far).rewritten] == lowered
    assert [switch.datapath.counters(slot) for slot in (0, 1)] == [(2, each) for each in lowered]
    assert flow.granted(5_000) == 5_000, "never raised"


def test_a_rule_of_the_flow_takes_the_place_of_that_of_the_port_and_not_of_the_far_queue(
    switch: Switch, far: BridgePort
) -> None:
    flow = Connection(switch, server_scale=0).open()
    switch.rule(NEAR, 9_000, slot=0)
    switch.rule(flow.ack_key, 30_000, slot=1)
    switch.rule(far.ofport, 20_000, slot=2)
    assert flow.granted(60_000) == 20_000
    switch.datapath.remove_rule(far.ofport)
    assert flow.granted(60_000) == 30_000


def test_a_lease_that_has_ended_lowers_nothing(switch: Switch, far: BridgePort) -> None:
    flow = Connection(switch, server_scale=0).open()
    switch.rule(far.ofport, 20_000, lease=-1)
    assert flow.granted(60_000) == 60_000
    switch.rule(far.ofport, 20_000)
    assert flow.granted(60_000) == 20_000
    switch.datapath.remove_rule(far.ofport)
    assert flow.granted(60_000) == 60_000


def test_a_far_queue_that_is_only_observed_lowers_nothing_and_counts(switch: Switch, far: BridgePort) -> None:
    switch.rule(NEAR, 30_000, slot=0)
    switch.rule(far.ofport, 20_000, slot=1)
    switch.datapath.observe(far.ofport, True)
    flow = Connection(switch, server_scale=0).open()
    assert flow.granted(60_000) == 30_000
    assert (far_state(switch, far).would_lower, far_state(switch, far).rewritten) == (2, 0)
    switch.datapath.observe(far.ofport, False)
    switch.datapath.observe(NEAR, True)
    assert flow.granted(60_000) == 20_000
    assert (far_state(switch, far).rewritten, switch.state(NEAR).would_lower) == (1, 1)


def test_the_flows_of_a_far_queue_share_its_pool(switch: Switch, far: BridgePort) -> None:
    """A flow counts there with data that is believed; the counts of its port are its own."""
    switch.pool(far.ofport, 60_000)
    flows = [Connection(switch, server_scale=0).open() for _ in range(3)]
    assert active(switch, far) == 3 and switch.active(DOWN) == 3
    assert [flow.granted() for flow in flows] == [20_000] * 3
    forged = flows[0].from_client(seq=(flows[0].client_isn + 2**31) % 2**32, payload=bytes(100))
    switch.leave(DOWN, forged)
    flows[0].data(0, flags="FA")
    assert active(switch, far) == 2 and switch.active(DOWN) == 2
    assert flows[1].granted() == 30_000


def test_a_syn_ack_has_the_first_window_of_the_far_queue(switch: Switch, far: BridgePort) -> None:
    install(switch, far, FairQLaw(), pool=6_000)
    flow = Connection(switch, server_scale=0)
    flow.syn()
    assert packets.window(flow.syn_ack(window=60_000)) == 6_000


def test_flows_that_were_there_before_belong_to_a_new_far_queue(switch: Switch) -> None:
    flow = Connection(switch, server_scale=0).open()
    # As another far queue of the host makes the program look for them.
    for other in with_queue(switch, FarQueue("p3")):
        assert flow.granted(60_000) == 60_000
        for port in with_queue(switch, QUEUE):
            switch.rule(port.ofport, 20_000)
            forget_bucket(switch, flow)
            flow.data(1000)
            assert active(switch, port) == 1 and active(switch, other) == 0
            assert flow.granted(60_000, ack=flow.client_isn + 1001) == 20_000


def forget_bucket(switch: Switch, flow: Connection) -> None:
    """As if a time bucket had passed."""
    window, key = switch.datapath.window, flow_key(flow.data_key)
    entry = window.flows.get(key)
    for direction in entry.dir:
        direction.far.epoch = 0
    window.flows.set(key, entry)


# Losses


def test_segments_that_fill_a_gap_were_lost_above(switch: Switch, far: BridgePort) -> None:
    flow = Connection(switch, client_mss=1000, server_mss=1000).open()
    first = flow.client_isn + 1

    def send(*numbers: int, payload: int = 1000) -> int:
        for number in numbers:
            flow.data(payload, seq=first + 1000 * number)
        return switch.datapath.queue(far).drops

    assert send(0, 1, 2) == 0
    assert send(5, 6) == 0, "3 and 4 are missing; they may still come"
    assert send(3) == 1
    assert send(3) == 1, "once more: it was there"
    assert send(4) == 2
    assert send(4, 2, 5) == 2, "nothing is missing any more"
    assert send(9, 12) == 2
    assert send(7, payload=2000) == 4, "7 and 8, as one packet"
    assert send(10, 11) == 6
    assert send(13, 14) == 6


def test_a_segment_that_begins_before_a_gap_fills_its_part(switch: Switch, far: BridgePort) -> None:
    flow = Connection(switch, client_mss=1000, server_mss=1000).open()
    first = flow.client_isn + 1
    for number in (0, 1, 4):
        flow.data(1000, seq=first + 1000 * number)
    flow.data(2000, seq=first + 1000)
    assert switch.datapath.queue(far).drops == 1, "1 was there, and 2 was not"
    flow.data(1000, seq=first + 3000)
    assert switch.datapath.queue(far).drops == 2


def test_a_gap_that_is_too_far_back_does_not_come_again(switch: Switch, far: BridgePort) -> None:
    """The numbers begin anew after 4 GiB, and new data would fill it."""
    for back, kept in ((1 << 30, True), ((1 << 30) + 1, False)):
        flow = Connection(switch, client_mss=1000, server_mss=1000, sport=31000 + kept).open()
        window, key = switch.datapath.window, flow_key(flow.data_key)
        entry = window.flows.get(key)
        for direction in entry.dir:
            direction.hole_to = (flow.client_isn + 1 - back) % 2**32
            direction.hole_from = (direction.hole_to - 1000) % 2**32
        window.flows.set(key, entry)
        flow.data(1000)
        left = {each.hole_from != each.hole_to for each in window.flows.get(key).dir}
        assert left == {True, kept}, "there is one in the other direction, too"


def test_nothing_is_missing_before_what_was_seen_first(switch: Switch, far: BridgePort) -> None:
    """Of a connection that was open before."""
    flow = Connection(switch)
    for number in (9, 10, 5):
        flow.data(1000, seq=flow.client_isn + 1 + 1000 * number)
        flow.ack(ack=flow.client_isn + 1)
    assert switch.datapath.queue(far).drops == 0


def test_a_new_connection_begins_without_gaps(switch: Switch, far: BridgePort) -> None:
    flow = Connection(switch, client_mss=1000, server_mss=1000, sport=31000).open()
    flow.data(1000, seq=flow.client_isn + 3001)
    flow.data(0, seq=flow.client_isn + 4001, flags="FA")
    flow.ack(ack=flow.client_isn + 1, flags="R", seq=flow.server_isn + 1)
    again = Connection(
        switch, client_mss=1000, server_mss=1000, sport=31000, client_isn=flow.client_isn + 1000
    ).open()
    again.data(1000)
    again.data(1000, seq=again.client_isn + 1001)
    assert switch.datapath.queue(far).drops == 0


# What stands in the queue that nobody sees, by round trips


def stamped(value: int, echo: int) -> bytes:
    return packets.padded(packets.timestamps(value, echo))


def with_clocks(switch: Switch, **more: Any) -> Connection:
    """A connection whose segments carry timestamps."""
    flow = Connection(switch, server_scale=0, **more)
    options = packets.syn_options(flow.client_mss, flow.client_scale, packets.timestamps(1, 0))
    flow.syn(options=options)
    switch.leave(
        UP,
        flow.from_server(
            seq=flow.server_isn,
            ack=flow.client_isn + 1,
            flags="SA",
            options=packets.syn_options(flow.server_mss, flow.server_scale, packets.timestamps(100, 1)),
        ),
    )
    flow.data(1000, options=stamped(2, 100))
    return flow


def seen(switch: Switch, port: BridgePort) -> Any:
    return switch.datapath.host.far.hidden(port.ifindex)


def test_a_handshake_is_a_sample(switch: Switch, far: BridgePort) -> None:
    Connection(switch).open().data(1000)
    before = seen(switch, far)
    assert before.samples == 1
    flow = Connection(switch)
    flow.syn()
    flow.syn_ack()
    time.sleep(0.01)
    flow.data(1000)
    found = seen(switch, far)
    assert found.samples == 2 and found.excess_ns - before.excess_ns > 5_000_000


def test_the_first_segment_that_echoes_a_new_timestamp_is_a_sample(switch: Switch, far: BridgePort) -> None:
    flow = with_clocks(switch)
    before = seen(switch, far)
    first = flow.client_isn + 1
    flow.ack(ack=first + 1000, options=stamped(101, 2))
    flow.ack(ack=first + 1000, options=stamped(102, 2))
    flow.data(1000, seq=first + 1000, options=stamped(3, 100))
    assert seen(switch, far).samples == before.samples, "it echoes an earlier one"
    time.sleep(0.01)
    flow.data(1000, seq=first + 2000, options=stamped(3, 102))
    found = seen(switch, far)
    assert found.samples == before.samples + 1
    assert found.excess_ns - before.excess_ns > 5_000_000
    flow.data(1000, seq=first + 3000, options=stamped(3, 102))
    assert seen(switch, far).samples == found.samples, "nothing is awaited any more"


def test_an_old_timestamp_asks_for_nothing(switch: Switch, far: BridgePort) -> None:
    """What has left with the same TSval before may have been answered already."""
    flow = with_clocks(switch)
    before, first = seen(switch, far).samples, flow.client_isn + 1
    for value in (100, 99):
        flow.ack(ack=first + 1000, options=stamped(value, 2))
        flow.data(1000, seq=first + 1000, options=stamped(3, value))
    assert seen(switch, far).samples == before


def test_a_forged_segment_is_no_sample(switch: Switch, far: BridgePort) -> None:
    flow = with_clocks(switch)
    before, first = seen(switch, far).samples, flow.client_isn + 1
    flow.ack(ack=first + 1000, options=stamped(101, 2))
    forged = flow.from_client(seq=(first + 2**31) % 2**32, payload=bytes(10), options=stamped(3, 101))
    switch.leave(DOWN, forged)
    assert seen(switch, far).samples == before


def test_flows_that_pass_no_far_queue_are_not_sampled(switch: Switch, far: BridgePort) -> None:
    flow = Connection(switch, client="10.0.0.3")
    flow.syn()
    switch.leave(OTHER, flow.syn_ack_segment())
    flow.data(1000)
    assert seen(switch, far).samples == 0


def judged(switch: Switch, port: BridgePort, frames: int = 30) -> Any:
    """What is known after so many frames within more than an interval."""
    for _ in range(frames):
        arrive(switch, bytes(1500))
        time.sleep(0.004)
    return seen(switch, port)


def test_the_line_is_looked_at_only_when_an_interval_ends(switch: Switch, far: BridgePort) -> None:
    """With eight samples, or 100 ms after the last one: few packets pay for it."""
    window, slot = switch.datapath.window, c_uint32(switch.datapath.window.slots[far.ifindex])
    arrive(switch, bytes(1500))
    began = seen(switch, far)
    assert (began.line, began.samples) == (12_500, 0) and began.judged_ns
    switch.datapath.host.far.set_limits(far.ifindex, QueueLimits("test", 125_000, 25_000), 25_000, 0)
    time.sleep(0.015)
    arrive(switch, bytes(1500))
    found = seen(switch, far)
    late = found.judged_ns - began.judged_ns >= 100_000_000  # on a busy machine
    assert found.line == (25_000 if late else 12_500) and (late or found.judged_ns == began.judged_ns)
    found.samples = found.judged_samples + 8
    window.hidden.set(slot, found)
    time.sleep(0.015)
    arrive(switch, bytes(1500))
    assert seen(switch, far).judged_ns > found.judged_ns and seen(switch, far).line == 25_000


@pytest.mark.parametrize("lost", [False, True])
def test_round_trips_beyond_the_buffer_are_believed_when_segments_were_lost(
    switch: Switch, far: BridgePort, lost: bool
) -> None:
    window, slot = switch.datapath.window, c_uint32(switch.datapath.window.slots[far.ifindex])
    flow = Connection(switch, client_mss=1000, server_mss=1000).open()
    first = flow.client_isn + 1
    flow.data(1000)  # a sample, of the handshake
    arrive(switch, bytes(1500))
    state = seen(switch, far)
    state.bound_ns, state.least, state.beyond = 1_000_000, 0, state.judged_beyond + 8
    window.hidden.set(slot, state)
    flow.data(1000, seq=first + 2000)
    flow.data(1000, seq=first + (1000 if lost else 3000))
    assert switch.datapath.queue(far).drops == lost
    time.sleep(0.11)
    arrive(switch, bytes(1500))
    assert seen(switch, far).judged_beyond == state.beyond
    assert seen(switch, far).bound_ns == (2_000_000 if lost else 1_000_000)


def test_the_rate_of_the_virtual_queue_is_the_share_at_first(switch: Switch, far: BridgePort) -> None:
    found = judged(switch, far)
    assert (found.rate, found.line, found.why) == (12_500, 12_500, Why.BLIND)
    assert found.peak > 100_000


def test_a_peak_is_forgotten_when_nothing_arrives(switch: Switch, far: BridgePort) -> None:
    found, data = judged(switch, far), switch.datapath
    for age, peak in ((1, found.peak), (2, 0), (3, 0)):
        found.peak_span = (time.monotonic_ns() >> 30) - age
        data.window.hidden.set(c_uint32(data.window.slots[far.ifindex]), found)
        known = data.hidden_queue(far).peak
        if (time.monotonic_ns() >> 30) - age == found.peak_span:  # the second has not ended meanwhile
            assert known == peak


def test_without_a_rate_nothing_is_queued_and_arrivals_are_measured(switch: Switch) -> None:
    for port in with_queue(switch, FarQueue("p1", buffer=20_000)):
        found = judged(switch, port)
        queue = switch.datapath.queue(port)
        assert queue.packets == 30 and queue.backlog == queue.byte_ns == 0
        assert (found.why, found.drain, found.served) == (Why.UNKNOWN, 0, 0) and found.peak > 100_000
        limits = switch.datapath.queue_limits(port)
        assert not limits.rate and "it is found" in limits.reason


def test_the_rate_that_is_found_makes_a_queue(switch: Switch) -> None:
    for port in with_queue(switch, FarQueue("p1", buffer=20_000)):
        data, slot = switch.datapath, c_uint32(switch.datapath.window.slots[port.ifindex])
        judged(switch, port)
        state = seen(switch, port)
        state.served = 1_000_000
        data.window.hidden.set(slot, state)
        data.find_rates(0.0)
        limits = data.queue_limits(port)
        assert (limits.limit, limits.rate) == (20_000, 980_000)
        found = judged(switch, port)
        assert (found.line, found.rate, found.why) == (1_000_000, 980_000, Why.BLIND)
        record = data.hidden_queue(port)
        assert (record.line, record.rate, record.why) == (1_000_000, 980_000, Why.BLIND)


# Laws


def install(switch: Switch, port: BridgePort, spec: LawSpec, pool: int | None = None) -> None:
    """Put a law in force. ``pool``: as after a tick."""
    data = switch.datapath
    law = parameters(spec, data.limits_of(port.ofport))
    data.install_law(port.ofport, port.ofport, law, time.monotonic_ns() + 3600 * 10**9)
    switch.rule(port.ofport, port.ofport, WindowKind.LAW)
    if pool is not None:
        state = data.law_state(port.ofport)
        state.pool, state.segment = pool << 8, 1460
        data.window.law_states.set(c_uint32(data.window.slots[port.ifindex]), state)


def test_its_law_ticks_when_packets_arrive(switch: Switch, far: BridgePort) -> None:
    install(switch, far, FairQLaw(interval_us=1000))
    flow = Connection(switch, server_scale=0).open()
    assert switch.datapath.law_state(far.ofport).last_ns == 0
    # They arrive faster than the queue drains, so the pool, a quarter of 7/8 of the buffer first, is lowered.
    target = 109_375 // 4
    for _ in range(5000):
        arrive(switch, bytes(1500))
        time.sleep(0.001)
        state = switch.datapath.law_state(far.ofport)
        if state.granted and state.granted < target:
            break
    assert state.last_ns and state.flows <= 1 and state.updates > 0
    assert state.queue > target > state.granted
    assert flow.granted() == state.granted


def test_both_laws_count_a_flow_that_begins(switch: Switch, far: BridgePort) -> None:
    spec = IqmLaw(target_ppm=1_000_000)
    install(switch, far, spec, pool=0)
    data = switch.datapath
    near_law = parameters(spec, data.limits_of(far.ofport))
    data.install_law(NEAR, NEAR, near_law, time.monotonic_ns() + 3600 * 10**9)
    switch.rule(NEAR, NEAR, WindowKind.LAW)
    try:
        flows = [Connection(switch).open() for _ in range(3)]
        assert [data.law_state(port).beta for port in (NEAR, far.ofport)] == [3, 3]
        flows[0].data(0, flags="FA")
        assert [data.law_state(port).beta for port in (NEAR, far.ofport)] == [2, 2]
    finally:
        data.remove_law(NEAR)
