"""CoDel (RFC 8289) as a policy: it sets no windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.codel import CodelLaw
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.queue_policy import QueuePolicy, delay_settings, ecn, microseconds
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class CodelParameters:
    """Times in s; ``delay_target`` of 0: worked out by the agent."""

    delay_target: float
    base_rtt: float
    ecn: bool


class Codel(QueuePolicy):
    """Controlled delay (RFC 8289), at the arrival of a packet."""

    name: ClassVar[str] = "codel"
    settings: ClassVar[tuple[Setting, ...]] = (*delay_settings("codel"), ecn("codel"))

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(CodelParameters, parameters)

    def spec(self) -> CodelLaw:
        """The queue law of every port."""
        p = self.parameters
        return CodelLaw(
            ecn=p.ecn,
            target_us=microseconds(p.delay_target),
            base_rtt_us=microseconds(p.base_rtt),
        )
