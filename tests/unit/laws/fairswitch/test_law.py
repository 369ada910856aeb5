"""FairSwitch's law in the switch: ``max(2048, target / n)`` and a trim, which follows the queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.laws.fairswitch import FairSwitchLaw
from tests.support.host_laws import ClosedLoop, FedPort, HostLaw, fq_law, in_force
from tests.support.law_traces import TRACES, drive, parameters

LIMIT, RATE, TARGET = 100_000, 25_000_000, 25_000
STEP = 40  # RATE * 0.2 ms / 125
DEAD = 1460 // 4


def fed(*queues: int, flows: int = 2, segment: int = 1460) -> FedPort:
    """A port with these queues, the first of which begins the law."""
    port = FedPort(HostLaw(fq_law(FairSwitchLaw, limit=LIMIT, rate=RATE, target=TARGET)), segment)
    port.feed(0, *queues, flows=flows)
    return port


def test_the_trim_grows_by_a_step_in_each_interval_while_the_queue_is_short():
    assert [fed(*[5000] * ticks).law.window(2) for ticks in (0, 1, 3)] == [
        TARGET // 2 + trim * STEP for trim in (0, 1, 3)
    ]


def test_the_trim_shrinks_while_the_queue_is_long_but_not_below_zero():
    port = fed(*[5000] * 5)
    for trim in (4, 3, 2, 1, 0, 0):
        port.feed(60_000)
        assert port.law.own("fairswitch_state").trim == trim * STEP


@pytest.mark.parametrize(
    ("queue", "steps"),
    [
        *((queue, 0) for queue in (TARGET - DEAD, TARGET, TARGET + DEAD, 80, 0)),
        (TARGET - DEAD - 1, 1),
        (81, 1),
        (TARGET + DEAD + 1, -1),
    ],
)
def test_the_trim_rests_near_the_target_and_with_an_empty_queue(queue, steps):
    """The dead band is a quarter of a segment."""
    port = fed(5000, 5000)
    port.feed(queue)
    assert port.law.own("fairswitch_state").trim == (2 + steps) * STEP


def test_the_dead_band_is_that_of_the_largest_segment():
    port = fed(TARGET - 2000, segment=8000)
    assert port.law.own("fairswitch_state").trim == 0
    port.feed(TARGET - 2001)
    assert port.law.own("fairswitch_state").trim == STEP


def test_a_window_is_at_least_2048_bytes_before_the_trim():
    port = fed(5000, flows=40)
    assert port.law.window(40) == 2048 + STEP and port.law.state.granted == 40 * (2048 + STEP)


def test_no_window_is_more_than_the_port_holds_and_no_trim_more_than_the_buffer():
    port = fed(*[5000] * 4000, flows=1)
    assert port.law.own("fairswitch_state").trim == LIMIT
    assert port.law.window(1) == LIMIT + RATE // 1000


def test_without_flows_the_trim_is_gone():
    port = fed(5000, 5000)
    port.feed(0, flows=0)
    assert port.law.window(2) == TARGET // 2


@given(st.integers(1, 100_000), st.integers(1, 100_000), st.integers(0, 50))
def test_more_flows_have_less_each_and_all_have_the_same(one, other, ticks):
    law = fed(*[5000] * ticks).law
    fewer, more = sorted((one, other))
    assert law.window(fewer) >= law.window(more) >= 2048
    assert law.window(one, 0, 0) == law.window(one, 5, 10**9)


@pytest.mark.parametrize("flows", [2, 8, 12])
def test_the_queue_settles_at_the_target(flows):
    loop = ClosedLoop(HostLaw(in_force(FairSwitchLaw())), flows, 0.001)
    loop.run(2)
    assert loop.mean_queue(0.5) == pytest.approx(31_250, rel=0.1) and loop.lost == 0


@given(parameters([FairSwitchLaw]), st.lists(st.integers(0, 1 << 30), max_size=20))
def test_a_longer_queue_never_leaves_a_larger_trim_and_no_trim_is_above_the_buffer(values, queues):
    """The same past, then a tick with a longer queue than the 80 bytes that count as none."""
    for queue in (81, 81 + values["target"] // 2, 81 + values["target"]):
        trims = []
        for more in (0, 1, 1000, values["limit"]):
            port = FedPort(HostLaw(fq_law(**values)))
            port.feed(*queues, min(queue + more, 1 << 30), flows=3)
            trims.append(port.law.own("fairswitch_state").trim)
        assert trims == sorted(trims, reverse=True) and trims[0] <= values["limit"]


@given(parameters([FairSwitchLaw]), TRACES)
def test_a_window_is_within_what_the_port_can_hold(values, trace):
    for law, step, window in drive(values, trace):
        if step == "window":
            p = law.parameters
            held = p.limit + p.rate // 1000 * p.base_rtt_ns // 10**6
            cap = min(max(held, p.rate // 1000 * law.state.rtt_ns // 10**6), 1 << 30)
            assert min(law.state.segment, cap) <= window <= cap


# The text: Algorithm 1. By hand: target 25,000, segments of 1,000, M = 4.

SEGMENT, M, MEAN = 1000, 4, 32


class TextPort(FedPort):
    """The law of the text, with these flows counted, and a queue that has been ``queue`` for 32 intervals."""

    def __init__(self, flows: int = 2, queue: int = 0, slow_start: bool = False, **changes: int) -> None:
        given_values = {"limit": LIMIT, "rate": RATE, "target": TARGET, **changes}
        super().__init__(HostLaw(fq_law(FairSwitchLaw(increments=M), **given_values)), SEGMENT)
        self.own = self.law.own("fairswitch_state")
        super().feed(queue, flows=0)
        for _ in range(MEAN):  # without flows, Algorithm 1 rests
            super().feed(queue, flows=0)
        for _ in range(flows):
            self.law.flow_began(0, self.now)
        self.own.avoidance = not slow_start

    def feed(self, *queues: int, flows: int = 0, young: int = 0, used: bool = True) -> int:
        """See `FedPort`; ``flows``: that are seen to use their windows."""
        for queue in queues:
            self.law.saw_segment(SEGMENT, SEGMENT, self.now)
            super().feed(queue, flows=flows, young=young, used=used)
        return self.law.pool

    @property
    def window(self) -> float:
        """Of a flow, with its fraction of a byte."""
        return float(self.own.window / 256)


def test_the_mean_is_that_of_the_last_32_samples():
    port = TextPort()
    queues = [1000 * (place % 7) for place in range(100)]
    for place, queue in enumerate(queues, 1):
        port.feed(queue)
        last = queues[max(0, place - MEAN) : place]
        assert port.own.sum == sum(last)
    assert sorted(port.own.samples) == sorted(queues[-MEAN:])


def test_a_late_tick_counts_for_as_many_samples_as_intervals_have_passed():
    port, late = TextPort(queue=3200), TextPort(queue=3200)
    port.feed(*[6400] * 3)
    late.now += 3 * 200_000
    late.area += 6400 * 3 * 200_000
    assert late.law.tick(late.now, late.area, 6400, 0)
    assert late.own.sum == port.own.sum == 29 * 3200 + 3 * 6400
    assert late.own.below == 3 * (TARGET - 3500)  # (29 * 3,200 + 3 * 6,400) / 32 is 3,500
    late.now += 10**9
    late.area += 100 * 10**9
    assert late.law.tick(late.now, late.area, 100, 0)
    assert list(late.own.samples) == [100] * MEAN


def test_an_update_adds_a_part_of_a_segment_in_proportion_to_the_distance_from_the_target():
    """An empty queue: e is 1, so that M intervals add S, of which each of two flows gets half."""
    port = TextPort(flows=2)
    assert port.window == TARGET / 2
    port.feed(0, 0, 0)
    assert port.window == TARGET / 2
    port.feed(0)
    assert port.window == TARGET / 2 + SEGMENT / 2
    port.feed(*[0] * M)
    assert port.window == TARGET / 2 + 2 * SEGMENT / 2
    # Half of the target, e is 1/2; twice the target, e is -1.
    assert [after_an_update(queue) - TARGET / 2 for queue in (TARGET // 2, TARGET, 2 * TARGET)] == [
        SEGMENT / 4,
        0,
        -SEGMENT / 2,
    ]


def after_an_update(queue: int) -> float:
    port = TextPort(flows=2, queue=queue)
    port.feed(*[queue] * M)
    return port.window


def test_in_slow_start_an_update_adds_two_segments_until_the_mean_reaches_the_target():
    port = TextPort(flows=1, slow_start=True)
    port.feed(*[0] * M)
    assert (port.window, port.own.avoidance) == (TARGET + 2 * SEGMENT, 0)
    port = TextPort(flows=1, queue=TARGET, slow_start=True)
    port.feed(*[TARGET] * M)
    assert (port.window, port.own.avoidance) == (TARGET + 2 * SEGMENT, 1)


def test_the_target_is_divided_anew_when_the_number_of_flows_changes():
    port = TextPort(flows=4)
    port.feed(*[0] * 10 * M)
    assert port.window == TARGET / 4 + 10 * SEGMENT / 4
    port.law.flow_began(0, port.now)
    assert port.window == TARGET / 5
    port.law.flow_ended()
    assert port.window == TARGET / 4
    assert port.law.window(1) == port.law.window(400) == TARGET // 4  # whatever is seen


def test_without_flows_the_next_one_begins_in_slow_start_with_the_whole_target():
    port = TextPort(flows=1)
    port.law.flow_ended()
    port.law.flow_ended()  # of one that was not counted
    assert (port.own.flows, port.own.avoidance, port.law.window(1)) == (0, 0, TARGET)
    port.feed(*[0] * 10 * M)
    assert port.law.window(1) == TARGET and port.law.state.granted == 0


@pytest.mark.parametrize(("silent", "flows"), [(0.9999, 3), (1.0, 0)])
def test_flows_are_counted_out_after_a_second_without_any(silent, flows):
    port = TextPort(flows=3)
    port.law.saw_segment(SEGMENT, SEGMENT, port.now)
    port.now += round(silent * 1e9)
    assert port.law.tick(port.now, port.area, 0, 0)
    assert port.own.flows == flows


@pytest.mark.parametrize(("silent", "flows"), [(0.9999, 9), (1.0, 1)])
def test_a_handshake_after_a_second_without_any_counts_alone(silent, flows):
    """The eight before it have vanished without a FIN, and no packet has run the law since."""
    port = TextPort(flows=8)
    port.law.saw_segment(SEGMENT, SEGMENT, port.now)
    port.now += round(silent * 1e9)
    port.law.flow_began(0, port.now)
    port.law.saw_segment(SEGMENT, SEGMENT, port.now)
    assert port.own.flows == flows and port.law.window(1) == max(TARGET // flows, SEGMENT)
    port.now += round(1e7)
    assert port.law.tick(port.now, port.area, 0, 1)
    assert port.own.flows == flows


def test_flows_that_are_seen_count_whether_or_not_their_handshakes_were():
    port = TextPort(flows=0)
    port.feed(0, flows=5)
    assert (port.own.flows, port.law.window(1)) == (5, TARGET // 5)
    port.feed(0, flows=4)  # one is quiet
    assert port.own.flows == 5


def test_no_window_of_the_text_leaves_what_the_port_can_hold():
    port = TextPort(flows=1, slow_start=True)
    port.feed(*[0] * 4000)
    assert port.law.window(1) == LIMIT + RATE // 1000
    port = TextPort(flows=50, queue=LIMIT)
    port.feed(*[LIMIT] * 4000)
    assert (port.own.window, port.law.window(50)) == (0, SEGMENT)


def test_the_code_counts_and_averages_nothing():
    port = FedPort(HostLaw(fq_law(FairSwitchLaw)))
    port.law.flow_began(0, port.now)
    port.feed(*[5000] * 50)
    own = port.law.own("fairswitch_state")
    assert (own.flows, own.sum, own.window) == (0, 0, 0)


@pytest.mark.parametrize("flows", [2, 8, 12])
@pytest.mark.parametrize("rtt", [0.001, 0.004])
def test_the_queue_of_the_text_settles_at_the_target(flows, rtt):
    law = FairSwitchLaw(increments=8, base_rtt_us=round(rtt * 1e6))
    loop = ClosedLoop(HostLaw(in_force(law)), flows, rtt)
    loop.run(4)
    assert loop.mean_queue(0.5) == pytest.approx(31_250, rel=0.05)
    assert max(loop.queues[-2500:]) < 2 * 31_250


@pytest.mark.parametrize("rtt", [0.01, 0.05, 0.1])
def test_algorithm_1_does_not_swing_with_long_round_trips(rtt):
    """With M = 8 and 50 ms it swings between 5 and 58 kB, for ever."""
    law = FairSwitchLaw(increments=8, base_rtt_us=round(rtt * 1e6))
    loop = ClosedLoop(HostLaw(fq_law(law, limit=125_000, rate=25_000_000)), 8, rtt)
    loop.run(8)
    last = loop.queues[len(loop.queues) // 2 :]
    assert 0.8 * 31_250 < min(last) <= max(last) < 1.2 * 31_250


@pytest.mark.parametrize("segment", [1460, 8960])
def test_algorithm_1_does_not_swing_with_large_segments(segment):
    """With the M of 1,460 bytes it swings for ever with 8,960."""
    law = FairSwitchLaw(increments=8, base_rtt_us=20_000)
    loop = ClosedLoop(HostLaw(fq_law(law, limit=250_000, rate=25_000_000, target=62_500)), 4, 0.02, segment)
    loop.run(8)
    last = loop.queues[len(loop.queues) // 2 :]
    assert 0.8 * 62_500 < min(last) <= max(last) < 1.2 * 62_500


@given(
    st.integers(1, 200),
    st.integers(1, 64),
    st.integers(1000, 1 << 30),
    st.lists(st.integers(0, 1 << 30), min_size=1, max_size=150),
)
def test_the_window_is_that_of_algorithm_1_in_floating_point(flows, m, target, queues):
    """The listing, with the mean of 32 samples in whole bytes; each update loses less than 1/256 byte."""
    made = fq_law(FairSwitchLaw(increments=m), limit=1 << 30, rate=10**9, target=target)
    port, samples = FedPort(HostLaw(made)), [0] * MEAN
    port.feed(0, flows=0)
    for _ in range(flows):
        port.law.flow_began(0, port.now)
    own = port.law.own("fairswitch_state")
    window, slow_start, increment, updates = target / flows, True, 0.0, 0
    for number, queue in enumerate(queues, 1):
        port.law.saw_segment(1460, 1460, port.now)
        port.feed(queue, flows=0)
        samples = [*samples[1:], queue]
        mean = sum(samples) // MEAN
        increment += (1 - mean / target) * 1460 / m
        if number % m == 0:
            updates += 1
            if slow_start:
                window += 2 * 1460
                slow_start = mean < target
            else:
                window = max(0.0, window + increment / flows)
            window = min(window, (1 << 30))
            increment = 0.0
        assert own.window / 256 == pytest.approx(window, abs=(updates + 1) / 256 + 1e-6 * window)


@given(parameters([FairSwitchLaw]), TRACES)
def test_the_count_never_leaves_its_bounds_and_all_flows_have_the_same_window(values, trace):
    counted = 0
    for law, step, result in drive(values, trace):
        own = law.own("fairswitch_state")
        assert own.sum == sum(own.samples) and own.flows <= 1_000_000
        if step == "flow_began":
            text = bool(law.parameters.own[0] >> 32)
            silent = law.driven_ns - law.state.seen_ns >= 10**9
            assert own.flows == text * (1 if silent else counted + 1)
        if step == "window":
            assert result == law.window(1) or not own.flows
        counted = own.flows
