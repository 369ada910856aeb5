"""RED, random early detection (Floyd and Jacobson 1993), as a policy: it sets no windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import PPM
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.queue_policy import QueuePolicy, ecn, millionths
from fairq_ryu.setting import Setting

HIGH = 3
"""max_th in min_th. The authors of RED advise at least twice, and three times later."""


@dataclass(frozen=True, slots=True)
class RedParameters:
    """``low`` a fraction of the buffer."""

    low: float
    max_p: float
    gentle: bool
    ecn: bool


class Red(QueuePolicy):
    """Random early detection (Floyd and Jacobson 1993), "gentle" if it is not told otherwise."""

    name: ClassVar[str] = "red"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "red",
            "low",
            RedLaw.usual("min_ppm") / PPM,
            "",
            "min_th: mean queue from which packets are dropped, of the buffer; max_th, with the probability "
            "max_p, is three times as much. Lower it for a shorter queue; raise it where flows do not fill "
            "the link.",
            0.001,
            1 / HIGH,
        ),
        Setting(
            "red",
            "max_p",
            RedLaw.usual("max_p_ppm") / PPM,
            "",
            "Probability at max_th. Raise it where many flows keep the mean queue above max_th.",
            0.001,
            1,
        ),
        Setting(
            "red",
            "gentle",
            True,
            "",
            "From max_th the probability grows to 1 at twice max_th; no: it is 1 from max_th on, as in "
            "Linux. Set no to compare with the kernel's RED.",
        ),
        ecn("red"),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(RedParameters, parameters)

    def spec(self) -> RedLaw:
        """The queue law of every port."""
        p = self.parameters
        return RedLaw(
            ecn=p.ecn,
            abrupt=not p.gentle,
            min_ppm=millionths(p.low),
            max_ppm=millionths(HIGH * p.low),
            max_p_ppm=millionths(p.max_p),
        )
