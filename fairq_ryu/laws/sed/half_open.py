"""Half-open connections, limited for each opener, so that a SYN flood does not count as that many flows."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping

from fairq_ryu.model import FlowInfo, FlowKey, FlowProgress

# Seconds until an unanswered connection is forgotten, as in the flow table and in the agent: Linux has
# retransmitted its SYN after 1, 3 and 7 s by then.
FORGET_AFTER = 10.0
# Limit of half-open flows of all openers together, as a multiple of the allowance.
_MAX_ALLOWANCES = 64

# Minimum time between two requests for progress that only this limiter needs, seconds: a flooded switch has
# other work.
ASK_AGAIN = 0.25


class HalfOpenLimiter:
    """The half-open flows of one port, by opener: the port through which the first SYN of the connection
    entered the network (addresses may be forged), or else the sender.

    ``allowance``: maximum number of half-open flows of one opener that count. Further ones do not count
    until some are answered, end, or are forgotten. At most 64 x ``allowance`` flows are stored.
    """

    def __init__(self, allowance: int) -> None:
        self.allowance = allowance
        self._unanswered: OrderedDict[FlowKey, tuple[Hashable, float]] = OrderedDict()
        self._by_opener: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        return len(self._unanswered)

    def started(self, flow: FlowInfo, now: float) -> bool:
        """A flow has started. Returns whether it counts."""
        self.forget(now)
        opener: Hashable = flow.opener or flow.key.src
        full = len(self._unanswered) >= _MAX_ALLOWANCES * self.allowance
        if full or self._by_opener[opener] >= self.allowance or flow.key in self._unanswered:
            return False
        self._unanswered[flow.key] = (opener, now)
        self._by_opener[opener] += 1
        return True

    def remove(self, flow: FlowKey) -> None:
        """A flow is answered, or has ended. A flow that is not stored changes nothing."""
        found = self._unanswered.pop(flow, None)
        if found is not None:
            self._release(found[0])

    def settled(self) -> None:
        """The flows so far are older than the law: they do not use any allowance."""
        self._unanswered.clear()
        self._by_opener.clear()

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> None:
        """The switch has reported progress: established flows are answered."""
        for flow in [flow for flow in self._unanswered if flow in flows and flows[flow].established]:
            self.remove(flow)
        self.forget(now)

    def forget(self, now: float) -> None:
        """Forget flows that have been half-open for `FORGET_AFTER` seconds."""
        while self._unanswered:
            flow, (opener, since) = next(iter(self._unanswered.items()))
            if now - since < FORGET_AFTER:
                return
            del self._unanswered[flow]
            self._release(opener)

    def _release(self, opener: Hashable) -> None:
        self._by_opener[opener] -= 1
        if not self._by_opener[opener]:
            del self._by_opener[opener]
