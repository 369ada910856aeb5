"""CoDel where packets enter the queue (``laws/queue_codel.h``, which says what is the kernel's)."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.policies.queue_laws.law import (
    FULL_FRAME,
    Packet,
    QueueLaw,
    QueueLawParameters,
    Verdict,
    queueing_delay,
)

MOST_INV = 0xFFFF0000


@dataclass(slots=True)
class CoDelState:
    """``fq_codel``: of a port or of a flow."""

    first_above_ns: int = 0
    drop_next_ns: int = 0
    count: int = 0
    last_count: int = 0
    inv_sqrt_q32: int = 0
    dropping: int = 0

    def is_due(self, below: bool, now_ns: int, interval_ns: int) -> bool:
        """Whether the delay has been above the target for an interval."""
        if below:
            self.first_above_ns = 0
            return False
        if not self.first_above_ns:
            self.first_above_ns = now_ns + interval_ns
            return False
        return now_ns >= self.first_above_ns

    def drops(self, due: bool, below: bool, now_ns: int, interval_ns: int) -> bool:
        """Whether a packet is to be dropped. ``due``: its flow, or queue, has been above the target for an
        interval; ``below``: it is not above the target, which ends the dropping state.
        """
        if self.dropping:
            if below:
                self.dropping = 0
                return False
            if not due or now_ns < self.drop_next_ns:
                return False
            self.count += 1
            self._newton_step()
            self.drop_next_ns += self._gap(interval_ns)
            return True
        if not due:
            return False
        self.dropping = 1
        delta = self.count - self.last_count
        if delta > 1 and max(now_ns - self.drop_next_ns, 0) < 16 * interval_ns:
            self.count = delta
            self._newton_step()
        else:
            self.count, self.inv_sqrt_q32 = 1, MOST_INV
        self.last_count = self.count
        self.drop_next_ns = now_ns + self._gap(interval_ns)
        return True

    def _newton_step(self) -> None:
        inv = self.inv_sqrt_q32
        value = (3 << 32) - self.count * (inv * inv >> 32)
        self.inv_sqrt_q32 = ((value >> 2) * inv >> 31) & MOST_INV

    def _gap(self, interval_ns: int) -> int:
        return interval_ns * self.inv_sqrt_q32 >> 32


class CoDel(QueueLaw):
    """One CoDel for the whole port."""

    def __init__(self, parameters: QueueLawParameters) -> None:
        super().__init__(parameters)
        self.codel = CoDelState()

    def _judge(self, packet: Packet) -> Verdict:
        drop = drops_of_port(self.codel, self.parameters, packet)
        return self._signal(packet) if drop else Verdict.PASS


def drops_of_port(
    codel: CoDelState, parameters: QueueLawParameters, packet: Packet, spared: bool = False
) -> bool:
    """Whether CoDel of the port drops this packet. ``spared``: a drop that is due waits for another one."""
    below = is_below(parameters, packet, parameters.target_ns)
    due = codel.is_due(below, packet.now_ns, parameters.interval_ns)
    return codel.drops(due and not spared, below, packet.now_ns, parameters.interval_ns)


def is_below(parameters: QueueLawParameters, packet: Packet, target_ns: int) -> bool:
    """Whether the delay counts as below a target: with the least queue since the last packet."""
    least = min(packet.backlog, packet.low)
    return least <= FULL_FRAME or queueing_delay(parameters, least) < target_ns
