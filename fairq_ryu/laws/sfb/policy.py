"""SFB, stochastic fair Blue (Feng, Kandlur, Saha and Shin 2001), as a policy: it sets no windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.sfb import SfbLaw
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.queue_policy import QueuePolicy
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class SfbParameters:
    """``bin_packets`` in packets."""

    bin_packets: int


class Sfb(QueuePolicy):
    """Stochastic fair Blue (Feng, Kandlur, Saha and Shin 2001), with the numbers of Linux."""

    name: ClassVar[str] = "sfb"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "sfb",
            "bin_packets",
            SfbLaw.usual("bin_packets"),
            "packets",
            "A bin with so many packets in the queue becomes more likely to drop; with a quarter more, it "
            "takes no more. Raise it where a flow alone does not fill the link.",
            1,
            8000,
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(SfbParameters, parameters)

    def spec(self) -> SfbLaw:
        """The queue law of every port. It marks packets that are ECN-capable, as Linux's always does."""
        packets = self.parameters.bin_packets
        return SfbLaw(ecn=1, bin_packets=packets, bin_most=packets + packets // 4)
