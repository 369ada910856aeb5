"""Counters of the controller itself: plain numbers, cheap enough for loops that run every 2 ms.

Pure; times in seconds. Independent of Prometheus: :mod:`fairq_ryu.metrics` reads them on each scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import accumulate

from fairq_ryu.control.reports.faults import Faults

DELAYS = (0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Bounds of histograms of delays, seconds: the control loop's interval of 2 ms is in the middle."""
ROUND_TRIPS = (0.00025, 0.0005, 0.001, 0.002, 0.005, 0.02, 0.1, 0.5)
"""Bounds of round trips to agents, seconds. Fewer, because each agent has them."""
PACKET_INS = ("tcp", "held", "arp", "source", "lldp", "loss", "other")
"""Copies of SYN, FIN and RST; held SYNs; broadcast ARP requests; frames of unknown hosts; discovery frames;
packets that a queue has dropped, which agents send; and frames that are none of these, or cannot be parsed.
"""
DISCOVERY_IGNORED = ("foreign", "tag", "unknown", "reflected", "hosts", "taken")
"""Discovery frames that show no link: LLDP of others; without a valid tag, or too old; of a port that is not
known; back at the port through which it left; at or from a port with hosts; and at or from a port whose link
works.
"""
# Number of the last delays that are kept: at an interval of 2 ms those of 2 s.
_RECENT = 1024
# A peak is shown for this long, seconds, and twice as long at most.
PEAK_SHOWN = 15.0


class Histogram:
    """For each of some ascending bounds, the number of values that were not larger."""

    __slots__ = ("_counts", "bounds", "sum")

    def __init__(self, bounds: Sequence[float] = DELAYS) -> None:
        self.bounds = tuple(bounds)
        self.sum = 0.0
        self._counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self._counts)

    @property
    def cumulative(self) -> Iterator[int]:
        """The number of values up to each bound; the last number is of all values."""
        return accumulate(self._counts)


class Delays:
    """Delays: a histogram of all, and the last ones."""

    __slots__ = ("_recent", "histogram")

    def __init__(self) -> None:
        self.histogram = Histogram()
        self._recent: deque[float] = deque(maxlen=_RECENT)

    def observe(self, value: float) -> None:
        """Count a delay."""
        self.histogram.observe(value)
        self._recent.append(value)

    def recent(self, part: float) -> float | None:
        """The quantile ``part`` (0 to 1) of the last thousand delays; None: there were none."""
        ordered = sorted(self._recent)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None


class Peak:
    """The largest value of the last :data:`PEAK_SHOWN` seconds, or of up to twice as long. Values come much
    more often than they are shown: so no client misses a peak between two requests.
    """

    __slots__ = ("_before", "_now", "_since")

    def __init__(self, now: float) -> None:
        self._since = now
        self._now = self._before = 0

    def note(self, value: int, now: float) -> None:
        """A new value."""
        if now - self._since >= PEAK_SHOWN:
            self._turn(now)
        if value > self._now:
            self._now = value

    def value(self, now: float) -> int:
        """The largest recent value."""
        if now - self._since >= PEAK_SHOWN:
            self._turn(now)
        return max(self._now, self._before)

    def _turn(self, now: float) -> None:
        # After a silence of two turns, both are old.
        self._before = self._now if now - self._since < 2 * PEAK_SHOWN else 0
        self._now, self._since = 0, now


class Counts:
    """Counters of the whole controller.

    ``packet_ins`` by kind (:data:`PACKET_INS`); ``loop_delay``: how much later than planned the loop that
    reads queues continued; ``refused``: messages that a ``bridge`` or an ``agent`` has refused;
    ``malformed``: messages of agents that could not be decoded; ``faults``: exceptions that nobody expected.
    """

    def __init__(self) -> None:
        self.packet_ins: Counter[str] = Counter(dict.fromkeys(PACKET_INS, 0))
        self.loop_delay = Delays()
        self.refused: Counter[str] = Counter({"bridge": 0, "agent": 0})
        self.malformed = 0
        self.faults = Faults()
