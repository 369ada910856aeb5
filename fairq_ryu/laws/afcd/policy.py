"""AFCD: approximate fairness and controlled delay. What it drops for the delay is of flows above their share.

Xue et al., "AFCD: An Approximated-Fair and Controlled-Delay Queuing for High Speed Networks" (ICCCN 2013):
AFQ's flow table and fair share, with CoDel's control law, whose target delay for a flow falls with the flow's
share of the traffic. The law runs in the switch (``law.h``). ``variant`` chooses the
paper's equations, its authors' code, or ours: the drops of AFQ's `ours`, and CoDel with one target, whose
drops fall on flows that have sent most in the last seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.queue_policy import (
    QueuePolicy,
    delay_settings,
    ecn,
    microseconds,
)
from fairq_ryu.queue_law_spec import Variant
from fairq_ryu.setting import Setting

PAPER_TARGET_US, PAPER_INTERVAL_US = 5_000, 100_000
"""target_delay and interval of the paper's experiments, which are CoDel's."""


@dataclass(frozen=True, slots=True)
class AfcdParameters:
    """Times in s; ``delay_target`` of 0: worked out by the agent."""

    variant: str
    delay_target: float
    base_rtt: float
    ecn: bool


class Afcd(QueuePolicy):
    """Approximate fairness and controlled delay: AFQ, and CoDel that drops from flows above their share."""

    name: ClassVar[str] = "afcd"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "afcd",
            "variant",
            "ours",
            "",
            "As the paper, as its authors' code, or ours: AFQ's drops, and CoDel's of flows that sent most. "
            "Set another one to compare them.",
            choices=("paper", "authors", "ours"),
        ),
        *delay_settings("afcd"),
        ecn("afcd"),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(AfcdParameters, parameters)

    def spec(self) -> AfcdLaw:
        """The queue law of every port."""
        p = self.parameters
        return AfcdLaw(
            ecn=p.ecn,
            variant=Variant[p.variant.upper()],
            target_us=microseconds(p.delay_target),
            base_rtt_us=microseconds(p.base_rtt),
        )


class AfcdPaper(QueuePolicy):
    """AFCD as published: the paper's variant of the law in the switch, with the paper's times. It has no
    settings: ``[afcd] variant = paper`` is the same law with those of AFCD.
    """

    name: ClassVar[str] = "afcd-paper"

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = ()

    def spec(self) -> AfcdLaw:
        """The queue law of every port."""
        return AfcdLaw(variant=Variant.PAPER, target_us=PAPER_TARGET_US, interval_us=PAPER_INTERVAL_US)
