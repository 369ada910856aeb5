"""The window laws of the switch: the C code and its twin give the same state, bit for bit, for any trace."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings

from fairq_ryu.agent import layout
from fairq_ryu.law_spec import Gain, LawFlags, LawKind
from fairq_ryu.policies import switch_laws
from fairq_ryu.policies.switch_laws import Law, LawInput, LawParameters
from tests.support.host_laws import STATE, TRACES, CompiledLaw, build, parameters, state_of, steps_agree


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(layout.BPF_DIR, tmp_path_factory.mktemp("laws"))


@settings(max_examples=400)
@given(parameters(LawParameters, LawKind), TRACES)
def test_both_laws_do_the_same(library, values, trace):
    steps_agree(Law(values), CompiledLaw(library, values), trace, LawInput)


def test_the_shortest_handshake_of_the_flows_that_fill_their_windows_counts(library):
    values = LawParameters(LawKind.FAIRQ, 25_000_000, 125_000, 31_250)
    for law in (Law(values), CompiledLaw(library, values)):

        def rtt(law=law):
            return state_of(law)["rtt_ns"] if isinstance(law, Law) else law.seen()["rtt_ns"]

        law.saw_segment(1460, 1460, 10**9)
        law.limited(1_000, 10_000, 5_000_000, 10**9)
        assert rtt() == 0, "it does not fill its window"
        law.limited(9_000, 10_000, 20_000_000, 10**9)
        law.limited(9_000, 10_000, 30_000_000, 10**9 + 10)
        law.limited(9_000, 10_000, 0, 10**9 + 20)
        assert rtt() == 20_000_000
        law.limited(9_000, 10_000, 5_000_000, 10**9 + 30)
        assert rtt() == 5_000_000
        law.limited(9_000, 10_000, 20_000_000, 2 * 10**9 + 30)
        assert rtt() == 20_000_000, "the short one has not been seen for a second"


def test_large_segments_count_while_their_flows_are_seen(library):
    """Every ACK shows its flow. One of MTU 9,000 that has gone must not leave its minimum windows behind."""
    values = LawParameters(LawKind.FAIRQ, 25_000_000, 125_000, 31_250)
    second = 10**9
    for law in (Law(values), CompiledLaw(library, values)):

        def segment(law=law):
            return state_of(law)["segment"] if isinstance(law, Law) else law.seen()["segment"]

        law.saw_segment(1460, 8960, 10 * second)
        assert segment() == 1460
        law.saw_segment(65_495, 8960, 10 * second + 1)
        assert segment() == 8960
        for tenth in range(100, 150):  # both send
            law.saw_segment(1460, 1460, tenth * second // 10)
            law.saw_segment(8960, 8960, tenth * second // 10)
            assert segment() == 8960
        seen = []
        for tenth in range(150, 180):  # the large one has ended
            law.saw_segment(1460, 1460, tenth * second // 10)
            seen.append(segment())
        assert seen[:10] == [8960] * 10 and seen[-10:] == [1460] * 10
        law.saw_segment(8960, 8960, 20 * second)
        assert segment() == 8960
        law.saw_segment(0, 0, 60 * second)
        assert segment() == 8960, "nothing else is known"
        law.saw_segment(1460, 0, 60 * second)
        assert segment() == 1460, "nobody was there for a minute"


def test_a_law_goes_on_when_the_integral_of_the_queue_wraps(library):
    """After a few hours at 10 Gbit/s."""
    values = LawParameters(LawKind.FAIRQ, 25_000_000, 125_000, 31_250)
    for law in (Law(values), CompiledLaw(library, values)):
        before = 2**64 - 1_000
        assert law.tick(LawInput(10**9, before, 20_000, 1))
        assert law.tick(LawInput(10**9 + 10**6, (before + 20_000 * 10**6) % 2**64, 20_000, 1))
        assert law.seen()["queue"] == 20_000 if isinstance(law, CompiledLaw) else law.queue == 20_000
        # The reading of another processor that is behind still changes nothing.
        assert not law.tick(LawInput(10**9 + 2 * 10**6, before, 20_000, 1))


def test_a_state_that_was_cleared_begins_anew(library):
    """Also if a processor that still ran the law before has written a time to it."""
    values = LawParameters(LawKind.FAIRQ, 25_000_000, 125_000, 31_250)
    twin, compiled = Law(values), CompiledLaw(library, values)
    twin.last_ns = compiled.state.last_ns = 10**9
    for law in (twin, compiled):
        assert law.tick(LawInput(10**9 + 1, 5, 20_000, 1))
    assert (twin.pool, twin.segment) == (31_250 << 8, 1460) and state_of(twin) == compiled.seen()


def test_the_twin_has_the_fields_and_numbers_of_the_header():
    assert set(state_of(Law(LawParameters(1, 1, 1, 1)))) == set(STATE)
    names = {name for name, _ in layout.STRUCTS["fq_law"]._fields_} - {"pad"}
    assert {field.name for field in fields(LawParameters)} == names
    for prefix, numbers in {
        "FQ_LAW_": LawKind,
        "FQ_GAIN_": Gain,
        "FQ_MODE_": switch_laws.Mode,
        "FQ_LIMITED_BY_": switch_laws.LimitedBy,
        "FQ_OPENING_": switch_laws.Opening,
    }.items():
        found = {n.removeprefix(prefix): v for n, v in layout.CONSTANTS.items() if n.startswith(prefix)}
        if prefix == "FQ_LAW_":
            numbers = [*numbers, *LawFlags]
        assert found == {each.name: each.value for each in numbers}
    for flag in switch_laws.OpeningFlags:
        assert layout.CONSTANTS[f"FQ_{flag.name}"] == flag
    assert layout.CONSTANTS["FQ_NO_WINDOW"] == switch_laws.NO_WINDOW


def test_in_an_incast_new_flows_have_more_than_those_that_have_sent_their_first_window(library):
    """IQM. 20 new flows of ten segments are expected behind a buffer of 125,000 bytes."""
    values = LawParameters(
        LawKind.IQM, 6_250_000, 125_000, 125_000, calm=25_000, first_window=10, limiting_segments=2,
        interval_ns=10**6, linger_ns=5 * 10**6,
    )  # fmt: skip
    for law in (Law(values), CompiledLaw(library, values)):
        law.saw_segment(1460, 1460, 10**9)
        assert law.tick(LawInput(10**9, 0, 100_000, 8))

        def windows(law=law):
            return [law.window(28, 20, sent) for sent in (0, 14_599, 14_600, 10**9)]

        assert windows() == [switch_laws.NO_WINDOW] * 4
        for _ in range(20):
            law.flow_began(100_000, 10**9)
        assert windows() == [2920, 2920, 1460, 1460]
        integral = 0
        for number, (queue, old) in enumerate(((90_000, 1460), (10_000, 2920), (90_000, 1460)), 1):
            integral += queue * 10**6
            assert law.tick(LawInput(10**9 + number * 10**6, integral, queue, 28))
            assert windows() == [2920, 2920, old, old], "short for less than `linger`: the incast goes on"


def test_between_incasts_iqm_s_flows_share_a_pool_that_follows_the_queue(library):
    values = LawParameters(
        LawKind.IQM, 6_250_000, 125_000, 37_500, calm=25_000, first_window=10, limiting_segments=2,
        interval_ns=10**6, linger_ns=5 * 10**6,
    )  # fmt: skip
    for law in (Law(values), CompiledLaw(library, values)):
        law.saw_segment(1460, 1460, 10**9)
        assert law.tick(LawInput(10**9, 0, 37_500, 8))
        before = law.window(8, 8, 10**6)
        assert before == 37_500 // 8
        law.limited(100_000, 100_000, 0, 10**9)
        assert law.tick(LawInput(10**9 + 10**6, 10_000 * 10**6, 10_000, 8))
        more = law.window(8, 8, 10**6)
        assert more > before, "the queue is short, and flows use their windows"
        assert law.tick(LawInput(10**9 + 2 * 10**6, 110_000 * 10**6, 100_000, 8))
        assert law.window(8, 8, 10**6) < more
        # 32 flows begin: each with one segment, because the queue is not empty.
        for _ in range(32):
            law.flow_began(37_500, 10**9 + 2 * 10**6)
        assert [law.window(40, 32, sent) for sent in (0, 1460, 14_600)] == [1460, 2920, 1460]
