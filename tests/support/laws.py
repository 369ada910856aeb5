"""A law that records its calls, and changes of rules, for the tests of governed ports and of the engine."""

from __future__ import annotations

from typing import Any

from fairq_ryu.config.loader import Config
from fairq_ryu.model import (
    Announcement,
    FlowKey,
    PortKey,
    QueueSample,
    RuleChange,
    RuleTarget,
    Thresholds,
    WindowKind,
    WindowRule,
)
from fairq_ryu.policies.base import PortLaw

LEASE = 2.0
SAMPLE = QueueSample(0, 0, 100_000, 0, 0, 0, 0.0)
ANNOUNCED = Announcement(1000, 5.0)


def parameters(policy: Any, **values: object) -> Any:
    """The typed parameters of a policy's class, by default but for ``values``."""
    return policy(Config().section(policy.name) | values).parameters


class Recorder(PortLaw):
    """Records its calls, each as its name and its arguments; the test sets its answers and requests. An
    exception as an answer is raised.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.answer: object = None
        self.wants: Thresholds | Exception | None = None

    def _record(self, *what):
        self.calls.append(what)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def flow_started(self, flow, flows, now):
        return self._record("started", flow.key, flows)

    def flow_ended(self, flow, flows, now):
        return self._record("ended", flow.key, flows)

    def queue_sampled(self, sample, flows, now):
        return self._record("sampled", sample, now)

    def congestion(self, state, backlog, now):
        return self._record("congestion", state, backlog)

    def announced(self, flow, announcement, now):
        return self._record("announced", flow, announcement)

    def progressed(self, flows, now):
        return self._record("progressed", flows)

    def wants_progress(self):
        if isinstance(self.wants, Exception):
            raise self.wants
        return self.wants is not None

    def thresholds(self):
        if isinstance(self.wants, Exception):
            raise self.wants
        return self.wants


class SettledRecorder(Recorder):
    """Records as well when the state of its port has been replayed."""

    def settled(self, now):
        return self._record("settled", now)


def window(size: int) -> WindowRule:
    """A rule with a window for each flow, bytes."""
    return WindowRule(WindowKind.WINDOW, size)


def rule(
    port: PortKey, rule: WindowRule | int | None, flow: FlowKey | None = None, wake: bool = False
) -> RuleChange:
    """A rule that is installed, or removed (None); a number stands for a window of so many bytes."""
    return RuleChange(RuleTarget(port, flow), window(rule) if isinstance(rule, int) else rule, wake)
