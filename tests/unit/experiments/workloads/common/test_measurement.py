import random
from collections import Counter
from types import SimpleNamespace

import pytest

from fairq_ryu.experiments.kernel_qdiscs import QDISCS, QdiscCounts
from fairq_ryu.experiments.measure import queues
from fairq_ryu.experiments.measure.queues import JudgedPackets, PortLosses
from fairq_ryu.experiments.traffic.workers import RunError
from fairq_ryu.experiments.workloads.common import measurement
from fairq_ryu.experiments.workloads.common.measurement import Integrity, Measurement, unreached


def test_one_altered_flow_fails_the_run():
    integrity = Integrity()
    integrity.flow(True)
    assert integrity.check() == {"flows": 1, "mismatched": 0}
    integrity.flow(False)
    with pytest.raises(RunError, match="1 of 2 flows delivered other bytes"):
        integrity.check()


class Rounds(Measurement):
    """Makes rounds without a network, by a clock of its own."""

    def __init__(self):
        self._random = random.Random(1)
        self._expected_s = 20.0
        self.steps = []
        self._progress = lambda step, share: self.steps.append((step, share))


@pytest.fixture
def clock(monkeypatch):
    """Seconds that have passed; a sleep takes as long as it is asked to."""
    passed = [0.0]
    monkeypatch.setattr(measurement.time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(measurement.time, "sleep", lambda seconds: passed.__setitem__(0, passed[0] + seconds))
    return passed


@pytest.mark.parametrize("whole", [False, True])
def test_rounds_start_at_their_intervals_and_replace_disturbed_ones(clock, whole):
    running, starts = Rounds(), []
    stolen = [0.0, 50.0, 0.0, 0.0]

    def make(number):
        starts.append(clock[0])
        clock[0] += 0.5
        return SimpleNamespace(number=number, stolen_percent=stolen[number])

    made = running.make_rounds(make, 3, 2.0, 4.0, prefix="8 flows, ", whole_intervals=whole)
    assert [each.number for each in made] == [0, 1, 2, 3]
    assert [step for step, _share in running.steps] == [
        "8 flows, round 1 of 3", "8 flows, round 2 of 3", "8 flows, round 3 of 3",
        "8 flows, round 4, the host disturbed 1",
    ]  # fmt: skip
    # A tenth of the interval is random.
    assert all(2.0 * number <= start <= 2.0 * number + 0.2 for number, start in enumerate(starts))
    assert [share for _step, share in running.steps] == pytest.approx(
        [(4.0 + start) / expected for start, expected in zip(starts, (20.0, 20.0, 22.0, 22.0), strict=True)]
    )
    assert clock[0] == (8.0 if whole else starts[-1] + 0.5)


def test_a_round_that_takes_longer_delays_those_after_it(clock):
    starts = []

    def make(number):
        starts.append(clock[0])
        clock[0] += 0.5 if number else 5.0
        return SimpleNamespace(stolen_percent=0.0)

    Rounds().make_rounds(make, 3, 2.0, 0.0)
    second = starts[0] + 5.0
    assert second <= starts[1] <= second + 0.2
    assert second + 2.0 <= starts[2] <= second + 2.2


@pytest.mark.parametrize(
    ("answers", "calls", "left"),
    [([[]], 1, []), ([["h1", "h2"], ["h2"], []], 3, []), ([["h1"]] * 9, 5, ["h1"])],
)
def test_hosts_are_probed_until_all_are_reached(clock, answers, calls, left):
    called = []

    def probe():
        called.append(clock[0])
        return answers[len(called) - 1]

    assert unreached(probe) == left
    assert len(called) == calls


def test_the_thread_is_measured_in_volleys_and_not_in_the_pauses_between(clock, monkeypatch):
    ticks = {7: 100, 8: 5}
    monkeypatch.setattr(measurement.machine, "switch_ticks", ticks.copy)
    monkeypatch.setattr(measurement.machine.os, "sysconf", lambda _name: 100)
    running = Rounds()
    running._volleys_s, running._volley_ticks = 0.0, Counter()
    before = running.volleys_so_far()
    assert before.share_since(before) is None
    for used in (30, 50):
        with running.volley():
            clock[0] += 1.0
            ticks[7] += used
            ticks[9] = 90  # a thread that started within the volley
        del ticks[9]
        clock[0] += 10.0
        ticks[7] += 3
    assert running.volleys_so_far().share_since(before) == 40.0


class Bottleneck(Measurement):
    """Reads a port where tc has counted 100 packets that did not enter the queue, and one that it refused."""

    def __init__(self, program, law, reported=()):
        self._reported = list(reported)
        self._port, self._losses_before = "s1-eth3", PortLosses(0, 30)
        self._testbed = SimpleNamespace(dropped=lambda port: program, qdisc=None)
        self._law = law

    def read_queue(self):
        judged = None if self._law is None else JudgedPackets(1000, self._law, 5)
        return SimpleNamespace(judged=judged, agent_drops=bool(self._reported and self._reported.pop(0)))


@pytest.mark.parametrize(
    ("program", "law", "for_want_of_room"),
    [(100, None, 100), (60, 40, 60), (None, 40, 60), (None, None, 100)],
)
def test_drops_of_a_queue_law_are_not_losses_for_want_of_room(monkeypatch, program, law, for_want_of_room):
    monkeypatch.setattr(queues, "losses", lambda port, qdisc: PortLosses(1, 100))
    port = Bottleneck(program, law)
    assert port.read_losses() == PortLosses(1, for_want_of_room)
    assert port._losses() == {"refused": 1, "taken": 70, "program": program, "law": law}


def test_a_qdisc_of_the_kernel_counts_what_its_law_has_done(monkeypatch):
    """It drops behind the filters, so nothing is taken."""
    counts = QdiscCounts(judged=500, dropped=40, marked=7, full=3)
    reading = SimpleNamespace(_replace=lambda **changed: SimpleNamespace(agent_drops=False, **changed))
    monkeypatch.setattr(queues, "losses", lambda port, qdisc: PortLosses(3, 100))
    monkeypatch.setattr(queues, "qdisc_counts", lambda port, qdisc: counts)
    monkeypatch.setattr(queues, "queue_of", lambda status, port: reading)
    port = Bottleneck(None, None)
    port._switch = "s1"
    port._testbed = SimpleNamespace(
        dropped=lambda port: None,
        qdisc=QDISCS["red"],
        hidden=None,
        has_agents=True,
        status=lambda switch: {},
    )
    port.read_queue = lambda: Measurement.read_queue(port)
    assert port.read_queue().law == "kernel red"
    assert port.read_queue().judged == JudgedPackets(500, 40, 7)
    assert port.read_losses() == PortLosses(3, 0)
    assert port._losses() == {"refused": 3, "taken": 70, "program": None, "law": 40}


def test_what_the_agent_drops_to_report_it_is_a_loss(monkeypatch):
    """The program that drops sees nothing of it: the agent's is before it."""
    monkeypatch.setattr(queues, "losses", lambda port, qdisc: PortLosses(1, 100))
    port = Bottleneck(0, None, [False, True])
    assert [port.read_losses().taken for _ in range(2)] == [0, 100]
