"""Experimenter replies go to their function at once. All others, and what it does not want, go to Ryu."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest
from ryu.controller import ofp_event
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import framing, oxm
from fairq_ryu.channel.dispatch import ExperimenterMessage
from fairq_ryu.ryu_compat import direct_replies

EVENT = ofp_event.EventOFPExperimenterStatsReply


def reply(kind: int = ofp.OFPMP_EXPERIMENTER, flags: int = 0, data: bytes = b"body") -> bytes:
    head = struct.pack("!HH4x", kind, flags) + framing.EXPERIMENTER.pack(oxm.EXPERIMENTER_ID, 3)
    return framing.message(ofp.OFPT_MULTIPART_REPLY, 77, head + data)


class Takes:
    """The function, and a datapath whose replies these applications observe."""

    def __init__(self, answer: bool | Exception = True, apps: tuple[str, ...] = ("ours",)) -> None:
        self.calls: list[tuple[Any, ExperimenterMessage]] = []
        self.answer, self.idle = answer, True
        observers = {EVENT: {name: {"main"} for name in apps}} if apps else {}
        self.datapath = SimpleNamespace(ofp_brick=SimpleNamespace(observers=observers))

    def __call__(self, datapath: Any, found: ExperimenterMessage) -> bool:
        self.calls.append((datapath, found))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def taken(takes: Takes, message: bytes, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(direct_replies, "_takers", [])
    assert not direct_replies.take(takes.datapath, message), "nobody takes it"
    direct_replies.register(takes, lambda _: takes.idle)
    return direct_replies.take(takes.datapath, message)


@pytest.mark.parametrize("more", [False, True])
def test_the_function_gets_the_reply(monkeypatch, more):
    takes = Takes()
    assert taken(takes, reply(flags=ofp.OFPMPF_REPLY_MORE if more else 0), monkeypatch)
    expected = ExperimenterMessage(oxm.EXPERIMENTER_ID, 3, 77, more, b"body")
    assert takes.calls == [(takes.datapath, expected)]


@pytest.mark.parametrize("apps", [(), ("ours", "another")])
def test_what_another_application_observes_takes_ryu_s_way(monkeypatch, apps):
    takes = Takes(apps=apps)
    assert not taken(takes, reply(), monkeypatch) and takes.calls == []


def test_a_reply_does_not_overtake_events(monkeypatch):
    """A notice of congestion, or of a port that was removed, may have come before it."""
    takes = Takes()
    takes.idle = False
    assert not taken(takes, reply(), monkeypatch) and takes.calls == []


def test_other_replies_take_ryu_s_way(monkeypatch):
    takes = Takes()
    assert not taken(takes, reply(ofp.OFPMP_DESC), monkeypatch)
    assert not taken(takes, reply()[:20], monkeypatch)
    assert takes.calls == []


def test_what_the_function_does_not_want_takes_ryu_s_way(monkeypatch):
    assert not taken(Takes(False), reply(), monkeypatch)


def test_a_reply_that_fails_is_logged_and_the_connection_stays(monkeypatch, caplog):
    assert taken(Takes(ValueError("of a fault")), reply(), monkeypatch)
    assert "a reply is lost" in caplog.text and "of a fault" in caplog.text
