import contextlib
import dataclasses
import random
import time

import pytest

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.workloads.incast import measurement


class Clock:
    """The machine and the hosts of a run: volleys without a network, with the stolen time of each from a
    list.
    """

    def __init__(self, host):
        self.host = list(host)
        self.volleys = []
        self.jiffies = self.stolen = self.timeouts = 0

    def volley(self, mice, _timeout):
        self.volleys.append([mouse["id"] for mouse in mice])
        self.timeouts += 7
        self.stolen += self.host.pop(0) if self.host else 0
        self.jiffies += 7
        return [{"id": mouse["id"]} for mouse in mice]

    def cpu_times(self):
        return self.jiffies, 0, self.stolen


@pytest.fixture
def incast(monkeypatch):
    def make(host, wanted):
        clock, progress = Clock(host), []
        chosen = scenario.load(
            "incast", {"rounds": str(wanted), "senders": "2", "round_interval_s": "0", "seed": "1"}
        )
        made_incast = object.__new__(measurement.IncastMeasurement)
        made_incast._scenario = chosen
        made_incast._random = random.Random(1)
        made_incast._progress = lambda step, part: progress.append((step, part))
        made_incast._expected_s = 1.0
        made_incast._targets = [{}, {}]
        monkeypatch.setattr(made_incast, "_volley", clock.volley)
        monkeypatch.setattr(made_incast, "read_counters", lambda: {"rto_timeouts": clock.timeouts})
        monkeypatch.setattr(machine, "cpu_times", clock.cpu_times)
        return made_incast, clock, progress

    return make


def test_a_run_continues_until_there_are_enough_undisturbed_rounds(incast):
    running, clock, progress = incast([0, 1, 0, 2], 3)
    found = running._rounds()
    assert [round(each.stolen_percent) for each in found] == [0, 14, 0, 29, 0]
    assert [each.sender_timeouts for each in found] == [7] * 5
    # Every mouse has its own number, which gives its round.
    assert [sorted(ids) for ids in clock.volleys] == [
        [4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3] for n in range(5)
    ]
    assert [step for step, _part in progress] == [
        "round 1 of 3", "round 2 of 3", "round 3 of 3",
        "round 4, the host disturbed 1", "round 5, the host disturbed 2",
    ]  # fmt: skip
    assert all(0 <= part <= 1 for _step, part in progress)


def test_a_run_ends_at_twice_the_rounds(incast):
    running, clock, _said = incast([3] * 100, 4)
    assert len(running._rounds()) == len(clock.volleys) == 8


def test_receivers_fetch_the_mice_of_each_sender_in_turn():
    """Two senders with three mice each, and two receivers; each mouse is a chain of four."""

    class Client:
        def send(self, _what, mice, timeout_s):
            self.own = mice

        def receive(self, _what, timeout):
            return {"mice": [{"id": mouse["id"]} for mouse in self.own]}

    incast = object.__new__(measurement.IncastMeasurement)
    incast._scenario = scenario.load("incast-tor", {"senders": "2", "receivers": "2"})
    incast._random = random.Random(1)
    incast._targets = [{"port": 1}, {"port": 2}]
    incast._clients = [Client(), Client()]
    incast.volley = contextlib.nullcontext
    mice = [incast._mouse(sender, copy, 100, 4) for sender in (0, 1) for copy in (0, 1, 2)]
    assert len(incast._volley(mice, 1.0)) == 6
    found = [[(mouse["port"], mouse["id"]) for mouse in client.own] for client in incast._clients]
    assert found == [[(1, 0), (1, 16), (2, 4), (2, 20)], [(1, 8), (2, 12)]]
    ids = [number for mouse in mice for number in range(mouse["id"], mouse["id"] + 4)]
    assert sorted(ids) == list(range(24))


def test_the_controller_is_stopped_before_each_volley_and_until_its_end(incast, monkeypatch):
    running, clock, _said = incast([], 2)
    running._scenario = dataclasses.replace(running._scenario, controller_stopped_s=1.5)
    order = []

    class Testbed:
        @contextlib.contextmanager
        def controller_stopped(self):
            order.append("stopped")
            yield
            order.append("goes on")

    running._testbed = Testbed()
    monkeypatch.setattr(time, "sleep", lambda seconds: order.append(seconds) if seconds == 1.5 else None)
    volley = running._volley
    monkeypatch.setattr(running, "_volley", lambda *what: order.append("volley") or volley(*what))
    running._rounds()
    assert order == ["stopped", 1.5, "volley", "goes on"] * 2
    assert len(clock.volleys) == 2
