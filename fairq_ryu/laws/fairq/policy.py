"""FairQ: equal windows for all flows of a port, adjusted so that its queue stays at a target.

Abdelmoniem and Bensaou, "FairQ: Fair and Fast Rate Allocation in Data Centers" (earlier RWNDQ,
CloudNet 2015), Algorithm 1, in its pool form: the paper's window per flow ``w`` times the number of
flows ``n`` is one pool of bytes, and the switch divides it at every ACK. A flow that comes or goes
leaves the pool as it is, which is the paper's ``w * n / (n + 1)``.

The switch runs the law: ``law.h`` and ``agent/bpf/laws/pool.h``, which say what else differs from the
paper. Algorithm 1 line by line, in the controller, is :mod:`fairq_ryu.laws.fairq_paper`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import BASE_RTT, TURNS, target_queue, typed_parameters
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class FairQParameters:
    """``base_rtt`` in s, ``alpha`` a fraction of the buffer."""

    alpha: float
    base_rtt: float
    turns: str


class FairQ:
    """The FairQ policy."""

    name: ClassVar[str] = "fairq"
    interval: ClassVar[float] = LOOK_INTERVAL
    settings: ClassVar[tuple[Setting, ...]] = (
        target_queue("fairq", 0.25),
        BASE_RTT,
        TURNS,
    )

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(FairQParameters, parameters)

    def switch_law(self, port: PortKey) -> FairQLaw:
        """The law for one port."""
        p = self.parameters
        return FairQLaw(
            turns=p.turns == "on",
            base_rtt_us=round(p.base_rtt * 1e6),
            target_ppm=round(p.alpha * 1e6),
        )
