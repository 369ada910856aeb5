"""The mean round-trip time of a port's flows with empty queues, from their handshakes."""

from __future__ import annotations

# The weight of a new sample (RFC 6298 section 2, alpha); of one that is lower, because what makes handshakes
# slow is mostly a queue that was not seen.
_GAIN = 1 / 8
_GAIN_DOWN = 1 / 2


class MeanRtt:
    """Of one port, smoothed; seconds. ``value`` is ``fallback`` until a flow has shown its own."""

    def __init__(self, fallback: float) -> None:
        self.fallback = fallback
        self.value = fallback
        self.known = False

    def sample(self, rtt: float, queueing: float) -> None:
        """A handshake took ``rtt``, of which it may have waited ``queueing`` in the port's queue.

        That wait is taken off, or the total window would grow with the queue that it makes; but the rest is
        not less than ``fallback``, because the handshake may have met a shorter queue.
        """
        bare = max(rtt - queueing, min(rtt, self.fallback))
        gain = _GAIN if bare > self.value else _GAIN_DOWN
        self.value = bare if not self.known else self.value + gain * (bare - self.value)
        self.known = True
