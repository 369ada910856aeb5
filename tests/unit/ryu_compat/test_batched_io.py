"""A connection to a switch: queued messages are sent together, no sender is blocked, and the connection ends
by itself.
"""

from __future__ import annotations

import gc
import struct
import weakref
from types import SimpleNamespace
from typing import Any

import eventlet
import pytest
from eventlet import hubs
from eventlet.greenio import GreenSocket
from ryu.controller import ofp_handler
from ryu.controller.handler import MAIN_DISPATCHER
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.ryu_compat import batched_io, direct_replies, segment_packet_ins, switch_listener
from fairq_ryu.ryu_compat.batched_io import SendQueue, SwitchConnection
from tests.fuzz import corpus, messages, targets


@pytest.fixture(autouse=True)
def _empty(monkeypatch):
    monkeypatch.setattr(switch_listener, "CONNECTIONS", switch_listener.ConnectionRegistry())


class Sink(targets.Script):
    """A socket that records each write, and how it was shut down."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__(pieces)
        self.pieces_out: list[bytes] = []
        self.shut: list[int] = []
        self.closed = False

    def sendall(self, data: bytes) -> None:
        self.pieces_out.append(data)

    def shutdown(self, how: int) -> None:
        self.shut.append(how)

    def close(self) -> None:
        self.closed = True


def test_all_queued_messages_are_sent_at_once():
    queue = SendQueue()
    for part in (b"one", b"two", b"three"):
        queue.put(part, False)
    assert queue.bytes == 11
    assert queue.take() == (b"onetwothree", False)
    queue.sent(11)
    assert (queue.bytes, len(queue)) == (0, 0)


def test_nothing_is_sent_after_the_last_message():
    queue = SendQueue()
    for part, last in ((b"one", False), (b"last", True), (b"never", False)):
        queue.put(part, last)
    assert queue.take() == (b"onelast", True)


def test_a_connection_sends_every_byte_in_order_and_few_times():
    sink = Sink()
    switch = SwitchConnection(sink, ("test", 1))
    sender = hub.spawn(switch._send_loop)
    for number in range(100):
        assert switch.send(number.to_bytes(4))
        assert not sink.pieces_out  # no other greenlet ran in between
    hub.sleep(0)
    assert b"".join(sink.pieces_out) == b"".join(number.to_bytes(4) for number in range(100))
    assert len(sink.pieces_out) == 1
    assert switch.send_q is not None
    assert switch.send_q.bytes == 0
    hub.kill(sender)


@pytest.mark.parametrize(("bound", "value"), [("MAX_UNSENT_BYTES", 1000), ("MAX_UNSENT", 10)])
def test_a_peer_that_does_not_read_costs_its_own_connection(monkeypatch, peer_warnings, bound, value):
    """No sender waits for it: there is no other greenlet here that could wake it."""
    monkeypatch.setattr(batched_io, bound, value)
    sink = Sink()
    switch = SwitchConnection(sink, ("test", 1))
    sent = 0
    while switch.send(bytes(100)):
        sent += 1
    assert sent == 10
    assert peer_warnings == [
        f"test:1: it does not read: {1100} bytes in 11 messages are queued; connection closed"
    ]
    assert sink.shut
    assert not switch.send(b"more")
    assert len(peer_warnings) == 1


def test_a_peer_that_does_not_read_for_long(peer_warnings):
    class Stuck(Sink):
        def sendall(self, data: bytes) -> None:
            raise TimeoutError

    sink = Stuck()
    switch = SwitchConnection(sink, ("test", 1))
    switch.send(b"data")
    switch._send_loop()
    assert peer_warnings == ["test:1: it has read nothing for 5 s; connection closed"]
    assert sink.shut
    assert not switch.send(b"more")


class Brick:
    """The part of Ryu's handshake that ends a connection."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.observers: dict[type, dict[str, set[str]]] = {}

    def send_event_to_observers(self, event: Any, state: Any = None) -> None:
        self.seen.append(type(event).__name__)

    def get_handlers(self, _event: Any) -> list[Any]:
        return []


