"""Stochastic fair Blue (``laws/queue_sfb.h``, which says what is the kernel's)."""

from __future__ import annotations

from collections.abc import Iterator

from fairq_ryu.policies.queue_laws.law import NS_PER_S, Packet, QueueLaw, QueueLawParameters, Verdict

LEVELS, WIDTH, HASH_BITS = 8, 16, 4
MOST_P = 65535
INCREMENT, DECREMENT = 66, 11
PENALTY_RATE, PENALTY_BURST, PENALTY_LONGEST = 10, 20, 10 * NS_PER_S


class Sfb(QueueLaw):
    """Its queue calls :meth:`entered` and :meth:`left` for each packet that passed or was marked, with the
    number of its segments.
    """

    def __init__(self, parameters: QueueLawParameters) -> None:
        super().__init__(parameters)
        self.tokens = self.filled_ns = 0
        self.queued = [0] * (LEVELS * WIDTH)
        self.p_q16 = [0] * (LEVELS * WIDTH)

    def entered(self, hash_: int, segments: int = 1) -> None:
        """A packet of a flow with this hash has entered the queue."""
        for place in bins(hash_):
            self.queued[place] += segments

    def left(self, hash_: int, segments: int = 1) -> None:
        """... has left it."""
        for place in bins(hash_):
            self.queued[place] = max(self.queued[place] - segments, 0)

    def _judge(self, packet: Packet) -> Verdict:
        p = self.parameters
        for place in bins(packet.hash):
            if not packet.backlog:
                self.queued[place] = 0
            if not self.queued[place]:
                self.p_q16[place] = max(self.p_q16[place] - DECREMENT * packet.segments, 0)
            elif self.queued[place] >= p.bin_packets:
                self.p_q16[place] = min(self.p_q16[place] + INCREMENT * packet.segments, MOST_P)
        least = min(self.p_q16[place] for place in bins(packet.hash))
        random = packet.random & MOST_P
        if min(self.queued[place] for place in bins(packet.hash)) >= p.bin_most:
            return Verdict.DROP
        if least >= MOST_P:
            return Verdict.PASS if self._pays(packet.segments, packet.now_ns) else Verdict.DROP
        if random >= least:
            return Verdict.PASS
        if least > MOST_P // 2 and random < (least - MOST_P // 2) * 2:
            return Verdict.DROP
        return self._signal(packet)

    def _pays(self, segments: int, now_ns: int) -> bool:
        """Whether a packet of a flow that does not respond may pass."""
        if not self.tokens:
            age = min(max(now_ns - self.filled_ns, 0), PENALTY_LONGEST)
            self.tokens = min(age * PENALTY_RATE // NS_PER_S, PENALTY_BURST)
            if not self.tokens:
                return False
            self.filled_ns = now_ns
        self.tokens = max(self.tokens - segments, 0)
        return True


def bins(hash_: int) -> Iterator[int]:
    """The bins of a hash, one in each level."""
    for level in range(LEVELS):
        yield level * WIDTH + (hash_ >> level * HASH_BITS) % WIDTH
