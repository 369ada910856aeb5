import pytest

from fairq_ryu.experiments.workloads.common import elephants


def test_goodput_is_between_two_marks_by_number_of_the_elephant():
    before = {"clock_ns": 0, "bytes": {"0": 100, "10": 0, "9": 0}}
    after = {"clock_ns": 2 * 10**9, "bytes": {"10": 500_000, "9": 250_000, "0": 1_000_100}}
    assert elephants.goodputs(before, after) == pytest.approx([4.0, 1.0, 2.0])
    info = {i: {"total_retrans": 2, "total_rto": 0} for i in ("0", "9", "10")}
    later = {i: {"total_retrans": 5, "total_rto": 1} for i in ("0", "9", "10")}
    summary = elephants.elephants_summary(before, after, info, later, 7.5)
    assert summary["goodput_sum_mbit"] == pytest.approx(7.0)
    assert summary["jain"] == pytest.approx(49 / (3 * 21))
    assert (summary["retransmissions"], summary["rto_timeouts"]) == (9, 3)


class Generators:
    """The measurement, and the workers that it starts; what has arrived is said by ``bytes``."""

    def __init__(self, arrived):
        self.arrived, self.port, self.started = arrived, {}, {}

    def start_workers(self, hosts, role):
        return [(Worker(self, host), self.port.setdefault(host, 5001 + len(self.port))) for host in hosts]


class Worker:
    def __init__(self, made, host):
        self.made, self.host = made, host

    def send(self, what, flows=(), seed=0):
        if what == "start":
            self.made.started[self.host] = flows

    def receive(self, what, timeout):
        return {"clock_ns": 0, "bytes": self.made.arrived}


def test_an_elephant_of_which_nothing_has_arrived_counts():
    """Under a law that starves it: it has a goodput of 0, and Jain's index shows it."""

    group = elephants.ElephantGroup(Generators({"1": 5}), ["h3"], ["h1", "h2"], 3, seed=1)
    assert group.mark() == {"clock_ns": 0, "bytes": {"0": 0, "1": 5, "2": 0}}


def test_elephants_go_to_the_receivers_in_turn():
    made = Generators({})
    group = elephants.ElephantGroup(made, ["r1", "r2"], ["h1", "h2", "h3"], 5, seed=1)
    group.start("10.0.0.8", "10.0.0.9")
    sent = {place: [flow["index"] for flow in flows] for place, flows in made.started.items()}
    assert sent == {"h1": [0, 3], "h2": [1, 4], "h3": [2]}
    to = {flow["index"]: (flow["address"], flow["port"]) for each in made.started.values() for flow in each}
    ports = {"10.0.0.8": made.port["r1"], "10.0.0.9": made.port["r2"]}
    assert to == {n: (address, ports[address]) for n, address in enumerate(["10.0.0.8", "10.0.0.9"] * 2)} | {
        4: ("10.0.0.8", ports["10.0.0.8"])
    }