def receive(
    *pieces: bytes | None, state: str | None = None, clock: Any = None
) -> tuple[Sink, SwitchConnection, Brick]:
    sink, brick = Sink(*pieces), Brick()
    switch = SwitchConnection(sink, ("test", 1))
    switch.ofp_brick = brick
    if state is not None:
        switch.set_state(state)
        brick.seen.clear()
    switch._recv_loop()
    return sink, switch, brick


def test_split_and_joined_messages_are_decoded_alike(peer_warnings):
    barrier = messages.message(ofp.OFPT_BARRIER_REPLY)
    stream = barrier * 3 + messages.from_switch()["packet-in-syn"]
    expected = ["EventOFPBarrierReply"] * 3 + ["EventOFPPacketIn"]
    for size in (1, 7, 9, len(stream)):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        sink, _, brick = receive(*pieces, state=MAIN_DISPATCHER)
        assert brick.seen[:4] == expected
        assert sink.closed
    assert peer_warnings == []


@pytest.mark.parametrize("taken", [True, False])
def test_copies_and_replies_are_offered_before_they_become_events(monkeypatch, taken):
    offered: list[int] = []
    for module in (direct_replies, segment_packet_ins):
        monkeypatch.setattr(module, "take", lambda _, message: (offered.append(message[1]), taken)[1])
    stream = messages.from_switch()["packet-in-syn"] + messages.reply(ofp.OFPMP_EXPERIMENTER, bytes(8))
    _, _, brick = receive(stream, state=MAIN_DISPATCHER)
    assert offered == [ofp.OFPT_PACKET_IN, ofp.OFPT_MULTIPART_REPLY]
    assert brick.seen == ([] if taken else ["EventOFPPacketIn", "EventOFPExperimenterStatsReply"])


def test_of_a_switch_that_is_another_controller_s_only_role_and_ports_are_of_interest(monkeypatch):
    monkeypatch.setattr(batched_io.SwitchConnection, "owned", False)
    offered: list[int] = []
    for module in (direct_replies, segment_packet_ins):
        monkeypatch.setattr(module, "take", lambda _, message: bool(offered.append(message[1])))
    role = messages.message(ofp.OFPT_ROLE_REPLY, struct.pack("!I4xQ", ofp.OFPCR_ROLE_SLAVE, 7))
    other = messages.from_switch()["packet-in-syn"] + messages.reply(ofp.OFPMP_EXPERIMENTER, bytes(8))
    _, _, brick = receive(other + role, state=MAIN_DISPATCHER)
    assert brick.seen == ["EventOFPRoleReply"] and offered == []


def test_a_peer_that_floods_does_not_starve_the_controller(monkeypatch):
    """For any amount of data, in any number of reads."""
    turns: list[int] = []
    clock = SimpleNamespace(now=0.0)

    def monotonic() -> float:
        clock.now += 0.00005
        return clock.now

    monkeypatch.setattr(batched_io, "time", SimpleNamespace(monotonic=monotonic))
    monkeypatch.setattr(batched_io.hub, "sleep", lambda _: turns.append(1))
    barrier = messages.message(ofp.OFPT_BARRIER_REPLY)
    receive(barrier * 1000, state=MAIN_DISPATCHER)
    heap = len(turns)
    assert heap > 10
    receive(*[barrier] * 1000, state=MAIN_DISPATCHER)
    assert len(turns) > 2 * heap


def test_a_malformed_message_is_one_line_with_peer_and_switch(peer_warnings):
    sink, switch, brick = receive(
        messages.message(ofp.OFPT_BARRIER_REPLY) + b"\4\25\0\7\0\0\0\0" * 5, state=MAIN_DISPATCHER
    )
    assert peer_warnings == [
        "test:1: malformed BARRIER_REPLY: length 7 in the header, less than the header's own 8 bytes;"
        " connection closed"
    ]
    assert brick.seen == ["EventOFPBarrierReply"]
    assert sink.closed and sink.shut
    switch.id = 0xF022
    assert str(switch) == "test:1 (switch 000000000000f022)"


