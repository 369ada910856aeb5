"""LAS: least attained service. Flows that have sent little get more of the queue than those that sent much.

Ours, after the scheduling discipline of that name. The switch runs the law (``law.h``): a pool
follows the queue as FairQ's does; young flows weigh eight times as much as old ones, and during a volley old
flows have one segment each. No priorities are needed in the network, and nothing has to be announced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.las import LasLaw
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import BASE_RTT, TURNS, target_queue, typed_parameters
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class LasParameters:
    """``alpha`` a fraction of the buffer, ``young_bytes`` in bytes, ``base_rtt`` in s."""

    alpha: float
    base_rtt: float
    young_bytes: int
    turns: str


class Las:
    """The LAS policy."""

    name: ClassVar[str] = "las"
    interval: ClassVar[float] = LOOK_INTERVAL
    settings: ClassVar[tuple[Setting, ...]] = (
        target_queue("las", 0.15),
        BASE_RTT,
        Setting(
            "las",
            "young_bytes",
            LasLaw.usual("young_bytes"),
            "bytes",
            "A flow that has sent less is young. Raise it where the flows that should be fast are longer.",
            0,
            1 << 30,
        ),
        TURNS,
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(LasParameters, parameters)

    def switch_law(self, port: PortKey) -> LasLaw:
        """The law for one port."""
        p = self.parameters
        return LasLaw(
            turns=p.turns == "on",
            base_rtt_us=round(p.base_rtt * 1e6),
            target_ppm=round(p.alpha * 1e6),
            young_bytes=p.young_bytes,
        )
