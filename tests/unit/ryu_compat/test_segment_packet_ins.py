"""Packet-ins of one cookie go to their function at once. All others, and what it does not want, go to Ryu."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from ryu.controller import ofp_event

from fairq_ryu.ryu_compat import segment_packet_ins
from tests.fuzz import messages

COOKIE, FRAME = 0x77, bytes(range(60))


class Takes:
    """The function of :data:`COOKIE`, and a datapath whose packet-ins these applications observe."""

    def __init__(self, answer: bool | Exception = True, apps: tuple[str, ...] = ("ours",)) -> None:
        self.calls: list[tuple[Any, int, bytes]] = []
        self.answer = answer
        observers = {ofp_event.EventOFPPacketIn: {name: {"main"} for name in apps}} if apps else {}
        self.datapath = SimpleNamespace(ofp_brick=SimpleNamespace(observers=observers))

    def __call__(self, datapath: Any, number: int, frame: bytes) -> bool:
        self.calls.append((datapath, number, frame))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def taken(takes: Takes, message: bytes, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(segment_packet_ins, "_takers", {})
    segment_packet_ins.register(COOKIE, takes)
    return segment_packet_ins.take(takes.datapath, message)


@pytest.mark.parametrize(
    "fields", [{}, {"metadata": 5}, {"metadata": 5, "eth_type": 0x800, "ip_proto": 6, "tcp_dst": 80}]
)
def test_the_function_gets_port_and_frame(monkeypatch, fields):
    takes = Takes()
    assert taken(takes, messages.packet_in(FRAME, COOKIE, in_port=3, **fields), monkeypatch)
    assert takes.calls == [(takes.datapath, 3, FRAME)]


@pytest.mark.parametrize("apps", [(), ("ours", "another")])
def test_what_another_application_observes_takes_ryu_s_way(monkeypatch, apps):
    takes = Takes(apps=apps)
    assert not taken(takes, messages.packet_in(FRAME, COOKIE, in_port=3), monkeypatch)
    assert takes.calls == []


@pytest.mark.parametrize("idle", [True, False])
def test_where_the_order_matters_events_are_not_overtaken(monkeypatch, idle):
    takes = Takes()
    monkeypatch.setattr(segment_packet_ins, "_takers", {})
    segment_packet_ins.register(COOKIE, takes, lambda _: idle)
    message = messages.packet_in(FRAME, COOKIE, in_port=3)
    assert segment_packet_ins.take(takes.datapath, message) == idle == bool(takes.calls)


def test_other_cookies_and_frames_without_a_port_take_ryu_s_way(monkeypatch):
    takes = Takes()
    assert not taken(takes, messages.packet_in(FRAME, COOKIE + 1, in_port=3), monkeypatch)
    assert not taken(takes, messages.packet_in(FRAME, COOKIE, metadata=3), monkeypatch)
    assert takes.calls == []


def test_what_the_function_does_not_want_takes_ryu_s_way(monkeypatch):
    assert not taken(Takes(False), messages.packet_in(FRAME, COOKIE, in_port=3), monkeypatch)


def test_a_match_that_ryu_cannot_decode_is_left_to_it(monkeypatch):
    """It ends the connection with the reason."""
    good = messages.packet_in(FRAME, COOKIE, in_port=3)
    at = 24 + struct.calcsize("!HH")
    bad = good[:at] + struct.pack("!HBB", 0x8000, 1, 4) + good[at + 4 :]  # without the mask
    takes = Takes()
    assert not taken(takes, bad, monkeypatch)
    assert takes.calls == []


def test_a_long_match_is_not_kept(monkeypatch):
    """Its sender chooses it freely, and it may have 60 KB."""
    takes = Takes()
    long = {f"reg{number}": number for number in range(16)}
    message = messages.packet_in(FRAME, COOKIE, in_port=3, metadata=1, **long)
    kept = segment_packet_ins._in_port.cache_info().currsize
    assert not taken(takes, message, monkeypatch)
    assert takes.calls == [] and segment_packet_ins._in_port.cache_info().currsize == kept


def test_a_frame_that_fails_is_logged_and_the_connection_stays(monkeypatch, caplog):
    takes = Takes(ValueError("of a fault"))
    assert taken(takes, messages.packet_in(FRAME, COOKIE, in_port=3), monkeypatch)
    assert "a copy of a segment is lost" in caplog.text and "of a fault" in caplog.text
