"""What is known of one port of an agent: what the agent has reported of it, and what it was told about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from fairq_ryu.channel.dispatch import TooMuch
from fairq_ryu.channel.hidden_queue import HiddenQueue
from fairq_ryu.channel.port_mode import PortWindows
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.channel.recovery import SetRecovery
from fairq_ryu.channel.window_law import LawState
from fairq_ryu.control.reports.counters import Peak
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.model import Thresholds, WindowRule
from fairq_ryu.queue_law_spec import QueueLawSpec

_NEVER = float("-inf")
MOST_PORTS = 1 << 17
"""Ports and far queues that an agent may name; its own bound is a half of that."""
Spec = TypeVar("Spec")
State = TypeVar("State")


@dataclass(slots=True, eq=False)
class PortLaw(Generic[Spec, State]):
    """The law of a port. ``spec``: the law that the agent has (None: none); ``state``: its last report.
    ``contested``: another controller has changed it. ``message``: the packed FlowMod of the port's rule that
    refers to the law, and ``rule`` that rule; ``renewed_at``: when it was sent last, seconds.
    """

    spec: Spec | None = None
    state: State | None = None
    contested: bool = False
    rule: WindowRule | None = None
    message: Any = None
    renewed_at: float = _NEVER


@dataclass(slots=True, eq=False)
class AgentPort:
    """A port. Times in seconds; None: not reported, or not told."""

    name: str | None = None
    """of its interface"""
    depth: QueueDepth | None = None
    """the last reading of its queue"""
    peak: Peak | None = None
    peak_since_taken: int = 0
    """the longest queue since somebody has asked, bytes"""
    counts: PortWindows | None = None
    hidden: HiddenQueue | None = None
    """of a far queue, the last report"""
    hidden_delay: float | None = None
    """mean delay in the hidden queue between the last two reports, seconds; None: not measured"""
    queue_request: bytes | None = None
    """packed"""
    progress_requested_at: float = _NEVER
    thresholds: Thresholds | None = None
    recovery: SetRecovery | None = None
    recovery_sent_at: float = _NEVER
    mode: int | None = None
    window_law: PortLaw[LawSpec, LawState] = field(default_factory=PortLaw)
    queue_law: PortLaw[QueueLawSpec, QueueLawState] = field(default_factory=PortLaw)

    @property
    def is_listed(self) -> bool:
        """Whether the agent has listed the port, or has read its queue."""
        return self.name is not None or self.depth is not None


class AgentPorts(dict[int, AgentPort]):
    """The ports of one agent, by number. Asked for with brackets, a port is added: raises :class:`TooMuch` if
    there are :data:`MOST_PORTS`.
    """

    def __missing__(self, number: int) -> AgentPort:
        if len(self) >= MOST_PORTS:
            raise TooMuch(f"more than {MOST_PORTS:,} ports")
        port = self[number] = AgentPort()
        return port
