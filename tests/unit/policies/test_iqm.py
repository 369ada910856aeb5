"""IQM: one segment for every flow while incast threatens, and no longer."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import sections
from fairq_ryu.law_spec import LawKind, LawSpec
from fairq_ryu.model import NO_WINDOWS, FlowInfo, FlowKey, FlowProgress, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies import base
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.policies.iqm import Iqm, IqmParameters, IqmPort
from fairq_ryu.policies.parts import half_open
from fairq_ryu.policies.parts.half_open import FORGET_AFTER, HalfOpenLimiter
from tests.support.fakes import info

LIMIT = 125_000
PORT, AGGREGATOR, ATTACKER = PortKey(1, 1), PortKey(1, 1), PortKey(2, 7)
KEY = FlowKey("10.0.0.2", "10.0.0.1", 80, 1000)
ONE_SEGMENT = WindowPlan(window=1460)


def key(number: int) -> FlowKey:
    return KEY._replace(src=f"10.0.{number // 60_000}.2", dport=number % 60_000)


def flow(number: int, opener: PortKey | None = AGGREGATOR) -> FlowInfo:
    return dataclasses.replace(info(key(number), step=512), opener=opener)


def sample(backlog: int, limit: int = LIMIT) -> QueueSample:
    return QueueSample(backlog, backlog, limit, 25_000_000, 0, 1, float(backlog))


def law(**parameters) -> IqmPort:
    """The paper's law: the mode ends with the first short queue."""
    return IqmPort(IqmParameters(**{"linger": 0.0} | parameters))


def test_the_parameters_are_the_settings():
    policy = Iqm(Config().section("iqm"))
    assert dataclasses.asdict(policy.parameters) == Config().section("iqm")
    assert set(sections()["iqm"]) == {field.name for field in dataclasses.fields(IqmParameters)}
    assert IqmParameters() == policy.parameters
    assert policy.interval == 0.01
    assert base.find("iqm") is Iqm
    assert base.same(policy, Iqm(Config().section("iqm")))


def test_the_switch_s_law_has_the_settings():
    values = {"interval": 0.002, "alpha": 0.1, "initial_window": 4, "syn_allowance": 77, "linger": 0.02}
    chosen = Iqm(Config().section("iqm") | values | {"segments": 3, "standing": 0.6})
    assert chosen.switch_law(PORT) == LawSpec(
        LawKind.IQM,
        interval_us=2000,
        linger_us=20_000,
        target_ppm=600_000,
        calm_ppm=100_000,
        first_window=4,
        limiting_segments=3,
        syn_allowance=77,
    )


def test_the_volley_that_would_overflow_meets_one_segment_at_once():
    """8 * 10 * 1460 = 116,800 fits into 125,000 bytes, and nine do not."""
    port = law()
    assert port.queue_sampled(sample(0), 0, 0.0) == NO_WINDOWS
    assert [port.flow_started(flow(n), n, 0.001) for n in range(1, 9)] == [None] * 8
    assert port.flow_started(flow(9), 9, 0.001) == ONE_SEGMENT
    # The queue is still short when the interval ends, but the volley is in flight.
    assert port.queue_sampled(sample(0), 9, 0.01) == ONE_SEGMENT
    assert port.queue_sampled(sample(25_000), 9, 0.02) == ONE_SEGMENT
    assert port.queue_sampled(sample(24_999), 9, 0.03) == NO_WINDOWS


def test_the_present_queue_counts():
    port = law()
    port.queue_sampled(sample(LIMIT - 14_600), 2, 0.0)
    assert port.flow_started(flow(1), 3, 0.001) is None
    assert port.flow_started(flow(2), 4, 0.001) == ONE_SEGMENT


def test_flows_that_end_are_taken_off_and_a_new_interval_starts_from_none():
    port = law()
    port.queue_sampled(sample(0), 0, 0.0)
    port.flow_ended(flow(0), 0, 0.0)
    assert port.beta == 0
    for n in range(8):
        port.flow_started(flow(n), n, 0.001)
    port.flow_ended(flow(0), 7, 0.002)
    assert port.flow_started(flow(8), 8, 0.003) is None
    port.queue_sampled(sample(0), 8, 0.01)
    assert [port.flow_started(flow(n), n, 0.011) for n in range(10, 18)] == [None] * 8


def test_the_initial_window_and_the_segments_are_those_of_the_hosts():
    port = law(initial_window=1)
    port.queue_sampled(sample(0), 0, 0.0)
    assert all(port.flow_started(flow(n), n, 0.001) is None for n in range(85))
    assert port.flow_started(flow(86), 86, 0.001) == ONE_SEGMENT
    jumbo = law()
    jumbo.queue_sampled(sample(0), 0, 0.0)
    assert jumbo.flow_started(info(KEY, 8960), 1, 0.001) is None
    assert jumbo.flow_started(info(key(2), 8960), 2, 0.001) == WindowPlan(window=8960)


