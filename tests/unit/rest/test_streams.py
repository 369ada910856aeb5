"""Streams of events without a server: which events are queued, and which are discarded."""

from __future__ import annotations

import json
import re

import pytest

from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.model import PortKey
from fairq_ryu.rest import streams
from fairq_ryu.rest.reply import RequestRefused
from fairq_ryu.rest.streams import Streams


def take(stream, count: int) -> list[str]:
    found = iter(stream)
    return [next(found).decode() for _ in range(count)]


def test_a_frame_has_one_line_of_data():
    hub = Streams(clock=lambda: 0.0)
    stream = hub.events(None, None, {}).stream
    hub.add(Occurrence(Kind.POLICY, "two\nlines", PortKey(1, 2)))
    frame = take(stream, 2)[1]
    assert re.match(r"event: policy\nid: 1@[0-9a-f]+\ndata: {", frame) and frame.endswith("}\n\n")
    assert frame.count("\n") == 4
    assert json.loads(frame.split("data: ")[1])["message"] == "two\nlines"


def test_numbers_of_an_earlier_controller_ask_for_everything():
    hub, earlier = Streams(), Streams()
    for number in range(3):
        for each in (hub, earlier):
            each.add(Occurrence(Kind.LOSS, "x", PortKey(1, number)))
    frame = take(earlier.events(0, None, {}).stream, 2)[1]
    (known,) = re.findall(r"^id: (.+)$", frame, re.MULTILINE)
    assert (earlier.known(known), hub.known(known)) == (1, 0)
    assert [hub.known(each) for each in ("", "7", "x@y", f"{'9' * 30}@1")] == [None] * 4
    assert [hub.after(each) for each in (2, 3, 4)] == [2, 3, 0]


def test_a_clock_that_is_set_moves_the_times_of_events(monkeypatch):
    hub = Streams()
    hub.add(Occurrence(Kind.POLICY, "x"))
    (event,) = hub.history.since()
    before, now = hub.row(event)["time"], streams.time.time
    monkeypatch.setattr(streams.time, "time", lambda: now() + 3600)
    assert abs(hub.row(event)["time"] - before - 3600) < 1
    assert abs(hub.now() - now() - 3600) < 1


def test_a_reader_that_does_not_keep_up_is_ended():
    hub = Streams(clock=lambda: 0.0)
    slow = hub.events(None, None, {}).stream
    for number in range(streams._MAX_FRAMES + 5):
        hub.add(Occurrence(Kind.LOSS, "x", PortKey(1, number)))
    assert len(hub) == 0
    assert list(slow) == []


def test_the_bytes_queued_for_a_reader_are_limited():
    hub = Streams()
    slow = hub.events(None, None, {}).stream
    for _ in range(3):
        slow.put(b"x" * (streams.MAX_BYTES // 2))
    assert len(hub) == 0


def test_a_frame_larger_than_the_limit_reaches_a_waiting_reader():
    hub = Streams()
    stream = hub.events(None, None, {}).stream
    take(stream, 1)
    stream.put(b"x" * (streams.MAX_BYTES * 2))
    assert len(hub) == 1


def test_of_states_larger_than_the_limit_a_reader_gets_the_latest():
    """As of a network with thousands of ports, whose reader takes longer than until the next state."""
    hub = Streams(clock=lambda: 0.0)
    stream = hub.live({}).stream
    take(stream, 1)
    for number in range(streams._MAX_REPLACED):
        stream.put_state(b"%d" % number + b"x" * streams.MAX_BYTES)
    hub.add(Occurrence(Kind.LOSS, "x"))
    first, second = take(stream, 2)
    assert first.startswith("19x") and second.startswith("event: event")
    stream.put_state(b"next")
    assert take(stream, 1) == ["next"]


def test_a_reader_that_takes_no_states_is_ended():
    hub = Streams()
    stream = hub.live({}).stream
    for _ in range(streams._MAX_REPLACED + 1):
        stream.put_state(b"state")
        assert len(hub) == 1
    stream.put_state(b"state")
    assert len(hub) == 0 and list(stream) == []


def test_closed_streams_free_their_places():
    hub = Streams(limit=2)
    first, _ = (hub.events(None, None, {}).stream for _ in range(2))
    with pytest.raises(RequestRefused, match="2 streams already"):
        hub.live({})
    first.close()
    first.close()
    hub.live({})
    assert len(hub) == 2


def test_a_head_request_takes_no_place():
    hub = Streams(limit=1)
    for _ in range(3):
        assert list(hub.events(None, None, {"REQUEST_METHOD": "HEAD"}).stream) == []
    assert len(hub) == 0


def test_without_readers_no_state_is_made(monkeypatch):
    made = []
    hub = Streams(state=lambda: made.append(1) or {})
    hub.add(Occurrence(Kind.LOSS, "x"))
    stream = hub.live({}).stream
    stream.close()
    streams.hub.sleep(0)
    assert made == [] and not hub._running


def test_the_state_is_made_once_for_all(monkeypatch):
    monkeypatch.setattr(streams, "INTERVAL", 0.01)
    made = []
    hub = Streams(state=lambda: made.append(1) or {"count": len(made)})
    readers = [hub.live({}).stream for _ in range(3)]
    streams.hub.sleep(0.02)
    frames = {take(reader, 2)[1] for reader in readers}
    assert frames == {'event: state\ndata: {"count": 1}\n\n'}
    for reader in readers:
        reader.close()
    streams.hub.sleep(0.2)
    count = len(made)
    streams.hub.sleep(0.2)
    assert len(made) == count


def test_a_state_that_cannot_be_made_ends_the_streams(caplog):
    hub = Streams(state=lambda: 1 / 0)
    reader = hub.live({}).stream
    streams.hub.sleep(0.01)
    assert len(hub) == 0 and "Traceback" in caplog.text
    assert list(reader) == []


class Silent:
    """A connection whose reader sends nothing, and disconnects when the test orders it."""

    def __init__(self) -> None:
        self.asked = 0
        self.gone = False

    def get_socket(self):
        return self

    def setsockopt(self, *_) -> None:
        pass

    def recv(self, _: int) -> bytes:
        self.asked += 1
        streams.hub.sleep(0.001)
        if not self.gone:
            raise TimeoutError
        return b""


def test_a_silent_reader_is_kept_and_a_disconnected_one_is_removed():
    hub, connection = Streams(), Silent()
    hub.events(None, None, {"eventlet.input": connection})
    streams.hub.sleep(0.05)
    assert len(hub) == 1 and connection.asked > 1
    connection.gone = True
    streams.hub.sleep(0.05)
    assert len(hub) == 0
