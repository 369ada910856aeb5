"""What laws ask of the agents between two readings of a queue: thresholds, and the progress of flows."""

from __future__ import annotations

from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.reports.event_reporter import EventReporter
from fairq_ryu.control.windows.loss_recovery import LossRecovery
from fairq_ryu.control.windows.part import WindowPart
from fairq_ryu.model import PortKey, QueueSample
from fairq_ryu.openflow.pipeline import Message
from fairq_ryu.policies.engine import PolicyEngine


class LawNeeds(WindowPart):
    """It has no state: what an agent was told is known to its link."""

    def __init__(self, engine: PolicyEngine, recovery: LossRecovery, reporter: EventReporter) -> None:
        self._engine, self._recovery, self._reporter = engine, recovery, reporter

    def queue_read(self, link: AgentLink, key: PortKey, sample: QueueSample, now: float) -> list[Message]:
        """Set the thresholds that the law wants now, and request the progress of flows if that is due."""
        thresholds = self._engine.thresholds(key)
        if thresholds is None or not thresholds.cng:
            self._reporter.unwatched(key)
        if thresholds is not None and (self._recovery.is_agents(link, key) or not self._engine.acts(key)):
            # The agent needs dropped packets by itself, or nobody does.
            thresholds = thresholds._replace(drops=False)
        messages = link.drops.set_thresholds(key.port, thresholds)
        if self._engine.wants_progress(key):
            messages += link.flow_records.request_progress(key.port, 0.9 * self._engine.interval(key), now)
        return messages
