"""What a window policy is: a law made once, and a port law for each port it governs.

A port law is pure: it is told of flows that start and end and shown the queue every
:attr:`Policy.interval` seconds, with the time as an argument, and answers with the windows that
should stand. It never sends anything, so the same object serves the controller, a simulator and the
unit tests. Register a policy under the entry point group ``fairq_ryu.policies``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Protocol

from fairq_ryu.errors import UserError
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

ENTRY_POINT_GROUP = "fairq_ryu.policies"
Parameters = Mapping[str, int | float | bool | str]


class PortLaw:
    """A policy on one port. Each answer replaces the plan before it; None leaves it as it is.

    A law overrides what it wants to know of; the rest does nothing.
    """

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """A flow's data will leave by this port; ``flows`` counts it already. ``now`` in seconds."""
        return None

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """A flow has ended; ``flows`` are left."""
        return None

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """The queue now. ``flows`` as the controller counts them, ``sample.active`` as the switch does."""
        return None

    def congestion(self, state: Congestion, backlog: int, now: float) -> WindowPlan | None:
        """The switch says that the queue has crossed a threshold; ``backlog`` in bytes."""
        return None

    def announced(self, flow: FlowKey, announcement: Announcement | None, now: float) -> WindowPlan | None:
        """An application has announced a flow of this port (or taken that back: None). The flow is known."""
        return None

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> WindowPlan | None:
        """How far flows of this port are; asked for by :meth:`wants_progress`."""
        return None

    def settled(self, now: float) -> WindowPlan | None:
        """A fresh law has been told of all that its port had before it: what is told from now on is news."""
        return None

    def wants_progress(self) -> bool:
        """Is :meth:`progressed` to be told with every sample of the queue?"""
        return False

    def thresholds(self) -> Thresholds | None:
        """When the switch is to call :meth:`congestion`; asked after each sample. None: never."""
        return None

    def target(self) -> float | None:
        """For display: the queue that the law aims at, bytes. None: at none."""
        return None


class Policy(Protocol):
    """A policy with its parameters. Made from the settings of the section that bears its name."""

    name: ClassVar[str]

    def __init__(self, parameters: Parameters) -> None: ...

    @property
    def interval(self) -> float:
        """How often the queues are to be read, seconds."""

    def port_law(self, port: PortKey) -> PortLaw:
        """The law for one port."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What is to be done about segments that a port's queue has dropped. ``dupack``: three duplicate ACKs go
    to the source; ``reinject``: the segment is put back. ``bytes`` of lost packets are kept for each port at
    most, and none for longer than ``age`` seconds.
    """

    dupack: bool
    reinject: bool
    bytes: int
    age: float


def takes_announcements(policy: Policy) -> bool:
    """Does a policy heed what is announced of flows? Its laws do if they override ``announced``."""
    # Made for no port there is: a law does nothing until it is told something.
    law: object = policy.port_law(PortKey(0, 0))
    own = getattr(type(law), "announced", None)
    return own is not None and own is not PortLaw.announced


def recovery_of(policy: Policy) -> Recovery | None:
    """What a policy wants done about losses: its attribute ``recovery``; None if it has none."""
    found: Recovery | None = getattr(policy, "recovery", None)
    return found


def same(one: Policy, other: Policy) -> bool:
    """Would it make no difference which of the two governs a port? By their attribute ``parameters``; without
    that only one and the same object is the same policy.
    """
    if one is other:
        return True
    parameters: Any = getattr(one, "parameters", None)
    return (
        type(one) is type(other)
        and parameters is not None
        and bool(parameters == getattr(other, "parameters", None))
        and recovery_of(one) == recovery_of(other)
    )


@cache
def installed() -> tuple[EntryPoint, ...]:
    """The entry points of the installed policies, ours first: a name of ours stays ours. They are looked up
    once, because the lookup reads files of all packages, which would stop a running controller for
    milliseconds.
    """
    return tuple(sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: not _is_own(entry)))


def available() -> list[str]:
    """The names of the installed policies."""
    return sorted({entry.name for entry in installed()})


def own() -> list[str]:
    """The names of this package's policies: alphabetical, but a policy after those that it extends. Raises
    :class:`UserError` if one cannot be loaded.
    """
    names = {entry.name for entry in installed() if _is_own(entry)}
    return sorted(names, key=lambda name: (len(find(name).__mro__), name))


def _is_own(entry: EntryPoint) -> bool:
    return entry.value.startswith("fairq_ryu.")


def find(name: str) -> type[Policy]:
    """The policy of that name. Raises :class:`UserError` if there is none, or it cannot be loaded."""
    for entry in installed():
        if entry.name == name:
            try:
                policy: type[Policy] = entry.load()
            except Exception as error:
                raise UserError(
                    f"policy {name} ({entry.value}) cannot be loaded: {error}",
                    "reinstall the package it comes from",
                ) from error
            return policy
    raise UserError(f"there is no policy {name}", f"known are {', '.join(available())}")
