"""A governed port as transcripts: events in, calls of its law and rule changes out.

Each line of a transcript is ``TIME EVENT | CALLS OF THE LAW | RULE CHANGES``. ``law 2`` is a new law, the
second one of the port; ``port 1460`` is a rule for all flows, ``a 0`` one for flow a, ``-`` its removal, and
``!`` wakes the sender. ``plan ...`` sets the answer of the law from then on.
"""

from __future__ import annotations

import pytest

from fairq_ryu.model import NO_WINDOWS, Announcement, Congestion, FlowKey, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies.base import PortLaw
from fairq_ryu.policies.governed_port import GovernedPort
from tests.support.fakes import info

LEASE = 2.0
FLOWS = {name: FlowKey("10.0.0.1", "10.0.0.2", 80, place) for place, name in enumerate("abc")}
NAMES = {key: name for name, key in FLOWS.items()}
SAMPLE = QueueSample(0, 0, 100_000, 0, 0, 0, 0.0)


class Law(PortLaw):
    """Records its calls, and answers with the transcript's plan."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def _call(self, *words: object) -> WindowPlan | None:
        self.run.calls.append(" ".join(map(str, words)))
        if self.run.plan == "fail":
            raise RuntimeError("a bad day")
        return self.run.answer()

    def flow_started(self, flow, flows, now):
        return self._call("started", NAMES[flow.key], flows)

    def flow_ended(self, flow, flows, now):
        return self._call("ended", NAMES[flow.key], flows)

    def queue_sampled(self, sample, flows, now):
        return self._call("sampled")

    def congestion(self, state, backlog, now):
        return self._call(state.name)

    def announced(self, flow, announcement, now):
        return self._call("announced" if announcement else "withdrawn", NAMES[flow])

    def settled(self, now):
        return self._call("settled")


class Run:
    """One port, and the events of a transcript. It is the port's policy as well."""

    name, interval = "transcript", 0.01

    def __init__(self) -> None:
        self.port = GovernedPort(PortKey(1, 1), self, LEASE / 4, LEASE)
        self.plan = "none"
        self.calls: list[str] = []
        self.laws = 0

    def port_law(self, port: PortKey) -> Law:
        self.laws += 1
        self.calls.append(f"law {self.laws}")
        return Law(self)

    def answer(self) -> WindowPlan:
        words = self.plan.split()
        pairs = dict(zip(words[::2], map(int, words[1::2]), strict=False)) if self.plan != "none" else {}
        return WindowPlan(window=pairs.pop("port", None), flows={FLOWS[name]: pairs[name] for name in pairs})

    def event(self, now: float, words: list[str]):
        match words:
            case ["start", name]:
                return self.port.flow_started(info(FLOWS[name]), now)
            case ["end", name]:
                return self.port.flow_ended(FLOWS[name], now)
            case ["announce", name]:
                return self.port.announced(FLOWS[name], Announcement(1000, 5.0), now)
            case ["withdraw", name]:
                return self.port.announced(FLOWS[name], None, now)
            case ["sample"]:
                return self.port.sampled(SAMPLE, now)
            case ["congestion", state]:
                return self.port.congestion(Congestion[state], 9000, now)
            case ["policy"]:
                return self.port.govern(self, now)
            case ["agent", "gone"]:
                self.port.switch_gone()
                return []
        raise AssertionError(words)

    def line(self, text: str) -> str:
        """The result of a line of the transcript."""
        at, *words = text.partition("|")[0].split()
        if words[0] == "plan":
            self.plan = " ".join(words[1:])
            return text
        self.calls = []
        changes = [
            f"{'port' if each.target.flow is None else NAMES[each.target.flow]} "
            f"{'-' if each.rule is None else each.rule.bytes}{'!' if each.wake else ''}"
            for each in self.event(float(at), words)
        ]
        line = f"{at} {' '.join(words)} | {', '.join(self.calls)} | {', '.join(changes)}"
        return line.replace("|  |", "| |")


TRANSCRIPTS = {
    "a flow begins and ends": """
        0.00 plan port 1460
        0.00 start a | law 1, settled, started a 1 | port 1460
        0.01 start a | |
        0.02 start b | started b 2 |
        0.03 end c | |
        0.10 sample | sampled |
        0.60 sample | sampled | port 1460
        0.61 plan none
        0.61 end a | ended a 1 | port -
        """,
    "pauses end with a wake": """
        0.00 start a | law 1, settled, started a 1 |
        0.00 start b | started b 2 |
        0.01 plan a 0 b 0
        0.01 sample | sampled | a 0, b 0
        0.02 plan port 1460 b 0
        0.02 sample | sampled | a -!, port 1460
        0.03 agent gone | |
        0.04 plan port 1460
        0.04 sample | sampled | port 1460, b -!
        """,
    "a law that fails rests, and a fresh one gets the state of the port": """
        0.00 plan port 1460
        0.00 sample | law 1, sampled, settled | port 1460
        0.10 start a | started a 1 |
        0.11 announce a | announced a |
        0.12 announce a | |
        0.13 congestion CNG | CNG |
        0.20 plan fail
        0.20 sample | sampled | port -
        0.21 plan port 2920
        0.30 start b | |
        5.00 sample | |
        5.10 end b | |
        10.20 start c | law 2, sampled, started a 1, announced a, CNG, settled, started c 2 | port 2920
        10.30 withdraw a | withdrawn a |
        """,
    "a change of policy ends a rest": """
        0.00 plan port 1460
        0.00 start a | law 1, settled, started a 1 | port 1460
        0.10 plan fail
        0.10 sample | sampled | port -
        0.20 plan port 1460
        0.20 policy | law 2, sampled, started a 1, settled | port 1460
        0.30 plan a 2920
        0.30 policy | law 3, sampled, started a 1, settled | port -, a 2920
        """,
    "a fresh law that fails at the replay rests as well": """
        0.00 start a | law 1, settled, started a 1 |
        0.10 plan fail
        0.10 policy | law 2, started a 1 |
        0.20 plan port 1460
        0.20 sample | |
        10.10 sample | law 3, sampled, started a 1, settled | port 1460
        """,
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcript(name):
    run = Run()
    wanted = [line.strip() for line in TRANSCRIPTS[name].strip().splitlines()]
    assert [run.line(line).strip() for line in wanted] == wanted


def test_a_port_without_events_has_no_law():
    run = Run()
    assert (run.port.law, run.port.plan, run.port.busy(), run.laws) == (None, NO_WINDOWS, False, 0)
