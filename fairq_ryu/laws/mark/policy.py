"""Step marking, for DCTCP (RFC 8257), as a policy: it sets no windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import FRAME
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.queue_policy import QueuePolicy, millionths
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class MarkParameters:
    """``threshold`` K in packets of 1514 bytes; ``fraction`` K as a part of the buffer (0: not so)."""

    threshold: int
    fraction: float


class Mark(QueuePolicy):
    """Step marking, for DCTCP (RFC 8257)."""

    name: ClassVar[str] = "mark"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "mark",
            "threshold",
            MarkLaw.usual("mark_bytes") // FRAME,
            "packets",
            "K: a packet that would make the queue longer, in full frames of 1514 bytes, is marked if it is "
            "ECN-capable. Raise it where DCTCP's flows do not fill the link.",
            1,
            100_000,
        ),
        Setting(
            "mark",
            "fraction",
            0.0,
            "",
            "K as a fraction of the buffer, in place of threshold (0: threshold counts). Set it where "
            "buffers differ; FairSwitch's card has 0.25.",
            0,
            1,
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(MarkParameters, parameters)

    def spec(self) -> MarkLaw:
        """The queue law of every port."""
        p = self.parameters
        return MarkLaw(mark_bytes=p.threshold * FRAME, mark_ppm=millionths(p.fraction))