def test_the_mode_lingers_until_the_queue_has_been_short_for_a_while():
    port = law(linger=0.05)
    port.queue_sampled(sample(LIMIT), 1, 0.0)
    assert port.flow_started(flow(1), 1, 0.001) == ONE_SEGMENT
    for moment, queue in ((0.01, 0), (0.03, 0), (0.05, LIMIT // 2), (0.06, 0), (0.1, 0)):
        assert port.queue_sampled(sample(queue), 1, moment) == ONE_SEGMENT
    assert port.queue_sampled(sample(0), 1, 0.111) == NO_WINDOWS


def test_an_empty_queue_ends_the_mode_whatever_alpha_is():
    port = law(alpha=0.0)
    port.queue_sampled(sample(LIMIT), 1, 0.0)
    assert port.flow_started(flow(1), 1, 0.001) == ONE_SEGMENT
    assert port.queue_sampled(sample(1), 1, 0.01) == ONE_SEGMENT
    assert port.queue_sampled(sample(0), 1, 0.02) == NO_WINDOWS


def test_a_port_without_a_known_buffer_is_not_governed():
    port = law()
    assert all(port.flow_started(flow(n), n, 0.0) is None for n in range(100))
    assert port.queue_sampled(sample(50_000, limit=0), 100, 0.01) == NO_WINDOWS
    # When the buffer is no longer known, the windows are removed.
    port.queue_sampled(sample(LIMIT), 100, 0.02)
    port.flow_started(flow(1000), 101, 0.02)
    assert port.incast
    assert port.queue_sampled(sample(LIMIT, limit=0), 101, 0.03) == NO_WINDOWS


def established(flows) -> dict[FlowKey, FlowProgress]:
    return {each: FlowProgress(0, 0, 0.001, True) for each in flows}


def test_an_aggregator_s_rounds_trigger_round_after_round():
    """200 connections a round, every SYN from one port; they are answered, used and closed."""
    policy = Iqm(Config().section("iqm") | {"linger": 0.0, "where": "controller"})
    engine = PolicyEngine(policy, 2.0)
    now, number = 0.0, 0
    engine.sampled(PORT, sample(0), now)
    for _ in range(50):
        volley = range(number, number + 200)
        number += 200
        changes = [change for n in volley for change in engine.flow_started(PORT, flow(n), now)]
        assert [change.rule.bytes for change in changes] == [1460]
        for _ in range(3):
            now += 0.01
            engine.sampled(PORT, sample(60_000), now)
            engine.progressed(PORT, established(key(n) for n in volley), now)
        assert engine.view()[PORT][1] == ONE_SEGMENT
        assert not engine.wants_progress(PORT)
        for n in volley:
            engine.flow_ended(PORT, key(n), now)
        now += 0.01
        assert [change.rule for change in engine.sampled(PORT, sample(0), now)] == [None]
    assert engine.failures == 0


def test_the_answered_flows_are_requested_periodically():
    port = law()
    port.queue_sampled(sample(0), 0, 0.0)
    assert not port.wants_progress()
    port.flow_started(flow(1), 1, 0.001)
    assert port.wants_progress()
    port.progressed({}, 0.01)
    port.queue_sampled(sample(0), 1, 0.2)
    assert not port.wants_progress()
    port.queue_sampled(sample(0), 1, 0.27)
    assert port.wants_progress()
    port.progressed(established([key(1)]), 0.28)
    port.queue_sampled(sample(0), 1, 1.0)
    assert not port.wants_progress()


def flood(opener: bool, seconds: float) -> tuple[float, int]:
    """5,000 SYN/s without completed handshakes, beside elephants with a queue of 20,000 bytes; with windows
    of one segment it is 3,000. Returns the part of the time in incast mode, and the largest number of
    half-open flows. Addresses are forged.
    """
    port = law()
    port.queue_sampled(sample(20_000), 2, 0.0)
    limited = steps = max_open = number = 0
    gone = 0
    for steps in range(1, round(seconds / 0.01) + 1):
        now = steps * 0.01
        for _ in range(50):
            number += 1
            port.flow_started(flow(number, ATTACKER if opener else None), number, now)
        # The flow table removes flows that are not answered for 10 s.
        while gone < number - 50_000:
            gone += 1
            port.flow_ended(flow(gone, ATTACKER if opener else None), number, now)
        max_open = max(max_open, len(port.half_open))
        port.queue_sampled(sample(3_000 if port.incast else 20_000), number, now)
        port.progressed(established([KEY]), now)
        limited += port.incast
    return limited / steps, max_open


def test_a_flood_of_syns_cannot_keep_the_mode():
    share, max_open = flood(opener=True, seconds=60)
    assert 0 < share < 0.01
    assert max_open == 256


def test_without_the_allowance_a_flood_keeps_the_mode():
    port = law(syn_allowance=1_000_000)
    port.queue_sampled(sample(20_000), 2, 0.0)
    limited = 0
    for step in range(1, 500):
        for n in range(50):
            port.flow_started(flow(step * 50 + n, ATTACKER), 1, step * 0.01)
        port.queue_sampled(sample(3_000), 1, step * 0.01)
        limited += port.incast
    assert limited == 499


def test_a_flood_from_one_port_leaves_the_others_their_allowance():
    port = law()
    port.queue_sampled(sample(0), 0, 0.0)
    for n in range(5000):
        port.flow_started(flow(n, ATTACKER), n, 0.0)
    port.queue_sampled(sample(0), 1, 0.01)
    assert port.queue_sampled(sample(0), 1, 0.02) == NO_WINDOWS
    plans = [port.flow_started(flow(60_000 + n), n, 0.021) for n in range(9)]
    assert plans == [None] * 8 + [ONE_SEGMENT]


def test_memory_is_bounded_whatever_the_addresses_are():
    """Without an ingress port, the source address is the opener, and an attacker can forge any number."""
    limiter = HalfOpenLimiter(4)
    counted = [
        limiter.started(info(KEY._replace(src=f"10.1.{n // 250}.{n % 250}")), 0.0) for n in range(10_000)
    ]
    assert sum(counted) == len(limiter) == 64 * 4
    assert not limiter.started(flow(1), FORGET_AFTER - 0.1)
    assert limiter.started(flow(1), FORGET_AFTER)
    assert len(limiter) == 1
    assert len(limiter._by_opener) == 1


def test_answered_and_ended_flows_free_their_allowance():
    limiter = HalfOpenLimiter(2)
    assert [limiter.started(flow(n), 0.0) for n in range(3)] == [True, True, False]
    assert not limiter.started(flow(0), 0.0)  # again
    limiter.remove(key(2))  # did not count
    limiter.progressed({key(0): FlowProgress(0, 0, 0.0, False)}, 0.1)
    assert not limiter.started(flow(3), 0.1)
    limiter.progressed(established([key(0)]), 0.1)
    assert limiter.started(flow(3), 0.1)
    limiter.remove(key(1))
    assert limiter.started(flow(4), 0.1)
    assert half_open.FORGET_AFTER == 10.0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.integers(1, 12)),
        st.tuples(st.just("end"), st.integers(1, 12)),
        st.tuples(st.just("sample"), st.integers(0, LIMIT)),
        st.tuples(st.just("answered"), st.integers(0, 50)),
    ),
    max_size=40,
)


