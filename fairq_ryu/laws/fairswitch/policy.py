"""FairSwitch, FairQ's prototype in hardware: each flow has the target divided by the number of flows, and
more or less as the queue is long.

Abdelmoniem and Bensaou built FairQ into a NetFPGA card. Their text says that it runs Algorithm 1. Its code
(Verilog) does not: there the window of a flow is ``max(2048, target / n) + trim``, and the trim follows the
queue in steps of fixed size. The switch runs either: ``law.h``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import BASE_RTT, TURNS, target_queue, typed_parameters
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from fairq_ryu.setting import Setting

INCREMENTS = 8
"""M of Algorithm 1, intervals of 0.2 ms between two updates: as in the algorithm that the controller runs."""


@dataclass(frozen=True, slots=True)
class FairSwitchParameters:
    """``base_rtt`` in s; ``alpha`` a fraction of the buffer."""

    law: str
    alpha: float
    base_rtt: float
    turns: str


class FairSwitch:
    """The FairSwitch policy."""

    name: ClassVar[str] = "fairswitch"
    interval: ClassVar[float] = LOOK_INTERVAL
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "fairswitch",
            "law",
            "verilog",
            "",
            "verilog: the law of the card's code; text: that of the paper's text, Algorithm 1. Set it to "
            "compare the two.",
            choices=("verilog", "text"),
        ),
        target_queue("fairswitch", 0.25),
        BASE_RTT,
        TURNS,
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(FairSwitchParameters, parameters)

    def switch_law(self, port: PortKey) -> FairSwitchLaw:
        """The law for one port."""
        p = self.parameters
        return FairSwitchLaw(
            turns=p.turns == "on",
            base_rtt_us=round(p.base_rtt * 1e6),
            target_ppm=round(p.alpha * 1e6),
            increments=INCREMENTS if p.law == "text" else 0,
        )
