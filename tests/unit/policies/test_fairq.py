"""FairQ's law: worked by hand, in general, and in a closed loop.

The law (Algorithm 1 of the paper, as a pool ``n * w``): every T
``incr += (1 - Q / (alpha * B)) * max_size / M``; when M increments are counted the pool moves by
``incr``, or by ``2 * max_size`` for each flow in slow start, which ends once ``Q >= alpha * B``.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.model import LARGEST_WINDOW, NO_WINDOWS, FlowKey, QueueSample, WindowPlan
from fairq_ryu.policies.fairq import FairQParameters, FairQPort
from tests.support.fakes import info

FLOW = FlowKey("10.0.0.1", "10.0.0.2", 1000, 80)
LIMIT, RATE = 100_000, 25_000_000
TARGET = 25_000  # alpha 0.25 of the limit
CEILING = 125_000  # the limit and 1 ms of the rate


def sample(queue: int, active: int = 2, limit: int = LIMIT, mean: float | None = None) -> QueueSample:
    return QueueSample(queue, queue, limit, RATE, 0, active, queue if mean is None else mean)


def started(slow_start: bool = True, flows: int = 2, mss: int = 1000, step: int = 1, **more) -> FairQPort:
    """A port with flows and a new pool of 25000 bytes."""
    law = FairQPort(FairQParameters(slow_start=slow_start, **more))
    for n in range(flows):
        assert law.flow_started(info(FLOW, mss, step), n + 1, 0.0) is None  # the limit is not known yet
    law.queue_sampled(sample(0, flows), flows, 0.0)
    return law


def feed(law: FairQPort, queue: int, times: int, active: int = 2) -> list[WindowPlan | None]:
    return [law.queue_sampled(sample(queue, active), active, 0.0) for _ in range(times)]


# Worked by hand


def test_a_port_starts_with_a_pool_of_the_targets_size():
    law = FairQPort(FairQParameters())
    law.flow_started(info(FLOW), 1, 0.0)
    assert law.queue_sampled(sample(0, 1), 1, 0.0) == WindowPlan(pool=TARGET)
    assert law.slow_start


def test_the_first_flow_on_a_known_port_gets_its_pool_at_once():
    law = FairQPort(FairQParameters())
    assert law.queue_sampled(sample(0, 0), 0, 0.0) == NO_WINDOWS
    assert law.flow_started(info(FLOW), 1, 0.0) == WindowPlan(pool=TARGET)


def test_slow_start_adds_two_segments_a_flow_each_m_readings():
    law = started()
    # M = 8: seven readings move nothing; the eighth adds 2 * 1000 * 2 flows.
    assert feed(law, 0, 8) == [None] * 7 + [WindowPlan(pool=29_000)]
    assert feed(law, 0, 8)[-1] == WindowPlan(pool=33_000)


def test_slow_start_ends_at_the_target_and_removes_the_excess():
    law = started()
    feed(law, 0, 40)  # five updates: 25000 + 5 * 4000 = 45000
    # 35000 in the queue are 10000 above the target: back to 35000, at once.
    assert feed(law, 35_000, 1) == [WindowPlan(pool=35_000)]
    assert not law.slow_start
    # From now on the law itself: at the target it does not move.
    assert feed(law, TARGET, 8)[-1] == WindowPlan(pool=35_000)


def test_slow_start_ends_exactly_at_the_target():
    law = started()
    feed(law, TARGET - 1, 1)
    assert law.slow_start
    assert feed(law, TARGET, 1) == [WindowPlan(pool=TARGET)]
    assert not law.slow_start


def test_the_end_of_slow_start_removes_at_most_what_it_added():
    # The queue was filled by older flows before any window was installed: that drains by itself.
    law = started()
    assert feed(law, LIMIT, 1) == [WindowPlan(pool=TARGET)]


@pytest.mark.parametrize(
    ("queue", "pool"),
    [
        (0, 26_000),  # 8 * (1 - 0) * 1000 / 8 = +1000
        (12_500, 25_500),  # 8 * (1 - 1/2) * 1000 / 8 = +500
        (25_000, 25_000),  # at the target: 0
        (50_000, 24_000),  # 8 * (1 - 2) * 1000 / 8 = -1000
        (100_000, 22_000),  # full: 8 * (1 - 4) * 1000 / 8 = -3000
    ],
)
def test_without_slow_start_the_increments_move_the_pool(queue, pool):
    law = started(slow_start=False)
    assert feed(law, queue, 8) == [None] * 7 + [WindowPlan(pool=pool)]


def test_increments_of_different_readings_add_up():
    law = started(slow_start=False)
    # 4 * (1 - 0) / 8 * 1000 = 500, then 4 * (1 - 3) / 8 * 1000 = -1000: together -500.
    feed(law, 0, 4)
    assert feed(law, 75_000, 4)[-1] == WindowPlan(pool=24_500)


def test_the_increment_uses_the_typical_segment():
    law = started(slow_start=False)
    law.flow_started(info(FLOW, mss=3000), 3, 0.0)
    assert feed(law, 0, 8, active=3)[-1] == WindowPlan(pool=25_000 + 1_000)
    law.flow_started(info(FLOW, mss=3000), 4, 0.0)
    law.flow_started(info(FLOW, mss=3000), 5, 0.0)
    assert feed(law, 0, 8, active=3)[-1] == WindowPlan(pool=26_000 + 3_000)


def test_one_unusual_flow_does_not_change_the_increment():
    """A scale of 14 has steps of 16384 bytes: forty of them would be five buffers."""
    law = started(flows=40, mss=1460, step=512)
    odd = info(FLOW, 65_000, 1 << 14)
    law.flow_started(odd, 41, 0.0)
    assert law.queue_sampled(sample(0, 41), 41, 0.0).pool <= LIMIT
    law.flow_ended(odd, 40, 0.0)
    assert law.segments.counts == {(1460, 512): 40}


def test_the_mean_counts_if_it_is_above_the_backlog():
    law = started(slow_start=False)
    for _ in range(8):
        plan = law.queue_sampled(sample(0, mean=50_000.0), 2, 0.0)
    assert plan == WindowPlan(pool=24_000)


def test_flows_start_and_end_and_the_pool_stays():
    law = started(slow_start=False)
    # w * n / (n + 1) for a new flow is the same n * w: no new plan.
    assert law.flow_started(info(FLOW, mss=1000), 3, 0.0) is None
    assert law.flow_ended(info(FLOW, mss=1000), 2, 0.0) is None
    assert feed(law, TARGET, 8)[-1] == WindowPlan(pool=TARGET)


def test_the_floor_is_two_segments_a_flow_in_whole_window_steps():
    # Scale 7: steps of 128. Two segments of 1460 are 2920, so 23 steps: 2944 a flow, 29440 for ten.
    law = started(flows=10, mss=1460, step=128)
    assert law.installed_pool == 29_440
    # A hundred flows: 294400 do not fit the buffer, one segment each must.
    plan = law.queue_sampled(sample(0, 100), 100, 0.0)
    assert plan == WindowPlan(pool=146_000)
    # Fifty flows: 147200 do not fit, 76800 would do; the buffer's 100000 it is.
    assert law.queue_sampled(sample(0, 50), 50, 0.0) == WindowPlan(pool=100_000)


def test_a_volley_raises_the_pool_at_once_without_changing_the_state():
    law = started(slow_start=False, mss=1460)
    plans = [law.flow_started(info(FLOW), n, 0.0) for n in range(3, 41)]
    pools = [plan.pool for plan in plans if plan is not None]
    assert pools == sorted(pools)
    assert pools[-1] >= LIMIT / 1.15  # 40 * 2920 do not fit the buffer; no more than 15 % behind what does
    assert law.queue_sampled(sample(TARGET), 2, 0.0) == WindowPlan(pool=TARGET)


def test_the_pool_never_exceeds_buffer_and_base_rtt():
    law = started(slow_start=False)
    plans = feed(law, 0, 8 * 200)  # + 1000 each: 225000 without the cap
    assert plans[-1] == WindowPlan(pool=CEILING)


def test_without_active_flows_the_pool_restarts_and_is_removed_after_a_while():
    law = started(linger=2.0)
    feed(law, 0, 24)
    assert law.queue_sampled(sample(0, 0), 0, 10.0) == WindowPlan(pool=TARGET)
    assert law.slow_start
    assert law.queue_sampled(sample(0, 0), 0, 11.9) == WindowPlan(pool=TARGET)
    assert law.queue_sampled(sample(0, 0), 0, 12.0) == NO_WINDOWS
    assert law.queue_sampled(sample(0, 0), 0, 13.0) == NO_WINDOWS


def test_a_flow_within_the_linger_keeps_the_windows():
    law = started(linger=2.0)
    law.queue_sampled(sample(0, 0), 0, 10.0)
    law.flow_started(info(FLOW), 1, 11.9)
    assert law.queue_sampled(sample(0, 1), 1, 12.5) != NO_WINDOWS
    assert law.queue_sampled(sample(0, 0), 0, 13.0) == WindowPlan(pool=TARGET)


def test_a_port_without_a_limit_is_not_governed():
    law = FairQPort(FairQParameters())
    assert law.flow_started(info(FLOW), 1, 0.0) is None
    assert law.queue_sampled(sample(50_000, limit=0), 1, 0.0) == NO_WINDOWS
    law = started()
    assert law.queue_sampled(sample(50_000, limit=0), 2, 0.0) == NO_WINDOWS


# In general

PARAMETERS = st.builds(
    FairQParameters,
    increments=st.integers(1, 20),
    alpha=st.floats(0.01, 1),
    slow_start=st.booleans(),
    base_rtt=st.floats(0, 0.1),
    floor_segments=st.integers(1, 10),
)
ARRIVAL = st.tuples(st.sampled_from([536, 1448, 1460, 8960]), st.integers(0, 14))
READING = st.tuples(st.integers(0, 200_000), st.integers(0, 200))
HISTORY = st.lists(st.one_of(ARRIVAL.map(lambda a: ("flow", *a)), READING.map(lambda r: ("queue", *r))))
SHAPES = st.tuples(st.integers(1500, 1_000_000), st.integers(0, 1_250_000_000))


class Port:
    """A law with its installed pool after each answer, and the calls it got."""

    def __init__(self, parameters: FairQParameters, shape: tuple[int, int]) -> None:
        self.law = FairQPort(parameters)
        self.limit, self.rate = shape
        self.plan = NO_WINDOWS
        self.shapes: Counter[tuple[int, int]] = Counter()
        self.flows = 0

    def read(self, queue: int, active: int) -> None:
        self.flows = active
        queue = min(queue, self.limit)
        self._note(
            self.law.queue_sampled(
                QueueSample(queue, queue, self.limit, self.rate, 0, active, queue), active, 0.0
            )
        )

    def arrive(self, mss: int, scale: int) -> None:
        self.shapes[mss, 1 << scale] += 1
        self.flows += 1
        self._note(self.law.flow_started(info(FLOW, mss, 1 << scale), self.flows, 0.0))

    def replay(self, history) -> None:
        for kind, first, second in history:
            (self.arrive if kind == "flow" else self.read)(first, second)

    def _note(self, plan: WindowPlan | None) -> None:
        self.plan = self.plan if plan is None else plan

    @property
    def segment(self) -> int:
        """The most frequent segment; the larger of two with the same count."""
        if not self.shapes:
            return 1460
        return sorted((count, *shape) for shape, count in self.shapes.items())[-1][1]

    @property
    def one_segment_each(self) -> int:
        return max(1, self.flows) * self.segment


@given(PARAMETERS, SHAPES, HISTORY)
def test_the_installed_pool_keeps_its_bounds(parameters, shape, history):
    port = Port(parameters, shape)
    for event in history:
        port.replay([event])
        if port.plan.pool is None:
            continue
        # A floor that has risen by less than 15 % may be sent with the next update.
        assert port.plan.pool * 1.15 + 1 >= port.one_segment_each
        # A pool sent before flows ended stays for a while, but no later one exceeds the bounds.
        if event[0] == "queue" and port.plan.pool == round(port.law.installed_pool):
            ceiling = port.limit + port.rate * parameters.base_rtt
            assert port.law.pool <= max(min(ceiling, max(1, port.flows) * LARGEST_WINDOW), port.segment)


@given(PARAMETERS, SHAPES, HISTORY)
def test_each_new_plan_is_between_floor_and_ceiling(parameters, shape, history):
    port = Port(parameters, shape)
    for event in history:
        port.plan = NO_WINDOWS
        port.replay([event])
        if port.plan.pool is not None:
            assert port.plan.pool + 1 >= port.one_segment_each
            ceiling = port.limit + port.rate * parameters.base_rtt
            assert port.plan.pool <= max(ceiling, port.one_segment_each) + 1


@given(PARAMETERS, SHAPES, HISTORY)
def test_the_state_is_never_less_than_a_segment(parameters, shape, history):
    """A smaller state would only delay the recovery. Each new plan checks it; flows that start later may have
    larger segments, and wait for the next plan.
    """
    port = Port(parameters, shape)
    for event in history:
        port.plan = NO_WINDOWS
        port.replay([event])
        if port.plan.pool is not None:
            assert port.law.pool is not None
            assert port.law.pool >= port.segment


@given(PARAMETERS, SHAPES, HISTORY, READING, st.integers(0, 200_000))
def test_a_longer_queue_never_gives_a_larger_pool(parameters, shape, history, reading, extra):
    shorter, longer = Port(parameters, shape), Port(parameters, shape)
    shorter.replay(history)
    longer.replay(history)
    queue, active = reading
    shorter.read(queue, active)
    longer.read(queue + extra, active)
    assert (shorter.law.pool is None) == (longer.law.pool is None)
    if shorter.law.pool is not None:
        assert longer.law.pool <= shorter.law.pool + 1e-6
        # As above: up to the 15 % by which a floor may rise without a new plan.
        assert longer.law.installed_pool <= shorter.law.installed_pool * 1.15 + 1


@given(PARAMETERS, SHAPES, HISTORY)
def test_the_law_is_deterministic(parameters, shape, history):
    first, second = Port(parameters, shape), Port(parameters, shape)
    first.replay(history)
    second.replay(history)
    assert (first.plan, first.law.pool) == (second.plan, second.law.pool)


# In a closed loop


@dataclasses.dataclass
class Fluid:
    """Senders with the pool in flight; bytes beyond the capacity of the path are queued.

    A window takes ``delay`` readings to affect the queue; a window that shrinks takes effect as the queue
    drains, one that grows at most doubles the bytes in flight in a reading.
    """

    law: FairQPort
    flows: int
    rtt: float
    limit: int = 125_000
    rate: int = 25_000_000
    delay: int = 1
    under_way: float = 0.0
    overflow: float = 0.0
    now: float = 0.0

    def __post_init__(self) -> None:
        for n in range(self.flows):
            self.law.flow_started(info(FLOW), n + 1, 0.0)
        self.queues: list[float] = []
        self.sent: list[float] = []
        self._windows = deque([self.under_way or float(self.flows * 14_600)] * (self.delay + 1))

    def run(self, seconds: float) -> None:
        interval = self.law.parameters.interval
        for _ in range(round(seconds / interval)):
            self.now += interval
            path = self.rate * self.rtt
            allowed = self._windows.popleft()
            drained = self.under_way - self.rate * interval
            self.under_way = max(min(allowed, 2 * max(self.under_way, 14_600)), drained)
            queue = max(0.0, self.under_way - path)
            if queue > self.limit:
                self.overflow += queue - self.limit
                queue = self.limit
                self.under_way = path + queue
            self.queues.append(queue)
            self.sent.append(min(1.0, self.under_way / path) if path else 1.0)
            reading = QueueSample(round(queue), round(queue), self.limit, self.rate, 0, self.flows, queue)
            self.law.queue_sampled(reading, self.flows, self.now)
            self._windows.append(self.law.installed_pool)

    def mean_queue(self, seconds: float) -> float:
        count = round(seconds / self.law.parameters.interval)
        return sum(self.queues[-count:]) / count


@pytest.mark.parametrize("slow_start", [True, False])
@pytest.mark.parametrize("rtt", [0.0002, 0.001])
@pytest.mark.parametrize("flows", [1, 2, 8, 12])
def test_the_queue_settles_at_the_target(flows, rtt, slow_start):
    loop = Fluid(FairQPort(FairQParameters(slow_start=slow_start)), flows, rtt)
    loop.run(4)
    assert loop.mean_queue(1) == pytest.approx(31_250, rel=0.2)
    assert max(loop.queues[-500:]) < 2 * 31_250
    assert loop.overflow == 0
    assert min(loop.sent[-500:]) > 0.99


@pytest.mark.parametrize("delay", [0, 2, 4])
def test_the_queue_settles_with_late_readings_too(delay):
    loop = Fluid(FairQPort(FairQParameters()), 8, 0.001, delay=delay)
    loop.run(4)
    assert loop.mean_queue(1) == pytest.approx(31_250, rel=0.2)
    assert loop.overflow == 0


@pytest.mark.parametrize(("before", "after"), [(0.001, 0.0002), (0.0002, 0.001)])
def test_the_pool_follows_a_path_that_changes(before, after):
    loop = Fluid(FairQPort(FairQParameters()), 4, before)
    loop.run(2)
    loop.rtt = after
    loop.run(3)
    assert loop.mean_queue(1) == pytest.approx(31_250, rel=0.2)
    assert loop.overflow == 0


@pytest.mark.parametrize("flows", [1, 2, 8])
def test_flows_that_already_fill_the_queue_are_governed_without_a_gap(flows):
    """The controller starts while elephants keep the buffer full."""
    loop = Fluid(FairQPort(FairQParameters()), flows, 0.0005, under_way=137_500)
    loop.run(3)
    assert loop.mean_queue(1) == pytest.approx(31_250, rel=0.2)
    assert min(loop.sent) > 0.99
    assert loop.overflow == 0


@pytest.mark.parametrize("flows", [32, 64, 90])
def test_more_flows_than_the_target_holds_still_fit_the_buffer(flows):
    loop = Fluid(FairQPort(FairQParameters()), flows, 0.001, under_way=14_600)
    loop.run(2)
    assert max(loop.queues[-500:]) <= 125_000
    assert loop.overflow == 0
    assert min(loop.sent[-500:]) > 0.99


def test_a_shorter_volley_does_not_change_the_pool():
    loop = Fluid(FairQPort(FairQParameters()), 4, 0.0005)
    loop.run(3)
    settled = loop.law.pool
    loop.flows = 36
    loop.run(0.05)
    loop.flows = 4
    loop.run(0.002)
    assert loop.law.pool == pytest.approx(settled, rel=0.1)
