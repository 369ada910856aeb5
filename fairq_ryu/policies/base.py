"""The interface of a window policy: a policy, made once, and the laws of each port that it governs.

A law runs in the switch, in C (``switch_law``), or in the controller, in Python (``port_law``). A policy that
has both has two layers: the switch's law governs the port, and the controller's sets windows of single flows
above it.

A port law is pure: its inputs are events, with the time as an argument, and its outputs are the windows that
should be installed for its port. It sends nothing, so the same object serves the controller, a simulator and
the unit tests. A policy is registered under the entry point group ``fairq_ryu.policies``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, NamedTuple, Protocol

from fairq_ryu import model
from fairq_ryu.errors import UserError
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.policies.parts.deadline_table import GifTable
from fairq_ryu.queue_law_spec import QueueLawSpec

ENTRY_POINT_GROUP = "fairq_ryu.policies"
Parameters = Mapping[str, int | float | bool | str]


class Display(NamedTuple):
    """The values of a port law for displays; None: the law does not have this value.

    ``target``: the queue length that it aims at, bytes; ``incast``: whether it limits its flows because of an
    incast; ``gif``: its table of flows by priority. A law leaves the others None, because the engine sets
    them: ``state``: whether the queue is congested, by the switch's congestion messages; ``where`` the law
    runs ("switch" or "controller"); ``missing``: why the switch does not run the law of the policy, in words:
    the port has no windows then.
    """

    target: float | None = None
    incast: bool | None = None
    gif: GifTable | None = None
    state: model.Congestion | None = None
    where: str | None = None
    missing: str | None = None


class PortLaw:
    """A policy on one port. Each plan replaces the one before it; None keeps it.

    A law overrides the methods that it needs; the others do nothing.
    """

    def flow_started(self, flow: model.FlowInfo, flows: int, now: float) -> model.WindowPlan | None:
        """A flow whose data leaves by this port has started; ``flows`` includes it. ``now`` in seconds."""
        return None

    def flow_ended(self, flow: model.FlowInfo, flows: int, now: float) -> model.WindowPlan | None:
        """A flow has ended; ``flows`` remain."""
        return None

    def queue_sampled(self, sample: model.QueueSample, flows: int, now: float) -> model.WindowPlan | None:
        """The queue was read. ``flows`` is the controller's count, ``sample.active`` the switch's."""
        return None

    def congestion(self, state: model.Congestion, backlog: int, now: float) -> model.WindowPlan | None:
        """The switch reports that the queue has crossed a threshold; ``backlog`` in bytes."""
        return None

    def announced(
        self, flow: model.FlowKey, announcement: model.Announcement | None, now: float
    ) -> model.WindowPlan | None:
        """A flow of this port that has started was announced, or its announcement withdrawn (None)."""
        return None

    def progressed(
        self, flows: Mapping[model.FlowKey, model.FlowProgress], now: float
    ) -> model.WindowPlan | None:
        """The switch has reported the progress of flows of this port; see :meth:`wants_progress`."""
        return None

    def limited(self, limiting: bool, now: float) -> model.WindowPlan | None:
        """The switch has reported whether its law limits every flow of the port (``Mode.LIMITING``); only the
        law of a policy that also has one for the switch is called.
        """
        return None

    def settled(self, now: float) -> model.WindowPlan | None:
        """The state of the port before this law has been replayed: all further calls are new events."""
        return None

    def wants_progress(self) -> bool:
        """Whether :meth:`progressed` should be called with each sample of the queue."""
        return False

    def thresholds(self) -> model.Thresholds | None:
        """Queue lengths at which the switch reports :meth:`congestion`; asked after each sample."""
        return None

    def display(self) -> Display:
        """What the law shows. Called often: it is fast and changes nothing."""
        return Display()


def renewal_interval(lease: float) -> float:
    """Time after which a rule with this lease is renewed, seconds; the longest ``interval`` of a policy.

    Rules are renewed after a reading of the queue: with longer intervals they could end before.
    """
    return lease / 4


class Policy(Protocol):
    """A policy with its parameters. Made from the settings of the section of its name, and shared ones. Its
    methods ``switch_law``, ``port_law`` and ``queue_law`` (see the functions of these names) say which laws a
    port has; it may lack those that it does not need. A layer on another policy has the class method ``on``,
    which is called with its parameters and that policy, the one that its parameter ``above`` names.
    """

    name: ClassVar[str]

    def __init__(self, parameters: Parameters) -> None: ...

    @property
    def interval(self) -> float:
        """Time between two readings of the queues, seconds."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """How segments that a port's queue has dropped are recovered. ``dupack``: three duplicate ACKs are sent
    to the source; ``reinject``: the segment is sent again. At most ``bytes`` of dropped packets are stored
    for each port, and none for longer than ``age`` seconds. ``by_agent``: the agent of the port's switch does
    it, at once; otherwise the controller sends the duplicate ACKs, and the agent sends it each dropped
    packet. Raises ValueError if the controller is to reinject segments.
    """

    dupack: bool
    reinject: bool
    bytes: int
    age: float
    by_agent: bool = True

    def __post_init__(self) -> None:
        if self.reinject and not self.by_agent:
            raise ValueError("only an agent sends segments again: reinject needs by_agent")


def switch_law(policy: Policy, port: model.PortKey) -> LawSpec | None:
    """The law that a policy wants the switch to run on a port: its method ``switch_law``; None: it has none.
    Raises TypeError if it returns anything else.
    """
    method: Callable[[model.PortKey], LawSpec | None] | None = getattr(policy, "switch_law", None)
    spec = None if method is None else method(port)
    if spec is not None and not isinstance(spec, LawSpec):
        raise TypeError(f"switch_law() returns a LawSpec or None, not {spec!r}")
    return spec


def port_law(policy: Policy, port: model.PortKey) -> PortLaw | None:
    """A policy's law for a port that the controller runs: its method ``port_law``; None: it has none. Of its
    plans only ``flows`` is used if the switch runs a law on the port. Raises TypeError if it returns anything
    else.
    """
    method: Callable[[model.PortKey], PortLaw | None] | None = getattr(policy, "port_law", None)
    law = None if method is None else method(port)
    if law is not None and not isinstance(law, PortLaw):
        raise TypeError(f"port_law() returns a PortLaw or None, not {law!r}")
    return law


def queue_law(policy: Policy, port: model.PortKey) -> QueueLawSpec | None:
    """The law that judges each packet of a port's queue, in the switch: a policy's method ``queue_law``;
    None: it has none. Raises TypeError if it returns anything else.
    """
    method: Callable[[model.PortKey], QueueLawSpec | None] | None = getattr(policy, "queue_law", None)
    spec = None if method is None else method(port)
    if spec is not None and not isinstance(spec, QueueLawSpec):
        raise TypeError(f"queue_law() returns a QueueLawSpec or None, not {spec!r}")
    return spec


def takes_announcements(policy: Policy) -> bool:
    """Whether a policy uses the announced sizes or deadlines of flows: its laws have ``announced``, or new
    connections take turns.
    """
    # Made for a port that does not exist: a law does nothing before its first event.
    nowhere = model.PortKey(0, 0)
    spec = switch_law(policy, nowhere)
    if spec is not None and spec.turns:
        return True
    law = port_law(policy, nowhere)
    return law is not None and type(law).announced is not PortLaw.announced


def recovery_of(policy: Policy) -> Recovery | None:
    """How a policy wants losses recovered: its attribute ``recovery``; None: not at all."""
    found: Recovery | None = getattr(policy, "recovery", None)
    return found


def same(one: Policy, other: Policy) -> bool:
    """Whether a port can keep its law when its policy changes from one to the other: both have the same class
    and equal ``parameters``. A policy without that attribute equals only itself.
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
    """The entry points of the installed policies, this package's first, so that they keep their names. They
    are looked up once, because the lookup reads files of all packages, which would stop a running controller
    for milliseconds.
    """
    return tuple(sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: not is_own(entry)))


def available() -> list[str]:
    """The names of the installed policies."""
    return sorted({entry.name for entry in installed()})


def own() -> list[str]:
    """The names of this package's policies: alphabetical, but a policy after those that it extends. Raises
    :class:`UserError` if one cannot be loaded.
    """
    names = {entry.name for entry in installed() if is_own(entry)}
    return sorted(names, key=lambda name: (len(find(name).__mro__), name))


def is_own(entry: EntryPoint) -> bool:
    """Whether an entry point is of this package."""
    return entry.value.startswith("fairq_ryu.")


def app_of(name: str) -> str:
    """The application that ryu-manager loads for a policy of this package: a module, so without hyphens."""
    return f"fairq_ryu.apps.{name.replace('-', '_')}"


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
