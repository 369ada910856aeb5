"""AFQ: approximate fairness by queue management. Flows above the fair share lose packets, by how far above.

Pan, Breslau, Prabhakar and Shenker, "Approximate Fairness through Differential Dropping" (CCR 2003), as the
paper about AFCD describes it: the switch keeps a shadow buffer of samples and drops a packet with a
probability that depends on its flow's share of the samples and on the fair share, which follows the queue.
The law runs in the switch (``agent/bpf/laws/queue_afq.h``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.parts.fair_share import FairShare
from fairq_ryu.policies.queue_policy import (
    QueuePolicy,
    ecn,
    ecn_flag,
    microseconds,
    millionths,
    sharing_settings,
)
from fairq_ryu.queue_law_spec import QueueLawFlags, QueueLawKind, QueueLawSpec, Variant
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class AfqParameters:
    """Times in s; ``queue_target`` a fraction of the buffer."""

    variant: str = "paper"
    where: str = "switch"
    update: float = 0.00625
    controller_interval: float = 0.02
    sample_every: int = 0
    queue_target: float = 0.2
    ecn: bool = False


class Afq(QueuePolicy):
    """The AFQ policy."""

    name: ClassVar[str] = "afq"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "afq",
            "variant",
            "paper",
            "",
            "As the paper, or as its authors' code (a thousandth of the probability, above 1.2 fair shares).",
            choices=("paper", "authors"),
        ),
        *sharing_settings("afq"),
        Setting(
            "afq", "queue_target", 0.2, "", "Q_t: length of the queue as a fraction of the buffer.", 0.01, 1
        ),
        ecn("afq"),
    )

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[afq]``."""
        self.parameters = typed_parameters(AfqParameters, parameters)
        if self.parameters.where == "controller":
            self.interval = self.parameters.controller_interval

    def queue_law(self, port: PortKey) -> QueueLawSpec:
        """The queue law for one port."""
        p = self.parameters
        given = QueueLawFlags.FAIR_GIVEN if p.where == "controller" else QueueLawFlags(0)
        return QueueLawSpec(
            QueueLawKind.AFQ,
            Variant[p.variant.upper()],
            ecn_flag(p.ecn) | given,
            update_us=microseconds(p.update),
            target_ppm=millionths(p.queue_target),
            sample_every=p.sample_every,
        )

    def fair_share(self, port: PortKey) -> FairShare:
        """The fair share of one port, worked out in the controller."""
        return FairShare(self.parameters.controller_interval, self.parameters.update)
