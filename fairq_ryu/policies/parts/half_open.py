"""Who opens connections that nobody answers: so that a flood of SYNs does not count for more than it is."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping

from fairq_ryu.model import FlowInfo, FlowKey, FlowProgress

# A connection that has not been answered by now (seconds) will not be: hosts give up their half of it.
FORGET_AFTER = 10.0
# So many allowances are kept in mind at once; openers beyond have none.
_ALLOWANCES = 64

# Who has been answered is asked for no more often than this, seconds, if nothing else depends on it: a switch
# that is being flooded has other things to do.
ASK_AGAIN = 0.25


class Openers:
    """The flows of a port that began lately and are not established yet, by who opened their connection: the
    port by which its first SYN came into the network (addresses may be made up), or else the sender.

    ``allowance``: so many unanswered flows of one opener count; those that it opens beyond that do not,
    until some are answered, end, or are forgotten. Memory is bounded by 64 allowances in all.
    """

    def __init__(self, allowance: int) -> None:
        self.allowance = allowance
        self._unanswered: OrderedDict[FlowKey, tuple[Hashable, float]] = OrderedDict()
        self._by_opener: Counter[Hashable] = Counter()

    def __len__(self) -> int:
        return len(self._unanswered)

    def started(self, flow: FlowInfo, now: float) -> bool:
        """A flow has started. Does it count?"""
        self.forget(now)
        opener: Hashable = flow.opener or flow.key.src
        full = len(self._unanswered) >= _ALLOWANCES * self.allowance
        if full or self._by_opener[opener] >= self.allowance or flow.key in self._unanswered:
            return False
        self._unanswered[flow.key] = (opener, now)
        self._by_opener[opener] += 1
        return True

    def over(self, flow: FlowKey) -> None:
        """A flow is answered, or has ended. One that did not count changes nothing."""
        found = self._unanswered.pop(flow, None)
        if found is not None:
            self._release(found[0])

    def settled(self) -> None:
        """The flows that were told of so far are older than the law: they use up nobody's allowance."""
        self._unanswered.clear()
        self._by_opener.clear()

    def progressed(self, flows: Mapping[FlowKey, FlowProgress], now: float) -> None:
        """What the switch says of flows: those that are established are answered."""
        for flow in [flow for flow in self._unanswered if flow in flows and flows[flow].established]:
            self.over(flow)
        self.forget(now)

    def forget(self, now: float) -> None:
        """Forget those that will not be answered any more."""
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
