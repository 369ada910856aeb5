"""Claims: the holder is asked, its answer refutes the claim, and its silence proves it."""

import pytest

from fairq_ryu.fabric.topology import claims as module
from fairq_ryu.fabric.topology.claims import Claims, Holder
from fairq_ryu.model import PortKey

HOLDER = Holder("02:00:00:00:00:01", PortKey(1, 1), "10.0.0.1")
PORT = PortKey(1, 2)


@pytest.fixture
def claims():
    found = Claims()
    assert found.add((0, HOLDER.ip), HOLDER, PORT, "frame", 0.0)
    return found


def asked(claims, now):
    return [claim.address[1] for claim in claims.questions(now)]


def unread(claims, now):
    """The claims for which the caller has to hear of the bridge."""
    return [claim for found in claims.unread(now).values() for claim in found]


def believed(claims, now):
    """What is believed where the bridge replies at once."""
    claims.read(unread(claims, now))
    claims.read(unread(claims, now))
    return [claim.what for claim in claims.believed(now)]


def ask_all(claims, begin=0.0):
    """Ask every question; the bridge takes them at once. Returns the time of the last one."""
    times = [begin + turn / 4 for turn in range(module.QUESTIONS)]
    assert all(asked(claims, now) for now in times)
    assert believed(claims, times[-1]) == []
    return times[-1]


def test_the_holder_is_asked_ten_times_and_its_silence_proves_the_claim(claims):
    times = []
    for now in (step / 100 for step in range(0, 300, 5)):
        times += [now] if asked(claims, now) else []
        assert believed(claims, now) == []
    assert times == [turn / 4 for turn in range(10)]
    assert unread(claims, 2.99) == [] and believed(claims, 2.99) == []
    assert believed(claims, 3.0) == ["frame"] and len(claims) == 0
    assert claims.outcomes == {"believed": 1, "refused": 0, "ignored": 0}


def test_an_answer_refutes_the_claim_for_a_while(claims):
    asked(claims, 0.0)
    assert [claim.port for claim in claims.answered(HOLDER, 0.05)] == [PORT]
    assert claims.answered(HOLDER, 0.06) == []
    assert asked(claims, 0.2) == [] and believed(claims, 1.0) == []
    assert not claims.add((0, HOLDER.ip), HOLDER, PORT, "again", 1.0)  # a flood asks nobody
    assert believed(claims, 1.05) == []
    assert claims.add((0, HOLDER.ip), HOLDER, PORT, "again", 1.1)
    assert claims.outcomes == {"believed": 0, "refused": 1, "ignored": 0}


@pytest.mark.parametrize(
    "other",
    [
        HOLDER._replace(mac="02:00:00:00:00:02"),
        HOLDER._replace(port=PORT),
        HOLDER._replace(ip="10.0.0.9"),
        HOLDER._replace(vlan=10),
    ],
    ids=["another host", "at the port of the claim", "for another address", "in another VLAN"],
)
def test_only_the_holder_can_answer(claims, other):
    ask_all(claims)
    assert claims.answered(other, 2.3) == []
    assert believed(claims, 3.0) == ["frame"]


def test_a_claim_is_not_believed_before_every_question_was_asked(claims):
    """The controller had no time for them: each turn asks one."""
    assert believed(claims, 5.0) == []
    for turn in range(module.QUESTIONS):
        assert asked(claims, 100.0 + turn) == [HOLDER.ip] and believed(claims, 100.5 + turn) == []
    assert believed(claims, 110.24) == [] and believed(claims, 110.25) == ["frame"]


def test_a_question_that_waits_for_the_bridge_is_not_silence(claims):
    times = [turn / 4 for turn in range(module.QUESTIONS)]
    assert all(asked(claims, now) for now in times)
    (claim,) = unread(claims, 2.3)
    assert unread(claims, 60.0) == [] and claims.believed(60.0) == []  # the bridge takes nothing
    claims.read([claim])
    assert unread(claims, 61.0) == [] and claims.believed(61.0) == []  # the answers come from now on
    assert unread(claims, 61.74) == [] and unread(claims, 61.75) == [claim]


def test_an_answer_that_waits_to_be_read_is_not_silence(claims):
    now = ask_all(claims) + 10
    (claim,) = unread(claims, now)
    assert claim.holder == HOLDER and list(claims.unread(now)) == []  # the caller is told once
    assert [each.what for each in claims.believed(now + 100)] == []
    assert claims.answered(HOLDER, now + 100) == [claim]  # now it is read
    claims.read([claim])
    assert claims.believed(now + 100.9) == [] and len(claims) == 1
    assert claims.believed(now + 101) == [] and len(claims) == 0
    assert claims.outcomes == {"believed": 0, "refused": 1, "ignored": 0}


def test_claims_are_bounded_for_a_port_and_in_total(claims, monkeypatch):
    monkeypatch.setattr(module, "MAX_PER_PORT", 3)
    monkeypatch.setattr(module, "MAX_CLAIMS", 5)
    added = [claims.add((0, f"10.0.1.{n}"), HOLDER, PORT, "", 0.0) for n in range(4)]
    assert added == [True, True, False, False]
    added = [claims.add((0, f"10.0.2.{n}"), HOLDER, HOLDER.port, "", 0.0) for n in range(4)]
    assert added == [True, True, False, False]
    assert claims.outcomes["ignored"] == 4
    ask_all(claims)
    assert len(believed(claims, 3.0)) == 5
    assert len(claims) == 0 and claims.add((0, "10.0.1.9"), HOLDER, PORT, "", 4.0)


def test_one_answer_refutes_all_claims_about_a_host(claims):
    """Its MAC address and its IP address were claimed."""
    claims.add((0, HOLDER.mac), HOLDER, PORT, "", 0.0)
    assert len(claims.answered(HOLDER, 0.1)) == 2
