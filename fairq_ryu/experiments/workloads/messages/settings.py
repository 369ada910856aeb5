"""The settings of messages beside elephants."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.settings import Scenario, setting
from fairq_ryu.experiments.workloads.common import settings as shared


@dataclass(frozen=True, kw_only=True)
class MessagesScenario(Scenario):
    """Short messages on open connections, beside elephants."""

    elephants: int = shared.elephants()
    connections: int = setting(
        "number of connections with messages, assigned to the senders in turn",
        low=1,
        high=10_000,
        example=100,
    )
    message_bytes: int = setting("size of a message", unit="bytes", low=1, high=10_000, default=200)
    message_interval_s: float = setting(
        "time between two messages of a connection", unit="s", low=0.001, high=3600, default=0.15
    )
    message_timeout_s: float = setting(
        "a message that is not answered this long after the last one was due is counted as unanswered",
        unit="s",
        low=0.1,
        high=3600,
        default=5.0,
    )
    messages_s: float = setting(
        "duration of the phase with messages", unit="s", low=0.1, high=3600, default=10.0
    )
    warmup_s: float = shared.warmup_s()
    elephants_only_s: float = shared.elephants_only_s()

    def check(self) -> None:
        """`UserError` when the settings contradict each other."""
        super().check()
        if self.message_interval_s > self.messages_s:
            raise UserError(
                f"no connection sends two messages: message_interval_s is {self.message_interval_s:g}, and"
                f" messages_s {self.messages_s:g}",
                "lower message_interval_s or raise messages_s",
            )
