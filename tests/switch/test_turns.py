"""Turns of new connections in the kernel: what is handed to the agent, what leaves, and how it is recorded.

The test is the agent's clock: it renews, takes packets over, and serves.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_uint32
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.far_ports import with_far_queues
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.turns import ALIVE_NS
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.segment_injector import SegmentInjector
from fairq_ryu.agent.turns import LONGEST_NS, Closing, Opening
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import FlowKey, WindowKind
from tests.switch import packets
from tests.switch.packets import Segment
from tests.switch.rig import Connection, Switch

# Of one segment with its headers: so many flows fit into the buffer.
FRAME, FLOWS = 1526, 10
LIMITS = QueueLimits("htb", FLOWS * FRAME, 25_000_000)
LARGER = QueueLimits("htb", 2 * FLOWS * FRAME, 25_000_000)
SHAPES: dict[str, dict[str, Any]] = {
    "IPv4": {},
    "VLAN": {"shape": {"vlans": ((packets.VLAN, 7),)}},
    "IPv6": {"client": "fd00::1", "server": "fd00::2"},
}


SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 1 << 4


def with_tag(frame: bytes, more: list[tuple[int, int, bytes]]) -> bytes:
    """The frame as it was on the wire: the kernel takes the outer VLAN tag out, and reports it beside."""
    for level, kind, data in more:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _length, _kept, _mac, _net, tci, tpid = struct.unpack("IIIHHHH", data)
            if status & TP_STATUS_VLAN_VALID:
                return frame[:12] + struct.pack("!HH", tpid, tci) + frame[12:]
    return frame


def install(
    switch: Switch,
    port: int = 1,
    limits: QueueLimits = LIMITS,
    turns: int = 1,
    lease: float = 3600,
    allowance: int = 256,
) -> None:
    """A law whose flows have one segment each; the agent lives for as long as a test takes."""
    expires = time.monotonic_ns() + int(lease * 1e9)
    law = parameters(FairQLaw(turns=turns, floor_segments=1, syn_allowance=allowance), limits)
    switch.datapath.install_law(port, port, law, expires)
    switch.rule(port, port, WindowKind.LAW, lease)
    renew(switch)


def renew(switch: Switch, ahead: float = 600) -> None:
    if switch.datapath.turn_program.ports:
        switch.datapath.turn_program.renew(time.monotonic_ns() + int(ahead * 1e9) - ALIVE_NS)


@pytest.fixture(autouse=True)
def no_law(switch: Switch) -> Iterator[None]:
    yield
    for port in (1, 2):
        switch.datapath.remove_law(port)


class Wire:
    """Sends by a port as Open vSwitch does, and receives at the host behind it."""

    def __init__(self, port: socket.socket, host: socket.socket) -> None:
        self._port, self._host = port, host

    def leave(self, frame: bytes) -> None:
        self._port.send(frame)

    def received(self, timeout: float = 0.1) -> list[bytes]:
        """What has arrived, and what arrives within the timeout."""
        found = []
        self._host.settimeout(timeout)
        while True:
            try:
                frame, more, _flags, about = self._host.recvmsg(2048, 128)
            except TimeoutError:
                return found
            if about[2] != socket.PACKET_OUTGOING and frame[:12] == packets.MACS:
                found.append(with_tag(frame, more))


@contextmanager
def wire(switch: Switch, port: int = 1) -> Iterator[Wire]:
    name = switch.ports[port].name
    kind = socket.AF_PACKET, socket.SOCK_RAW
    with socket.socket(*kind) as near, socket.socket(*kind, socket.htons(3)) as far:
        near.bind((name, 0))
        far.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        far.bind((f"{name}h", 3))
        yield Wire(near, far)


def crowd(switch: Switch, number: int = FLOWS) -> None:
    """So many flows whose data leaves by both ports."""
    for _ in range(number):
        Connection(switch).open()


def take(switch: Switch) -> list[bytes]:
    """Packets that were handed over, which wait now."""
    now, datapath = time.monotonic_ns(), switch.datapath
    found = datapath.turn_program.take(10_000)
    for packet in found:
        datapath.turns.arrived(packet, now)
    return [packet.frame for packet in found]


def serve(switch: Switch) -> None:
    switch.datapath.turns.serve(time.monotonic_ns())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_syn_ack_waits_until_there_is_room(switch: Switch, shape: str) -> None:
    install(switch)
    crowd(switch)
    late = Connection(switch, **SHAPES[shape])
    late.syn()
    frame = late.syn_ack_segment().frame()
    with wire(switch) as line:
        line.leave(frame)
        assert line.received() == []
        assert take(switch) == [frame]
        serve(switch)
        assert line.received() == []
        assert switch.state(1).handshakes == FLOWS, "it is recorded when it leaves"
        install(switch, limits=LARGER)
        serve(switch)
        assert line.received() == [frame]
    assert switch.state(1).handshakes == FLOWS + 1
    counts = switch.datapath.turn_counts(1)
    assert (counts.waiting, counts.held, counts.released, counts.full) == (0, 1, 1, 0)


def test_a_syn_waits_where_its_sender_s_data_will_leave(switch: Switch) -> None:
    install(switch, port=2)
    crowd(switch)
    late = Connection(switch)
    frame = late.from_client(
        seq=late.client_isn, ack=0, flags="S", options=packets.syn_options(1460, 7)
    ).frame()
    with wire(switch, 2) as line:
        line.leave(frame)
        assert take(switch) == [frame] and line.received() == []
        assert switch.flow(late.data_key) is None
        install(switch, port=2, limits=LARGER)
        serve(switch)
        assert line.received() == [frame]
    found = switch.flow(late.data_key)
    assert found is not None and found[0].syn_ns > 0


def test_a_signed_handshake_does_not_wait(switch: Switch) -> None:
    """TCP-MD5: its window could be neither closed nor opened."""
    for port in (1, 2):
        install(switch, port)
    crowd(switch)
    flow = Connection(switch)
    options = packets.syn_options(1460, 7, bytes([19, 18]) + bytes(16))
    syn = flow.from_client(seq=flow.client_isn, ack=0, flags="S", options=options).frame()
    for port, frame in ((2, syn), (1, flow.syn_ack_segment(options=options).frame())):
        with wire(switch, port) as line:
            line.leave(frame)
            assert line.received() == [frame] and take(switch) == []
    assert switch.state(1).handshakes == FLOWS + 1


def test_nobody_waits_while_there_is_room(switch: Switch) -> None:
    install(switch)
    crowd(switch, FLOWS - 2)
    late = Connection(switch)
    late.syn()
    with wire(switch) as line:
        line.leave(late.syn_ack_segment().frame())
        assert len(line.received()) == 1 and take(switch) == []


def test_the_wait_is_no_part_of_the_round_trip_time(switch: Switch) -> None:
    install(switch)
    crowd(switch)
    late, wait = Connection(switch), 0.05
    started = time.monotonic_ns()
    late.syn()
    with wire(switch) as line:
        line.leave(late.syn_ack_segment().frame())
        take(switch)
        time.sleep(wait)
        install(switch, limits=LARGER)
        serve(switch)
        elapsed = time.monotonic_ns() - started
        assert len(line.received()) == 1
        found = switch.flow(late.data_key)
        assert found is not None
        server = found[1]
        # The mark has whole microseconds.
        assert 0 < server.rtt_ns <= elapsed - wait * 1e9 + 1000
        # It was seen once: its answer gives a round-trip time as well.
        assert server.syn_ns > 0
        late.data(10)
        found = switch.flow(late.data_key)
        assert found is not None and found[0].rtt_ns > 0
        # Repeated after it had its turn, it leaves, and its answer gives none.
        install(switch)
        line.leave(late.syn_ack_segment().frame())
        assert len(line.received()) == 1 and take(switch) == []


def test_a_repeated_syn_ack_takes_the_place_of_the_one_that_waits(switch: Switch) -> None:
    install(switch)
    crowd(switch)
    late = Connection(switch)
    late.syn()
    with wire(switch) as line:
        for window in (1000, 2000):
            line.leave(late.syn_ack_segment(window=window).frame())
        assert len(take(switch)) == 2 and switch.datapath.turn_counts(1).waiting == 1
        install(switch, limits=LARGER)
        serve(switch)
        (frame,) = line.received()
    assert packets.window(frame) == 2000
    found = switch.flow(late.data_key)
    assert found is not None and found[1].syn_ns > 0, "seen once"


def test_later_handshakes_wait_behind_the_first(switch: Switch) -> None:
    install(switch)
    crowd(switch)
    first, second = Connection(switch), Connection(switch)
    with wire(switch) as line:
        for late in (first, second):
            late.syn()
            line.leave(late.syn_ack_segment().frame())
            take(switch)
            # For the second, there would be room.
            install(switch, limits=LARGER)
        assert line.received() == []
        serve(switch)
        wanted = [late.syn_ack_segment().frame() for late in (first, second)]
        assert line.received() == wanted


@pytest.mark.parametrize("shape", ["IPv4", "IPv6"])
def test_announced_deadlines_come_before_arrival(switch: Switch, shape: str) -> None:
    install(switch)
    crowd(switch)
    late = [Connection(switch, **SHAPES[shape]) for _ in range(4)]
    now = time.monotonic_ns()
    switch.datapath.set_deadline(late[3].data_key, now + 2_000_000_000, now)
    with wire(switch) as line:
        for each in late:
            each.syn()
            line.leave(each.syn_ack_segment().frame())
        assert len(take(switch)) == 4
        # This one waits already; either direction names the connection.
        switch.datapath.set_deadline(late[2].ack_key, now + 1_000_000_000, now)
        install(switch, limits=LARGER)
        serve(switch)
        assert line.received() == [late[number].syn_ack_segment().frame() for number in (2, 3, 0, 1)]


def handshake(switch: Switch, **what: Any) -> Segment:
    late = Connection(switch)
    late.syn()
    return late.syn_ack_segment(**what)


@pytest.mark.parametrize("why", ["no agent", "no lease", "no turns", "own rule", "data", "reset", "no SYN"])
def test_it_leaves_at_once_if_it_must_not_wait(switch: Switch, why: str) -> None:
    install(switch)
    crowd(switch)
    late = Connection(switch)
    late.syn()
    segment = late.syn_ack_segment()
    if why == "no agent":
        renew(switch, -1)
    elif why == "no lease":
        install(switch, lease=-1)
    elif why == "no turns":
        install(switch, turns=0)
    elif why == "own rule":
        # For the client's ACKs of what the server will send.
        switch.rule(late.ack_key.reversed, 5000)
    elif why == "data":
        segment = segment.but(payload=b"fast open")
    elif why == "reset":
        segment = segment.but(flags="RA")
    elif why == "no SYN":
        segment = segment.but(flags="A", options=b"")
    with wire(switch) as line:
        line.leave(segment.frame())
        assert len(line.received()) == 1
        assert take(switch) == [] and switch.datapath.turn_counts(1).held == 0


def test_packets_that_wait_leave_with_the_law(switch: Switch) -> None:
    install(switch)
    crowd(switch)
    frames = [handshake(switch).frame() for _ in range(3)]
    with wire(switch) as line:
        for frame in frames:
            line.leave(frame)
        assert take(switch) == frames and line.received() == []
        switch.datapath.remove_law(1)
        assert line.received() == frames
    assert switch.datapath.turn_program.ports == frozenset()


def test_a_full_ring_buffer_lets_the_rest_pass(switch: Switch) -> None:
    install(switch)
    crowd(switch)
    base, sent = Connection(switch).syn_ack_segment(), 4000
    with wire(switch) as line:
        received = 0
        for number in range(sent):
            line.leave(base.but(dport=number + 1).frame())
            if number % 100 == 99:
                received += len(line.received(0.01))
        received += len(line.received())
    counts = switch.datapath.turn_counts(1)
    assert 0 < counts.held < sent
    assert counts.full == received == sent - counts.held
    assert len(switch.datapath.turn_program.take(sent)) == counts.held


def syn_of(late: Connection) -> bytes:
    options = packets.syn_options(1460, 7)
    return late.from_client(seq=late.client_isn, ack=0, flags="S", options=options).frame()


def half_open(switch: Switch, port: int) -> int:
    room = switch.datapath.turn_program.room(switch.ports[port].ifindex, time.monotonic_ns())
    assert room is not None
    return room.half_open


def test_a_flood_of_syns_takes_no_turns_from_others(switch: Switch) -> None:
    """Forged handshakes wait like others, but are never completed: when they have used up the allowance,
    nobody waits behind them.
    """
    install(switch, port=2, allowance=5)
    allowance = 5 + FLOWS
    crowd(switch)
    forged = [Connection(switch, client=f"10.0.9.{number}") for number in range(1, 41)]
    with wire(switch, 2) as line:
        for each in forged:
            line.leave(syn_of(each))
        assert len(take(switch)) == 40 and line.received() == []
        switch.datapath.turns.serve(time.monotonic_ns() + LONGEST_NS)
        assert len(line.received()) == 40
        assert half_open(switch, 2) == allowance, "those beyond it have left, too, but take no room"
        honest = Connection(switch)
        line.leave(syn_of(honest))
        assert line.received() == [syn_of(honest)] and take(switch) == []
        assert switch.datapath.turn_counts(2).full == 1
        # Its handshake is completed, so one more may have its turn, and waits for it.
        honest.syn_ack()
        honest.data(10)
        assert half_open(switch, 2) == allowance - 1
        next_one = Connection(switch)
        line.leave(syn_of(next_one))
        assert line.received() == [] and take(switch) == [syn_of(next_one)]


def test_handshakes_that_are_completed_use_no_allowance(switch: Switch) -> None:
    install(switch, port=2, limits=LARGER)
    with wire(switch, 2) as line:
        for number in range(30):
            each = Connection(switch)
            line.leave(syn_of(each))
            for packet in switch.datapath.turn_program.take(10):
                switch.datapath.turn_program.send(packet.port, packet.frame, 0)
            assert half_open(switch, 2) == 1, number
            each.syn_ack()
            each.data(10)
            assert half_open(switch, 2) == 0, number


def test_what_a_dead_agent_left_holds_nothing(switch: Switch) -> None:
    """The filter of a killed agent stays; its program looks at the time of the last renewal."""
    install(switch)
    crowd(switch)
    renew(switch, 0.2)
    time.sleep(0.25)
    with wire(switch) as line:
        line.leave(handshake(switch).frame())
        assert len(line.received()) == 1


def sharing(switch: Switch, port: int) -> int:
    counts, bucket_ns = switch.state(port), switch.datapath.window.bucket_ns
    return int(layout.counted_flows(counts.sharing, time.monotonic_ns(), bucket_ns))


@contextmanager
def awake(switch: Switch) -> Iterator[SegmentInjector]:
    """Windows can be closed, because senders are told when they open."""
    injector = SegmentInjector(switch.datapath)
    switch.datapath.turn_program.wake = injector.wake_one
    try:
        yield injector
    finally:
        switch.datapath.turn_program.wake = None


@pytest.mark.parametrize("shape", SHAPES)
def test_who_has_waited_for_long_connects_with_a_closed_window(switch: Switch, shape: str) -> None:
    install(switch)
    crowd(switch)
    turns, milliseconds = switch.datapath.turns, 1_000_000
    late = [Connection(switch, **SHAPES[shape]) for _ in range(2)]
    with awake(switch) as injector, wire(switch) as line:
        for each in late:
            each.syn()
            line.leave(each.syn_ack_segment().frame())
        held = switch.datapath.turn_program.take(10)
        began = held[0].held_ns
        for packet in held:
            turns.arrived(packet, began)
        assert len(held) == 2
        one_more = QueueLimits("htb", (FLOWS + 1) * FRAME, 25_000_000)
        install(switch, limits=one_more)
        turns.serve(began + 550 * milliseconds)
        assert line.received() == [late[0].syn_ack_segment().frame()] and sharing(switch, 1) == FLOWS + 1
        turns.serve(began + 750 * milliseconds)
        assert line.received() == [late[1].syn_ack_segment().frame()]
        assert switch.datapath.turn_counts(1).closed == turns.closed == 1
        assert sharing(switch, 1) == FLOWS + 1, "it will send nothing, and takes no share"
        answer = late[1].from_client(window=500)
        assert packets.window(switch.leave(2, answer)) == 0
        # Its turn: the window opens, and an update tells its sender.
        install(switch, limits=LARGER)
        turns.serve(began + 800 * milliseconds)
        assert injector.counts == {"wake": 1} and turns.closed == 0
        assert sharing(switch, 1) == FLOWS + 2
        assert packets.window(switch.leave(2, answer)) > 0


def closing(switch: Switch, frame: bytes, key: FlowKey) -> Closing:
    own = bytes(flow_key(key, directed=True))
    return switch.datapath.turn_program.close_window(own, frame, time.monotonic_ns() + 10**9)


def test_without_updates_no_window_is_closed(switch: Switch) -> None:
    """Nobody would wake the sender."""
    late = Connection(switch)
    late.syn()
    assert closing(switch, late.syn_ack_segment().frame(), late.ack_key) is Closing.NEVER
    assert switch.datapath.window.flow_rules.count == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_forged_handshake_does_not_close_the_window_of_a_connection(switch: Switch, shape: str) -> None:
    """Anybody can send one with the addresses and ports of others."""
    switch.datapath.turn_program.wake = lambda known: Opening.TOLD
    try:
        live = Connection(switch, **SHAPES[shape]).open()
        live.data(10)
        assert closing(switch, syn_of(live), live.data_key) is Closing.NEVER
        assert closing(switch, live.syn_ack_segment(seq=77).frame(), live.ack_key) is Closing.NEVER
        # One that answers no SYN, and one with another number.
        new = Connection(switch, **SHAPES[shape])
        assert closing(switch, new.syn_ack_segment().frame(), new.ack_key) is Closing.NEVER
        new.syn()
        assert closing(switch, new.syn_ack_segment(ack=5).frame(), new.ack_key) is Closing.NEVER
        assert switch.datapath.window.flow_rules.count == 0
        assert closing(switch, new.syn_ack_segment().frame(), new.ack_key) is Closing.DONE
        # One that is silent and may go on.
        window = switch.datapath.window
        key = flow_key(live.data_key)
        window.silent.set(key, window.flows.get(key))
        window.flows.delete(key)
        assert closing(switch, syn_of(live), live.data_key) is Closing.NEVER
        window.silent.delete(key)
        assert closing(switch, syn_of(live), live.data_key) is Closing.DONE
    finally:
        switch.datapath.turn_program.wake = None


def test_a_client_that_waits_gets_a_syn_ack_with_a_closed_window(switch: Switch) -> None:
    install(switch, port=2)
    injector = SegmentInjector(switch.datapath)
    switch.datapath.turn_program.wake = injector.wake_one
    try:
        late = Connection(switch)
        assert closing(switch, syn_of(late), late.data_key) is Closing.DONE
        late.syn()
        before = sharing(switch, 2)
        assert packets.window(late.syn_ack(window=5000)) == 0
        assert sharing(switch, 2) == before, "it sends nothing yet"
        key = bytes(flow_key(late.data_key, directed=True))
        program = switch.datapath.turn_program
        assert program.is_open(key)
        assert program.open_window(key, syn_of(late)) is Opening.TOLD
        assert injector.counts == {"wake": 1} and sharing(switch, 2) == before + 1
    finally:
        switch.datapath.turn_program.wake = None


def test_who_waits_is_started_when_the_port_is_only_observed(switch: Switch) -> None:
    install(switch)
    crowd(switch)
    injector = SegmentInjector(switch.datapath)
    switch.datapath.turn_program.wake = injector.wake_one
    late = [Connection(switch) for _ in range(2)]
    try:
        with wire(switch) as line:
            for each in late:
                each.syn()
                line.leave(each.syn_ack_segment().frame())
            held = switch.datapath.turn_program.take(10)
            for packet in held:
                switch.datapath.turns.arrived(packet, held[0].held_ns)
            install(switch, limits=QueueLimits("htb", (FLOWS + 1) * FRAME, 25_000_000))
            for after in (550, 750):
                switch.datapath.turns.serve(held[0].held_ns + after * 1_000_000)
            assert switch.datapath.turns.closed == 1
            switch.leave(2, late[1].from_client(window=500))
            switch.datapath.observe(1, True)
            assert injector.counts == {"wake": 1} and switch.datapath.window.flow_rules.count == 0
    finally:
        switch.datapath.turn_program.wake = None


# Far queues: the data that is expected arrives by the port where the handshake leaves


@contextmanager
def far_queue(switch: Switch) -> Iterator[int]:
    """Port 1 has a far queue: its number."""
    queue = FarQueue("p1", rate=LIMITS.rate, buffer=LIMITS.limit)
    port = next(each for each in with_far_queues(switch.ports.values(), {"p1": queue}) if each.far)
    switch.datapath.add_port(port)
    try:
        yield port.ofport
    finally:
        switch.datapath.remove_law(port.ofport)
        switch.datapath.remove_port(port.ofport)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_syn_ack_waits_until_the_switch_above_has_room(switch: Switch, shape: str) -> None:
    with far_queue(switch) as port:
        install(switch, port)
        crowd(switch)
        late = Connection(switch, **SHAPES[shape])
        late.syn()
        frame = late.syn_ack_segment().frame()
        with wire(switch) as line:
            line.leave(frame)
            assert line.received() == []
            assert take(switch) == [frame]
            serve(switch)
            assert line.received() == []
            install(switch, port, limits=LARGER)
            serve(switch)
            (left,) = line.received()
            assert packets.outside_window(left) == packets.outside_window(frame)
        counts = switch.datapath.turn_counts(port)
        assert (counts.waiting, counts.held, counts.released, counts.full) == (0, 1, 1, 0)
    with wire(switch) as line:
        line.leave(frame)
        assert line.received() == [frame] and take(switch) == [], "without the far queue nobody waits"


def test_a_syn_waits_whose_answer_will_send_through_the_far_queue(switch: Switch) -> None:
    """The opener is behind the bridge."""
    with far_queue(switch) as port:
        install(switch, port)
        crowd(switch)
        late = Connection(switch)
        frame = late.syn_ack_segment(ack=0, flags="S").frame()
        with wire(switch) as line:
            line.leave(frame)
            assert take(switch) == [frame] and line.received() == []


def test_a_long_virtual_queue_is_no_long_queue(switch: Switch) -> None:
    """What its law is told of stands for that of the switch above."""
    with far_queue(switch) as port:
        install(switch, port)
        crowd(switch, FLOWS // 2)
        data, known = switch.datapath, switch.datapath.ports[port].ifindex
        queue = data.queues.queues.get(c_uint32(known))
        queue.backlog, queue.last_ns = LIMITS.limit, time.monotonic_ns() + 10**10
        data.queues.queues.set(c_uint32(known), queue)
        for told, held in ((0, 0), (LIMITS.limit, 1)):
            state = data.law_state(port)
            state.queue = told
            data.window.law_states.set(c_uint32(data.window.slots[known]), state)
            late = Connection(switch)
            late.syn()
            with wire(switch) as line:
                line.leave(late.syn_ack_segment().frame())
                assert (len(line.received()), len(take(switch))) == (1 - held, held)
            room = data.turn_program.room(known, time.monotonic_ns())
            assert room is not None and room.backlog == told


def test_turns_of_the_port_itself_go_first(switch: Switch) -> None:
    with far_queue(switch) as port:
        install(switch, port)
        install(switch, 1, limits=LARGER)
        crowd(switch)
        late = Connection(switch)
        late.syn()
        with wire(switch) as line:
            line.leave(late.syn_ack_segment().frame())
            assert len(line.received()) == 1 and take(switch) == []
        switch.datapath.remove_law(1)
        later = Connection(switch)
        later.syn()
        frame = later.syn_ack_segment().frame()
        with wire(switch) as line:
            line.leave(frame)
            assert take(switch) == [frame], "the filter stays for the far queue"


def test_who_has_waited_for_the_far_queue_connects_with_a_closed_window(switch: Switch) -> None:
    turns, milliseconds = switch.datapath.turns, 1_000_000
    with far_queue(switch) as port, awake(switch) as injector, wire(switch) as line:
        install(switch, port)
        crowd(switch)
        late = [Connection(switch) for _ in range(2)]
        for each in late:
            each.syn()
            line.leave(each.syn_ack_segment().frame())
        held = switch.datapath.turn_program.take(10)
        began = held[0].held_ns
        for packet in held:
            turns.arrived(packet, began)
        install(switch, port, limits=QueueLimits("htb", (FLOWS + 1) * FRAME, 25_000_000))
        turns.serve(began + 550 * milliseconds)
        (left,) = line.received()
        assert packets.window(left) > 0, "it has its turn"
        turns.serve(began + 750 * milliseconds)
        (left,) = line.received()
        assert packets.window(left) == 0 and turns.closed == 1
        # Its turn: the window opens, and an update tells its sender.
        switch.leave(2, late[1].from_client(seq=late[1].client_isn + 1, ack=late[1].server_isn + 1))
        answer = late[1].from_server(window=500)
        assert packets.window(switch.leave(1, answer)) == 0
        install(switch, port, limits=LARGER)
        turns.serve(began + 800 * milliseconds)
        assert injector.counts == {"wake": 1} and turns.closed == 0
        assert packets.window(switch.leave(1, answer)) > 0
