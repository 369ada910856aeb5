"""A short run of ``make fuzz``, and the corpus."""

from __future__ import annotations

import logging

import pytest

from fairq_ryu.agent import messages as agent
from tests.fuzz import corpus, messages
from tests.fuzz.__main__ import Fuzzer
from tests.support.endless_messages import ENDLESS
from tests.support.fakes import bridge_port

_STREAMS = 1500


@pytest.fixture(scope="module")
def target():
    return corpus.target("controller")


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("name", corpus.TARGETS)
def test_mutated_streams_end_orderly(name, monkeypatch):
    monkeypatch.setattr(corpus, "keep", lambda *_: None)
    fuzzer = Fuzzer(name, seed=10)
    fuzzer.start()
    for _ in range(_STREAMS):
        fuzzer.step()
    assert fuzzer.faults == {}
    # Many different outcomes, not only the first check.
    assert len(fuzzer.outcomes) >= (6 if name == "agent" else 60)


@pytest.mark.parametrize("name", ENDLESS)
def test_messages_that_make_ryu_loop_end_the_connection_at_once(target, name):
    data = ENDLESS[name]
    stream = data if data[1] == 0 else messages.handshake() + data
    assert target.run(stream).startswith("malformed ")


@pytest.mark.parametrize("name", messages.from_switch())
def test_every_real_message_is_handled(target, name):
    data = messages.from_switch()[name]
    stream = data if data[1] == 0 else messages.handshake() + data
    outcome = target.run(stream)
    assert outcome == ("end False" if data[1] == 0 and data[0] == 4 else "end True") or name == "hello-1.0"


def test_the_handshake_alone_reaches_the_application(target):
    target.brick.events.clear()
    real = messages.from_switch()
    before = target.app.counts.packet_ins["tcp"]
    assert target.run(messages.handshake() + real["flows-none"] + real["packet-in-syn"]) == "end True"
    assert target.brick.events["EventOFPPacketIn"] == 1
    assert target.app.counts.packet_ins["tcp"] == before + 1


@pytest.mark.parametrize("reason", [0, 1, 2])
def test_a_status_of_an_unknown_port(target, reason):
    real = messages.from_switch()
    status = agent.port_status(reason, bridge_port(99))
    assert target.run(messages.handshake() + real["flows-none"] + status * 2) == "end True"


def test_a_packet_in_without_in_port(target):
    real = messages.from_switch()
    stream = messages.handshake() + real["flows-none"] + messages.packet_in(b"", metadata=5)
    assert target.run(stream) == "end True"
