"""Relay: the policy that asks the switch for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.relay import RelayLaw

from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import target_queue, typed_parameters
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class RelayParameters:
    """Fractions of the buffer; ``hold`` in s."""

    alpha: float
    large: float
    small: float
    hold: float


class Relay:
    """The policy Relay."""

    name: ClassVar[str] = "relay"
    interval: ClassVar[float] = LOOK_INTERVAL
    settings: ClassVar[tuple[Setting, ...]] = (
        target_queue("relay", 0.25),
        Setting(
            "relay", "large", 0.8, "", "Pool while the queue is short. Raise it to fill the link.", 0.01, 1
        ),
        Setting("relay", "small", 0.2, "", "Pool while it is long. Lower it to drain sooner.", 0.01, 1),
        Setting("relay", "hold", 0.002, "s", "Least time between two changes. Set it to a round trip.", 0, 1),
    )

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[relay]``."""
        self.parameters = typed_parameters(RelayParameters, parameters)

    def switch_law(self, port: PortKey) -> RelayLaw:
        """The law for one port."""
        p = self.parameters
        return RelayLaw(
            target_ppm=round(p.alpha * 1e6),
            large_ppm=round(p.large * 1e6),
            small_ppm=round(p.small * 1e6),
            hold_us=round(p.hold * 1e6),
        )
