"""When each direction of a link was last heard, and which links are silent.

Pure; times in seconds of one clock. A port that goes down ends its link at once, see
:mod:`~fairq_ryu.fabric.topology.graph`. A link whose ports stay up is lost by silence, and only if the
silence can have no other reason:

1. No discovery frame has come through it in either direction for :data:`TIMEOUT` periods.
2. Both of its bridges do pass frames on: each has received a steady series of them through another port.

If frames are missing because the controller, a bridge or the connection between them has too much to do, all
links of a bridge fall silent together, and none is lost. A link that is the only one of a bridge is not lost
by silence: there is no other path that could be used instead. A direction whose other direction was never
heard carries no traffic, and is forgotten after the same time.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection

from fairq_ryu.model import PortKey

TIMEOUT = 11
"""A link is silent after this many periods without a discovery frame."""
# A direction is steady if this many frames have come in this many periods. If a meter or a queue lets pass
# one frame of two by chance, one series of five is steady, but no link is silent for so long.
_STEADY_FRAMES = 8
_STEADY_PERIODS = 12

DirectedLink = tuple[PortKey, PortKey]
"""A direction of a link: the port through which frames leave, and that through which they arrive."""


class LinkWatch:
    """All directions that were heard, with the times of their last frames."""

    def __init__(self) -> None:
        self._heard: dict[DirectedLink, deque[float]] = {}

    def __len__(self) -> int:
        return len(self._heard)

    def heard(self, link: DirectedLink, now: float) -> None:
        """A discovery frame has come through this direction of a link."""
        times = self._heard.get(link)
        if times is None:
            times = self._heard[link] = deque(maxlen=_STEADY_FRAMES)
        times.append(now)

    def silent(self, links: Collection[DirectedLink], period: float, now: float) -> list[DirectedLink]:
        """The directions of ``links`` that are lost by silence; all others than ``links`` are forgotten.
        ``period``: of the discovery frames of a port.
        """
        self._heard = {link: times for link, times in self._heard.items() if link in links}
        quiet = {link for link in links if self.quiet(link, TIMEOUT * period, now)}
        if not quiet:
            return []
        steady: defaultdict[int, set[PortKey]] = defaultdict(set)
        for (_, target), times in self._heard.items():
            if len(times) == _STEADY_FRAMES and now - times[0] <= _STEADY_PERIODS * period:
                steady[target.dpid].add(target)
        return sorted(
            (source, target)
            for source, target in quiet
            if (target, source) not in links
            or ((target, source) in quiet and all(steady[end.dpid] - {end} for end in (source, target)))
        )

    def quiet(self, link: DirectedLink, timeout: float, now: float) -> bool:
        """Whether a direction has not been heard for ``timeout`` seconds."""
        times = self._heard.get(link)
        return times is None or now - times[-1] > timeout
