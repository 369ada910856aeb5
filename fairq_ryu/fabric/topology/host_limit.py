"""How many new hosts one port may bring to the controller: a token bucket for each port.

Times in seconds of one clock.
"""

from __future__ import annotations

from fairq_ryu.model import PortKey

# When a link to a foreign switch comes up, its hosts all send at about the same time: 1,000 of them may be
# learned at once. Beyond that, a hundred a second costs each bridge about 200 rules a second, which it can
# install beside its traffic, and the hosts of a large segment are still known within minutes.
BURST = 1000
RATE = 100


class HostLimit:
    """The new hosts of all ports: what one port brings takes nothing from another. ``put_aside``: the frames
    whose hosts were not learned because of the limit.
    """

    def __init__(self) -> None:
        self.put_aside = 0
        # Tokens of each port, and when it had them; a port that is not here has a full bucket.
        self._buckets: dict[PortKey, tuple[float, float]] = {}
        self._cleared_at = 0.0

    def admits(self, port: PortKey, now: float) -> bool:
        """Whether a new host at this port may be learned now; it is counted then."""
        if now - self._cleared_at >= BURST / RATE:
            # So only ports that have brought a new host in the time of two full buckets are kept.
            self._cleared_at = now
            full = [each for each in self._buckets if self._tokens(each, now) == BURST]
            for each in full:
                del self._buckets[each]
        tokens = self._tokens(port, now)
        if tokens < 1:
            self.put_aside += 1
            return False
        self._buckets[port] = tokens - 1, now
        return True

    def _tokens(self, port: PortKey, now: float) -> float:
        tokens, since = self._buckets.get(port, (BURST, now))
        return min(BURST, tokens + (now - since) * RATE)
