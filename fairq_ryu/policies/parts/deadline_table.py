"""The GIF table of a port (global information of flows): remaining bytes and deadline of each flow.

Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks" (Tsinghua Science
and Technology 21(5), 2016), section 3.5. Rows are in the order of the earliest deadline (EDF). Pure.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fairq_ryu.model import Announcement, FlowInfo, FlowKey, FlowProgress


@dataclass(slots=True)
class GifEntry:
    """A flow in the table. Times in seconds of the clock of ``now``, sizes in bytes.

    ``announced_at``: when ``deadline`` was announced; ``progressed_at``: when the switch last reported more
    bytes sent, or the end of the handshake; ``progress`` None: the switch has not reported the flow yet.
    """

    flow: FlowInfo
    start: float
    size: int | None = None
    deadline: float | None = None
    announced_at: float = 0.0
    progress: FlowProgress | None = None
    progressed_at: float = -math.inf

    @property
    def answered(self) -> bool:
        """Whether the switch has reported that the handshake is complete, or that bytes were sent."""
        return self.progress is not None and (self.progress.established or self.progress.sent > 0)

    @property
    def remaining(self) -> int | None:
        """Bytes that the receiver has not acknowledged; None: the size is not known."""
        if self.size is None:
            return None
        return max(0, self.size - (self.progress.acked if self.progress else 0))

    def urgent(self, now: float) -> bool:
        """Whether it has bytes to send and a deadline in the future."""
        return self.deadline is not None and self.deadline > now and bool(self.remaining)

    def missed(self, now: float) -> bool:
        """Whether its deadline has passed and it still has bytes to send."""
        return self.deadline is not None and self.deadline <= now and bool(self.remaining)

    def state(self, now: float) -> str | None:
        """State of its deadline, as in ``/v1/gif``; None: it has none. ``ended``: it is complete, but whether
        that was before its deadline is not known.
        """
        if self.deadline is None:
            return None
        if self.remaining == 0:
            return "met" if self.deadline >= now else "ended"
        return "open" if self.deadline > now else "missed"


class GifRow(NamedTuple):
    """A row for display: ``deadline`` and ``start`` by the table's clock, ``remaining_time`` in seconds
    (negative: missed), sizes in bytes; None where nothing was announced. ``priority`` 1 is served first.
    """

    flow: FlowKey
    src: str
    dst: str
    start: float
    deadline: float | None
    size: int | None
    remaining_time: float | None
    remaining_size: int | None
    priority: int


class GifTable:
    """All flows of one port."""

    def __init__(self) -> None:
        self._entries: dict[FlowKey, GifEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[GifEntry]:
        return iter(self._entries.values())

    def get(self, flow: FlowKey) -> GifEntry | None:
        """A flow's entry."""
        return self._entries.get(flow)

    def add(self, flow: FlowInfo, now: float, announcement: Announcement | None = None) -> GifEntry:
        """A flow has started at ``now``, with its announcement if that came first."""
        entry = self._entries[flow.key] = GifEntry(flow, now)
        if announcement is not None:
            self.announce(flow.key, announcement, now)
        return entry

    def remove(self, flow: FlowKey) -> None:
        """A flow has ended. An unknown flow changes nothing."""
        self._entries.pop(flow, None)

    def announce(self, flow: FlowKey, announcement: Announcement | None, now: float) -> None:
        """An announcement of a flow; None withdraws it. An unknown flow changes nothing."""
        entry = self._entries.get(flow)
        if entry is not None:
            entry.size, entry.deadline, _ = announcement or Announcement(None, None)
            entry.announced_at = now

    def progressed(self, flow: FlowKey, progress: FlowProgress, now: float) -> None:
        """The progress of a flow, as the switch reports it. An unknown flow changes nothing."""
        entry = self._entries.get(flow)
        if entry is None:
            return
        before = entry.progress.sent if entry.progress is not None and entry.answered else None
        entry.progress = progress
        if entry.answered and progress.sent != before:
            entry.progressed_at = now

    def ordered(self, now: float, limit: int | None = None) -> list[GifEntry]:
        """Flows that must still meet a deadline, the earliest first, then all others by their start. Ties are
        broken by the flow's key, so that the order is stable. ``limit``: maximum number of entries.
        """

        def rank(entry: GifEntry) -> tuple[bool, float, FlowKey]:
            urgent = entry.urgent(now)
            time = entry.deadline if urgent and entry.deadline is not None else entry.start
            return not urgent, time, entry.flow.key

        entries = self._entries.values()
        if limit is None or limit >= len(entries):
            return sorted(entries, key=rank)
        return heapq.nsmallest(limit, entries, key=rank)

    def rows(self, now: float, first: int = 0, end: int | None = None) -> list[GifRow]:
        """The rows ``first`` up to, but without, ``end`` (None: all), in the order of :meth:`ordered`."""
        return [
            GifRow(
                flow=entry.flow.key,
                src=entry.flow.key.src,
                dst=entry.flow.key.dst,
                start=entry.start,
                deadline=entry.deadline,
                size=entry.size,
                remaining_time=None if entry.deadline is None else entry.deadline - now,
                remaining_size=entry.remaining,
                priority=priority,
            )
            for priority, entry in enumerate(self.ordered(now, end)[first:], first + 1)
        ]
