"""AFQ: approximate fairness by queue management. Flows that have more than the fair share lose packets.

Pan, Breslau, Prabhakar and Shenker, "Approximate Fairness through Differential Dropping" (CCR 2003), as the
paper about AFCD describes it: the switch keeps a shadow buffer of samples and drops a packet with a
probability that depends on its flow's share of the samples and on the fair share, which follows the queue.
The law runs in the switch (``law.h``). ``variant`` chooses the paper's equation, its
authors' code, or ours, which allows small flows a quarter more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import PPM
from fairq_ryu.laws.afq import AfqLaw
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.queue_policy import (
    QueuePolicy,
    ecn,
    millionths,
)
from fairq_ryu.queue_law_spec import Variant
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class AfqParameters:
    """``queue_target`` a fraction of the buffer."""

    variant: str
    queue_target: float
    ecn: bool


class Afq(QueuePolicy):
    """Approximate fairness by queue management: flows that have more than the fair share lose packets."""

    name: ClassVar[str] = "afq"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "afq",
            "variant",
            "ours",
            "",
            "As the paper, as its authors' code (a thousandth of the probability, above 1.2 fair shares), "
            "or ours: flows that have sent less may have 1.25 fair shares. Set another one to compare them.",
            choices=("paper", "authors", "ours"),
        ),
        Setting(
            "afq",
            "queue_target",
            AfqLaw.usual("target_ppm") / PPM,
            "",
            "Q_t: length of the queue as a fraction of the buffer. Lower it for a shorter queue; raise it "
            "where flows do not fill the link.",
            0.01,
            1,
        ),
        ecn("afq"),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(AfqParameters, parameters)

    def spec(self) -> AfqLaw:
        """The queue law of every port."""
        p = self.parameters
        return AfqLaw(
            ecn=p.ecn,
            variant=Variant[p.variant.upper()],
            target_ppm=millionths(p.queue_target),
        )


class AfqPaper(QueuePolicy):
    """AFQ as published: the paper's variant of the law in the switch. It has no settings:
    ``[afq] variant = paper`` is the same law with those of AFQ.
    """

    name: ClassVar[str] = "afq-paper"

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = ()

    def spec(self) -> AfqLaw:
        """The queue law of every port."""
        return AfqLaw(variant=Variant.PAPER)