def test_a_message_that_ryu_cannot_decode_is_one_line_too(peer_warnings):
    data = messages.message(
        ofp.OFPT_PACKET_IN, bytes(16) + struct.pack("!HHIB3x", 1, 9, 0x80000001, 1) + bytes(10)
    )
    _, _, brick = receive(data * 3, state=MAIN_DISPATCHER)
    assert brick.seen == []
    assert len(peer_warnings) == 1
    assert peer_warnings[0].startswith(
        "test:1: PACKET_IN cannot be decoded: Exception: Unexpected OXM payload length"
    )


class Clock:
    """A clock that advances with every received piece."""

    def __init__(self, monkeypatch: Any, step: float) -> None:
        self.now = 100.0
        self.step = step
        monkeypatch.setattr(batched_io, "time", SimpleNamespace(monotonic=lambda: self.now))

    def pieces(self, *pieces: bytes | None) -> Any:
        for piece in pieces:
            self.now += self.step
            yield piece


class Slow(Sink):
    def __init__(self, pieces: Any) -> None:
        super().__init__()
        self.coming = pieces

    def recv(self, _size: int) -> bytes:
        piece = next(self.coming, b"")
        if piece is None:
            raise TimeoutError
        return piece


@pytest.mark.parametrize("piece", [None, messages.message(ofp.OFPT_ECHO_REQUEST)])
def test_a_handshake_has_a_time_limit(monkeypatch, peer_warnings, piece):
    """Whether the peer is silent or sends other messages."""
    clock = Clock(monkeypatch, 5.0)
    switch = SwitchConnection(Slow(clock.pieces(*[piece] * 9)), ("test", 1))
    switch.ofp_brick = Brick()
    switch._recv_loop()
    assert peer_warnings == ["test:1: no complete handshake after 10 s; connection closed"]
    assert clock.now == 115


def test_half_a_message_has_a_time_limit(monkeypatch, peer_warnings):
    """Even if the rest arrives steadily, a byte at a time."""
    clock = Clock(monkeypatch, 1.0)
    echo = messages.message(ofp.OFPT_ECHO_REQUEST, bytes(1000))
    parts = [echo, echo, *(echo[at : at + 1] for at in range(50))]
    switch = SwitchConnection(Slow(clock.pieces(*parts)), ("test", 1))
    switch.ofp_brick = Brick()
    switch.set_state(MAIN_DISPATCHER)
    switch._recv_loop()
    assert peer_warnings == ["test:1: incomplete message after 10 s; connection closed"]
    assert clock.now == 100 + 2 + 12


def test_a_connected_switch_may_be_silent(monkeypatch, peer_warnings):
    clock = Clock(monkeypatch, 5.0)
    switch = SwitchConnection(Slow(clock.pieces(*[None] * 50)), ("test", 1))
    switch.set_state(MAIN_DISPATCHER)
    switch._recv_loop()
    assert peer_warnings == []


def test_echo_replies_are_not_queued_for_a_peer_that_does_not_read(monkeypatch):
    monkeypatch.setattr(batched_io, "_MAX_UNSENT_ECHOES", 5)
    target = corpus.target("controller")
    sock = Sink(messages.handshake() + messages.message(ofp.OFPT_ECHO_REQUEST) * 100)
    switch = SwitchConnection(sock, ("test", 1))
    switch.ofp_brick = target.brick
    queue = switch.send_q
    switch._recv_loop()
    assert queue is not None
    assert len(queue) < 5 + 10


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (messages.HELLO + messages.ports(1), "port description before FEATURES_REPLY"),
        (messages.handshake() + messages.features(7), "it changes its datapath id to 0000000000000007"),
        (messages.HELLO + messages.from_switch()["error"], "it sent error type 1 code 6"),
        (
            messages.HELLO + messages.features() + messages.from_switch()["ports-more"] * 65,
            "it has more ports",
        ),
        (messages.from_switch()["hello-1.0"], "it does not offer OpenFlow 1.3"),
    ],
)
def test_handshake_messages_in_the_wrong_direction(peer_warnings, stream, reason):
    target = corpus.target("controller")
    assert reason in target_line(target, stream)


