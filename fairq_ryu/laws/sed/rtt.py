"""The mean round-trip time of a port's flows with empty queues, from their handshakes."""

from __future__ import annotations

# Weight of a new sample (RFC 6298 section 2, alpha), and of one that is lower than the mean. Lower samples
# weigh more, because a slow handshake has mostly waited in a queue that no sample has shown.
_GAIN = 1 / 8
_GAIN_DOWN = 1 / 2


class MeanRtt:
    """Smoothed mean of one port, seconds. ``value`` is ``fallback`` until the first sample."""

    def __init__(self, fallback: float) -> None:
        self.fallback = fallback
        self.value = fallback
        self.known = False

    def sample(self, rtt: float, queueing: float) -> None:
        """A handshake took ``rtt`` seconds, of which it may have waited ``queueing`` in the port's queue.

        The wait is subtracted: otherwise the total window would grow with the queue that it causes. The
        result is not less than ``fallback``, because the handshake may have met a shorter queue.
        """
        bare = max(rtt - queueing, min(rtt, self.fallback))
        gain = _GAIN if bare > self.value else _GAIN_DOWN
        self.value = bare if not self.known else self.value + gain * (bare - self.value)
        self.known = True
