"""Makes a port law of any object, so that the engine calls typed methods only.

A law of another package need not derive from :class:`PortLaw`, and may have only some of its methods. Each
method is a capability of its own, checked by type when the law is made; for one that the object lacks,
:class:`PortLaw`'s method is used, which does nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, runtime_checkable

from fairq_ryu.model import (
    Announcement,
    Congestion,
    FlowInfo,
    FlowKey,
    FlowProgress,
    PortKey,
    QueueSample,
    Thresholds,
    WindowPlan,
)
from fairq_ryu.policies.base import Display, Policy, PortLaw, former_display


@runtime_checkable
class HasFlowStarted(Protocol):
    """Reacts to flows that start."""

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """As :meth:`PortLaw.flow_started`."""


@runtime_checkable
class HasFlowEnded(Protocol):
    """Reacts to flows that end."""

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """As :meth:`PortLaw.flow_ended`."""


@runtime_checkable
class HasQueueSampled(Protocol):
    """Reacts to samples of the queue."""

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """As :meth:`PortLaw.queue_sampled`."""


@runtime_checkable
class HasCongestion(Protocol):
    """Reacts to congestion messages."""

    def congestion(self, state: Congestion, backlog: int, now: float) -> WindowPlan | None:
        """As :meth:`PortLaw.congestion`."""


@runtime_checkable
class HasAnnounced(Protocol):
    """Uses sizes and deadlines of flows."""

    def announced(self, flow: FlowKey, announcement: Announcement | None, now: float) -> WindowPlan | None:
        """As :meth:`PortLaw.announced`."""


@runtime_checkable
class HasProgressed(Protocol):
    """Uses the progress of flows."""

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> WindowPlan | None:
        """As :meth:`PortLaw.progressed`."""


@runtime_checkable
class HasSettled(Protocol):
    """Distinguishes replayed state from new events."""

    def settled(self, now: float) -> WindowPlan | None:
        """As :meth:`PortLaw.settled`."""


@runtime_checkable
class HasWantsProgress(Protocol):
    """Asks for the progress of flows."""

    def wants_progress(self) -> bool:
        """As :meth:`PortLaw.wants_progress`."""


@runtime_checkable
class HasThresholds(Protocol):
    """Asks for congestion messages."""

    def thresholds(self) -> Thresholds | None:
        """As :meth:`PortLaw.thresholds`."""


@runtime_checkable
class HasDisplay(Protocol):
    """Shows something to people."""

    def display(self) -> Display:
        """As :meth:`PortLaw.display`."""


_NOTHING: Final = PortLaw()


class AdaptedLaw(PortLaw):
    """A law of a class of its own: each call goes to the object if it has the method."""

    def __init__(self, law: object) -> None:
        self._law = law
        self._flow_started: HasFlowStarted = law if isinstance(law, HasFlowStarted) else _NOTHING
        self._flow_ended: HasFlowEnded = law if isinstance(law, HasFlowEnded) else _NOTHING
        self._queue_sampled: HasQueueSampled = law if isinstance(law, HasQueueSampled) else _NOTHING
        self._congestion: HasCongestion = law if isinstance(law, HasCongestion) else _NOTHING
        self._announced: HasAnnounced = law if isinstance(law, HasAnnounced) else _NOTHING
        self._progressed: HasProgressed = law if isinstance(law, HasProgressed) else _NOTHING
        self._settled: HasSettled = law if isinstance(law, HasSettled) else _NOTHING
        self._wants_progress: HasWantsProgress = law if isinstance(law, HasWantsProgress) else _NOTHING
        self._thresholds: HasThresholds = law if isinstance(law, HasThresholds) else _NOTHING

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        return self._flow_started.flow_started(flow, flows, now)

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        return self._flow_ended.flow_ended(flow, flows, now)

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        return self._queue_sampled.queue_sampled(sample, flows, now)

    def congestion(self, state: Congestion, backlog: int, now: float) -> WindowPlan | None:
        return self._congestion.congestion(state, backlog, now)

    def announced(self, flow: FlowKey, announcement: Announcement | None, now: float) -> WindowPlan | None:
        return self._announced.announced(flow, announcement, now)

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> WindowPlan | None:
        return self._progressed.progressed(flows, now)

    def settled(self, now: float) -> WindowPlan | None:
        return self._settled.settled(now)

    def wants_progress(self) -> bool:
        return bool(self._wants_progress.wants_progress())

    def thresholds(self) -> Thresholds | None:
        return self._thresholds.thresholds()

    def display(self) -> Display:
        return self._law.display() if isinstance(self._law, HasDisplay) else former_display(self._law)


def adapted(law: object) -> PortLaw:
    """The law as a :class:`PortLaw`: itself, if it is one."""
    return law if isinstance(law, PortLaw) else AdaptedLaw(law)


def takes_announcements(policy: Policy) -> bool:
    """Whether a policy uses the announced sizes and deadlines of flows: its laws have ``announced``."""
    # Made for a port that does not exist: a law does nothing before its first event.
    law: object = policy.port_law(PortKey(0, 0))
    if isinstance(law, PortLaw):
        return type(law).announced is not PortLaw.announced
    return isinstance(law, HasAnnounced)
