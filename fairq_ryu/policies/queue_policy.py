"""What the policies of queue laws have in common: they set no windows, and their law runs in the switch.

A queue law judges every packet before it enters the queue of a port. The queue is a FIFO of known rate C, so
a packet that finds Q bytes in it will wait for Q / C: the law knows at the arrival what laws for the end of a
queue measure there. The agent does the rest (:mod:`fairq_ryu.agent.queue_law_table`, ``queue_law.bpf.c``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import PortLaw
from fairq_ryu.policies.parts.fair_share import FairShare
from fairq_ryu.queue_law_spec import NO_QUEUE_FLAGS, QueueLawFlags, QueueLawSpec
from fairq_ryu.setting import Setting

_INTERVAL = 0.25


class QueuePolicy(ABC):
    """A policy without windows whose ports have a queue law. ``interval``: between two readings of queues,
    seconds.
    """

    settings: ClassVar[tuple[Setting, ...]] = ()
    interval: float = _INTERVAL
    _spec: QueueLawSpec | None = None

    def port_law(self, port: PortKey) -> PortLaw:
        """The window law for one port: it never has a plan."""
        return PortLaw()

    @abstractmethod
    def spec(self) -> QueueLawSpec:
        """The queue law of every port, which does not change."""

    def queue_law(self, port: PortKey) -> QueueLawSpec:
        """The queue law for one port."""
        # It is asked for at each reading of a queue.
        if self._spec is None:
            self._spec = self.spec()
        return self._spec


@dataclass(frozen=True, slots=True)
class SharingParameters:
    """What the laws with a fair share have in common; times in s."""

    where: str = "switch"
    update: float = 0.00625
    controller_interval: float = 0.02
    sample_every: int = 0
    ecn: bool = False


class SharingPolicy(QueuePolicy):
    """A policy whose law has a fair share, worked out in the switch or in the controller."""

    def __init__(self, parameters: SharingParameters) -> None:
        self._sharing = parameters
        if parameters.where == "controller":
            self.interval = parameters.controller_interval

    @property
    def flags(self) -> QueueLawFlags:
        """The flags of the law."""
        given = QueueLawFlags.FAIR_GIVEN if self._sharing.where == "controller" else NO_QUEUE_FLAGS
        return ecn_flag(self._sharing.ecn) | given

    def fair_share(self, port: PortKey) -> FairShare:
        """The fair share of one port, worked out in the controller."""
        return FairShare(self._sharing.controller_interval, self._sharing.update)


def microseconds(seconds: float) -> int:
    """A time in the unit of the channel."""
    return round(seconds * 1e6)


def millionths(part: float) -> int:
    """A fraction in the unit of the channel."""
    return round(part * 1e6)


def ecn_flag(wanted: bool) -> QueueLawFlags:
    """The flag of a law that marks packets."""
    return QueueLawFlags.ECN if wanted else NO_QUEUE_FLAGS


# Settings


def base_rtt(section: str) -> Setting:
    """The round-trip time with empty queues."""
    return Setting(section, "base_rtt", 0.001, "s", "Round-trip time with empty queues.", 0, 10)


def delay_settings(section: str) -> tuple[Setting, Setting, Setting]:
    """Target and interval of CoDel's control law, and the round-trip time that they are worked out from."""
    return (
        Setting(
            section,
            "delay_target",
            0.0,
            "s",
            "Queueing delay that the law aims at (0: a twentieth of the interval, at least 1.5 full frames).",
            0,
            10,
        ),
        Setting(
            section,
            "delay_interval",
            0.0,
            "s",
            "For how long the delay must be above it (0: twice base_rtt and the time that the full buffer "
            "takes to drain, at least 10 ms).",
            0,
            60,
        ),
        base_rtt(section),
    )


def ecn(section: str, default: bool = False) -> Setting:
    """Whether a law marks packets."""
    return Setting(section, "ecn", default, "", "Mark ECN-capable packets in place of dropping them.")


def sharing_settings(section: str) -> tuple[Setting, Setting, Setting, Setting]:
    """Where and how often the fair share is worked out."""
    return (
        Setting(
            section,
            "where",
            "switch",
            "",
            "Where the fair share is worked out: in the switch, or in the controller from agents' counts.",
            choices=("switch", "controller"),
        ),
        Setting(
            section,
            "update",
            0.00625,
            "s",
            "tau_q: longest time between two updates of the fair share in the switch.",
            0.0001,
            1,
        ),
        Setting(
            section,
            "controller_interval",
            0.02,
            "s",
            "Time between two updates of the fair share in the controller.",
            0.00625,
            1,
        ),
        Setting(
            section,
            "sample_every",
            0,
            "packets",
            "One packet of so many enters the shadow buffer (0: so that it has 1.2 s of a full link).",
            0,
            10_000,
        ),
    )
