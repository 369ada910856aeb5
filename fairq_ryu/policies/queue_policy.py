"""What the policies of queue laws have in common: they set no windows, and their law runs in the switch.

A queue law judges every packet before it enters the queue of a port. The queue is a FIFO of known rate C, so
a packet that finds Q bytes in it will wait for Q / C: the law knows at the arrival what laws for the end of a
queue measure there. The agent does the rest (:mod:`fairq_ryu.agent.queue_law_table`, ``queue_law.bpf.c``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from fairq_ryu.model import PortKey
from fairq_ryu.policies.common_settings import BASE_RTT
from fairq_ryu.queue_law_spec import QueueLawSpec
from fairq_ryu.setting import Setting

_INTERVAL = 0.25


class QueuePolicy(ABC):
    """A policy without windows whose ports have a queue law. ``interval``: between two readings of queues,
    seconds.
    """

    settings: ClassVar[tuple[Setting, ...]] = ()
    interval: float = _INTERVAL
    _spec: QueueLawSpec | None = None

    @abstractmethod
    def spec(self) -> QueueLawSpec:
        """The queue law of every port, which does not change."""

    def queue_law(self, port: PortKey) -> QueueLawSpec:
        """The queue law for one port."""
        # It is asked for at each reading of a queue.
        if self._spec is None:
            self._spec = self.spec()
        return self._spec


def microseconds(seconds: float) -> int:
    """A time in the unit of the channel."""
    return round(seconds * 1e6)


def millionths(part: float) -> int:
    """A fraction in the unit of the channel."""
    return round(part * 1e6)


# Settings


def delay_settings(section: str) -> tuple[Setting, Setting]:
    """The target of CoDel's control law, whose interval is twenty times as long; and the round-trip time from
    which both are worked out where the target is not given, see `queue_law_spec.delay_times`.
    """
    return (
        Setting(
            section,
            "delay_target",
            0.0,
            "s",
            "Queueing delay that the law aims at (0: a tenth of base_rtt and the time that the full buffer "
            "takes to drain, at least 0.5 ms and 1.5 full frames). The interval is 20 times as long, at "
            "least 10 ms. Set it where a certain delay is promised.",
            0,
            10,
        ),
        BASE_RTT,
    )


def ecn(section: str, default: bool = False) -> Setting:
    """Whether a law marks packets."""
    return Setting(
        section,
        "ecn",
        default,
        "",
        "Mark ECN-capable packets in place of dropping them. Set it where hosts use ECN as in RFC 3168.",
    )
