"""IQM: when a volley of new flows is about to overflow the queue, every flow is limited to one segment.

Abdelmoniem and Bensaou, "Incast-Aware Switch-Assisted TCP Congestion Control for Data Centers"
(IEEE GLOBECOM 2015), section III. Each new flow is expected to add its initial window to the queue;
when that is more than the buffer holds, all flows of the port are limited until the queue has drained.

The switch runs the law: ``law.h``, which says what differs from the paper; ``agent/bpf/laws/opening.h``
limits what a SYN flood can do. Algorithm 1 line by line, in the controller, is
:mod:`fairq_ryu.laws.iqm_paper`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import INITCWND, typed_parameters
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class IqmParameters:
    """``interval`` T_i in s, ``initcwnd`` x in segments; ``alpha`` and ``standing`` are fractions of
    the buffer.
    """

    interval: float
    alpha: float
    initcwnd: int
    standing: float


class Iqm:
    """The IQM policy."""

    name: ClassVar[str] = "iqm"
    interval: ClassVar[float] = LOOK_INTERVAL
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "iqm",
            "interval",
            0.01,
            "s",
            "T_i: length of the interval in which new flows are counted. Set it a little longer than the "
            "round trips of the network.",
            0.0005,
            0.01,
        ),
        Setting(
            "iqm",
            "alpha",
            0.2,
            "",
            "The incast is over when the queue is below this fraction of the buffer. Lower it where one "
            "volley follows another closely: the limit then lasts longer.",
            0,
            1,
        ),
        INITCWND,
        Setting(
            "iqm",
            "standing",
            0.2,
            "",
            "Queue between incasts as a fraction of the buffer (1: no windows between incasts, as in the "
            "paper). Lower it where volleys still overflow the buffer.",
            0.05,
            1,
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(IqmParameters, parameters)

    def switch_law(self, port: PortKey) -> IqmLaw:
        """The law for one port."""
        p = self.parameters
        return IqmLaw(
            interval_us=round(p.interval * 1e6),
            target_ppm=round(p.standing * 1e6),
            calm_ppm=round(p.alpha * 1e6),
            first_window=p.initcwnd,
        )