@given(STEPS)
def test_there_are_windows_in_incast_and_never_outside_it(steps):
    """Incast mode starts only when more is expected than the buffer can store, and ends below alpha * B."""
    port = law(syn_allowance=20)
    plan, now, queue, limit, number, there = NO_WINDOWS, 0.0, 0, 0, 0, []
    for what, value in steps:
        now += 0.004
        before = port.incast
        if what == "start":
            answers = []
            for _ in range(value):
                number += 1
                there.append(number)
                answers.append(port.flow_started(flow(number), len(there), now))
        elif what == "end":
            ending, there = there[:value], there[value:]
            answers = [port.flow_ended(flow(n), 0, now) for n in ending]
        elif what == "sample":
            queue, limit = value, LIMIT
            answers = [port.queue_sampled(sample(value), len(there), now)]
        else:
            answers = [port.progressed(established(key(n) for n in there[:value]), now)]
        for answer in answers:
            plan = plan if answer is None else answer
        assert plan == (ONE_SEGMENT if port.incast else NO_WINDOWS)
        if port.incast and not before:
            assert limit
            assert what in ("start", "sample")
        if before and not port.incast:
            assert what == "sample"
            assert queue < 0.2 * limit
        assert len(port.half_open) <= 20


# A new law


def fresh(flows: int, allowance: int = 256) -> tuple[PolicyEngine, IqmPort]:
    """An engine whose port has long had flows when IQM is chosen at 5 s."""
    engine = PolicyEngine(base.find("droptail")({}), 2.0)
    engine.sampled(PORT, sample(60_000), 0.0)
    for n in range(flows):
        engine.flow_started(PORT, flow(n), 0.0)
    values = {"syn_allowance": allowance, "where": "controller"}
    changes = engine.use(Iqm(Config().section("iqm") | values), 5.0)
    assert changes == []
    law = engine._ports[PORT].law
    assert isinstance(law, IqmPort)
    return engine, law


def test_flows_that_were_there_before_the_law_are_no_volley():
    engine, law = fresh(100)
    assert not law.incast and law.beta == 0
    assert engine.sampled(PORT, sample(60_000), 5.01) == []
    # A volley is as many flows as without the old ones: 60,000 and four times 14,600 fit.
    for n in range(100, 104):
        assert engine.flow_started(PORT, flow(n), 5.011) == []
    assert [change.rule.bytes for change in engine.flow_started(PORT, flow(104), 5.011)] == [1460]


def test_flows_that_were_there_before_the_law_do_not_use_up_the_allowance():
    engine, law = fresh(100, allowance=5)
    assert len(law.half_open) == 0 and not law.wants_progress()
    for n in range(100, 105):
        engine.flow_started(PORT, flow(n), 5.001)
    assert law.beta == 5 and law.incast
    engine.flow_started(PORT, flow(105), 5.001)
    assert law.beta == 5
