"""AC/DC: DCTCP in the switch, for hosts that have never heard of it.

Ours, after AC/DC TCP (He et al., SIGCOMM 2016). The switch counts which data of a flow finds the queue of its
port above a threshold, keeps DCTCP's alpha and congestion window (RFC 8257) for each flow, and lowers the
receive windows in ACKs to that window (``law.h``). Hosts need neither DCTCP nor ECN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.acdc import AcdcLaw
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class AcdcParameters:
    """``threshold`` K in packets of 1514 bytes."""

    threshold: int


class Acdc:
    """The AC/DC policy."""

    name: ClassVar[str] = "acdc"
    interval: ClassVar[float] = LOOK_INTERVAL
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "acdc",
            "threshold",
            AcdcLaw.usual("mark_packets"),
            "packets",
            "K: data that would make the queue longer, in full frames of 1514 bytes, counts as marked. "
            "Raise it where long flows do not fill the link.",
            1,
            65_535,
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(AcdcParameters, parameters)

    def switch_law(self, port: PortKey) -> AcdcLaw:
        """The law for one port."""
        return AcdcLaw(mark_packets=self.parameters.threshold)
