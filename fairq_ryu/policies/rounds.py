"""What a sender far from the switch has under way, in Python: the twin of ``agent/bpf/laws/round.h``."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.policies.switch_laws import MAX_POOL


@dataclass(slots=True)
class Round:
    """``fq_round`` of ``layout.h``: what ACKs have released in a round trip between switch and sender, which
    is under way although the switch does not see it (``laws/round.h``).
    """

    ns: int = 0
    acked: int = 0
    released: int = 0

    def bytes_released(self, acked: int, rtt_ns: int, base_rtt_ns: int, now_ns: int) -> int:
        """Bytes in the last round trip ``rtt_ns``, an eighth more for what a round measures too little; 0 if
        it is not longer than ``base_rtt_ns``. ``acked`` bytes have been acknowledged in all.
        """
        elapsed, passed = max(now_ns - self.ns, 0), max(acked - self.acked, 0)
        if rtt_ns <= base_rtt_ns:
            return 0
        if elapsed >= rtt_ns:
            passed = min(passed, MAX_POOL) * rtt_ns // elapsed
            self.released = min(passed + passed // 8, MAX_POOL) if self.ns else 0
            self.ns, self.acked = now_ns, acked
        return self.released
