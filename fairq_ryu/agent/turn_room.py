"""Whether a port has room for the first window of one more new connection: the twin of ``bpf/laws/turns.h``.

Pure: time is an argument, in ns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

_HEADERS, _FEW = 66, 4
# Incomplete handshakes are forgotten after this time, as in ``bpf/laws/opening.h``.
UNPROVEN_NS = 10_000_000_000


class Room(NamedTuple):
    """Whether a port has room for the first window of one more flow: ``fq_room`` of ``layout.h``, in bytes of
    the queue except ``flows``, ``half_open`` and ``allowance``.
    """

    limit: int
    backlog: int
    flows: int
    frame: int
    floor: int
    first: int
    expected: int
    half_open: int
    allowance: int

    @property
    def flooded(self) -> bool:
        """Whether so many handshakes are incomplete that nobody waits, as ``turns_flooded()``."""
        return self.half_open >= self.allowance

    @property
    def is_empty(self) -> bool:
        """Whether so little is under way that nobody waits, however small the buffer."""
        return self.flows * self.frame + self.expected < _FEW * self.frame

    @property
    def has_room(self) -> bool:
        """As ``turns_have_room()``: the same integers."""
        if self.flooded:
            return True
        if self.is_empty:
            return True
        return max(self.backlog + self.expected, self.flows * self.floor) + self.first <= self.limit


def frame_of(segment: int) -> int:
    """The bytes that a segment takes in the queue."""
    return segment + _HEADERS


def still_expected(expected: int, earlier: int, limit: int, age_ns: int, hold_ns: int) -> int:
    """The first windows, bytes, that may not have come yet: those ``expected`` in the last ``age_ns``, and
    those of the ``hold_ns`` before, ``earlier``; at most ``limit``. As ``turns_expected()``.
    """
    age_ns = max(age_ns, 0)
    if age_ns >= 2 * hold_ns:
        return 0
    return expected if age_ns >= hold_ns else min(expected + earlier, limit)


def half_open(begun: int, begun_ns: int, proven: int, now_ns: int) -> int:
    """Of the handshakes that have had their turn since ``begun_ns``, those that are not complete: as
    ``turns_half_open()``. ``proven`` were completed since then.
    """
    return 0 if now_ns - begun_ns >= UNPROVEN_NS else max(begun - max(proven, 0), 0)


@dataclass(slots=True)
class FirstWindows:
    """The first windows, bytes, of connections whose windows were opened, as far as they may not have come
    yet: the twin of ``turns_admit()`` for those of which the eBPF program does not know.
    """

    began_ns: int = 0
    expected: int = 0
    earlier: int = 0

    def add(self, first: int, hold_ns: int, limit: int, now_ns: int) -> None:
        """One more is expected for ``hold_ns`` at least; more than ``limit`` are never expected."""
        age = max(now_ns - self.began_ns, 0)
        if age >= 2 * hold_ns:
            self.began_ns, self.expected, self.earlier = now_ns, 0, 0
        elif age >= hold_ns:
            self.began_ns, self.expected, self.earlier = self.began_ns + hold_ns, 0, self.expected
        self.expected = min(self.expected + first, limit)

    def still_expected(self, hold_ns: int, limit: int, now_ns: int) -> int:
        """Those that may not have come yet, bytes."""
        return still_expected(self.expected, self.earlier, limit, now_ns - self.began_ns, hold_ns)