def target_line(target: targets.ControllerTarget, stream: bytes) -> str:
    lines: list[str] = []
    sock = Sink(stream)
    switch = SwitchConnection(sock, ("test", 1))
    switch.ofp_brick = target.brick
    switch.end = lines.append  # type: ignore[method-assign]
    with switch_listener.CONNECTIONS.served(switch):
        switch._recv_loop()
    (line,) = lines
    return line


def test_nothing_is_kept_of_a_connection_that_ends_at_once():
    """Without the garbage collector, which makes a full collection once in an hour."""
    gc.collect()
    gc.disable()
    try:
        switch = SwitchConnection(Sink(), ("test", 1))
        kept = weakref.ref(switch)
        switch.ofp_brick = targets.Brick(ofp_handler.OFPHandler(), [])
        switch.serve()
        del switch
        hub.sleep(0)
        assert kept() is None
    finally:
        gc.enable()


@pytest.fixture
def live():
    """A connection that is served, with a socket as Ryu's, and the peer's end of it."""
    with eventlet.listen(("127.0.0.1", 0)) as server:
        theirs = eventlet.connect(server.getsockname())
        ours, _ = server.accept()
    switch = SwitchConnection(ours, ("test", 1))
    assert type(switch.socket) is GreenSocket
    switch.ofp_brick = Brick()
    switch.set_state(MAIN_DISPATCHER)
    loop = hub.spawn(switch._recv_loop)
    yield switch, theirs, loop
    hub.kill(loop)
    theirs.close()


def test_what_comes_one_by_one_is_handled_at_once_and_the_end_is_seen(live):
    switch, theirs, loop = live
    barrier = messages.message(ofp.OFPT_BARRIER_REPLY)
    for number in range(1, 4):
        theirs.sendall(barrier)
        while len(switch.ofp_brick.seen) <= number:  # the first event is the change of the state
            hub.sleep(0.001)
    descriptor = switch.socket.fileno()
    theirs.close()
    hub.joinall([loop])
    assert switch.ended and switch.ofp_brick.seen[1:] == ["EventOFPBarrierReply"] * 3
    assert descriptor not in hubs.get_hub().listeners["read"], "another socket may get this number"


def test_a_part_of_a_message_runs_into_its_time_limit_and_silence_does_not(live, monkeypatch, peer_warnings):
    switch, theirs, loop = live
    monkeypatch.setattr(batched_io, "MESSAGE_TIME", 0.03)
    switch.socket.settimeout(0.01)
    barrier = messages.message(ofp.OFPT_BARRIER_REPLY)
    theirs.sendall(barrier)
    hub.sleep(0.1)
    assert not switch.ended
    theirs.sendall(barrier + barrier[:5])
    hub.joinall([loop])
    assert switch.ended and peer_warnings == ["test:1: incomplete message after 0.03 s; connection closed"]


def test_a_connection_that_is_ended_while_it_waits_is_over_at_once(live, peer_warnings):
    switch, theirs, loop = live
    theirs.sendall(messages.message(ofp.OFPT_BARRIER_REPLY))
    hub.sleep(0.01)
    switch.end("of a test")
    hub.joinall([loop])
    assert peer_warnings == ["test:1: of a test; connection closed"]


def test_a_connection_that_ryu_closes_while_it_waits_is_over_at_once(live):
    """As it does with a peer that leaves echo requests unanswered."""
    switch, theirs, loop = live
    theirs.sendall(messages.message(ofp.OFPT_BARRIER_REPLY))
    hub.sleep(0.01)
    switch.close()
    hub.joinall([loop])
    assert switch.ended
