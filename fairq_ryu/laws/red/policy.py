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


@dataclass(frozen=True, slots=True)
class RedParameters:
    """``low`` and ``high`` fractions of the buffer."""

    low: float
    high: float
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
            "min_th: mean queue from which packets are dropped, of the buffer. Lower it for a shorter "
            "queue; raise it where flows do not fill the link.",
            0.001,
            1,
        ),
        Setting(
            "red",
            "high",
            RedLaw.usual("max_ppm") / PPM,
            "",
            "max_th: mean queue with the probability max_p, of the buffer. Set it with low, to about "
            "three times as much.",
            0.001,
            1,
        ),
        Setting(
            "red",
            "max_p",
            RedLaw.usual("max_p_ppm") / PPM,
            "",
            "Probability at max_th. Raise it where many flows keep the mean queue above high.",
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
        """``parameters`` are the settings of section ``[red]``."""
        self.parameters = typed_parameters(RedParameters, parameters)
        if self.parameters.low >= self.parameters.high:
            raise ValueError(f"low {self.parameters.low:g} is not below high {self.parameters.high:g}")

    def spec(self) -> RedLaw:
        """The queue law of every port."""
        p = self.parameters
        return RedLaw(
            ecn=p.ecn,
            abrupt=not p.gentle,
            min_ppm=millionths(p.low),
            max_ppm=millionths(p.high),
            max_p_ppm=millionths(p.max_p),
        )
