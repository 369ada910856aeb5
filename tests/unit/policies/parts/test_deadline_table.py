"""The GIF table: the remaining bytes of flows, and the order of service."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.model import Announcement, FlowKey, FlowProgress
from fairq_ryu.policies.parts.deadline_table import GifTable
from tests.support.fakes import info

FLOWS = [FlowKey(f"10.0.0.{n}", "10.0.1.1", 80, 1000) for n in range(1, 8)]


def progress(acked: int, sent: int | None = None, established: bool = True) -> FlowProgress:
    return FlowProgress(acked, acked if sent is None else sent, 0.001, established)


def table(*announcements: Announcement | None) -> GifTable:
    made = GifTable()
    for place, announcement in enumerate(announcements):
        made.add(info(FLOWS[place]), float(place), announcement)
    return made


def test_rows_are_in_edf_order_then_by_their_start():
    gif = table(None, Announcement(500, 9.0), Announcement(1000, 8.0), Announcement(700, None))
    gif.progressed(FLOWS[2], progress(400), 5.0)
    rows = gif.rows(5.0)
    assert [row.flow for row in rows] == [FLOWS[2], FLOWS[1], FLOWS[0], FLOWS[3]]
    assert [row.priority for row in rows] == [1, 2, 3, 4]
    assert rows[0] == (FLOWS[2], "10.0.0.3", "10.0.1.1", 2.0, 8.0, 1000, 3.0, 600, 1)
    assert [row.remaining_size for row in rows] == [600, 500, None, 700]
    assert [row.remaining_time for row in rows] == [3.0, 4.0, None, None]
    # A flow whose deadline has passed is not served any more, but shown.
    late = gif.rows(8.5)
    assert [row.flow for row in late] == [FLOWS[1], FLOWS[0], FLOWS[2], FLOWS[3]]
    assert late[2].remaining_time == -0.5


def test_a_slice_of_the_rows_equals_that_slice_of_all():
    gif = table(None, Announcement(500, 9.0), None, Announcement(700, None), Announcement(1, 7.0))
    rows = gif.rows(5.0)
    for first in range(6):
        for end in (*range(7), None):
            assert gif.rows(5.0, first, end) == rows[first:end]


def test_announcements_are_added_and_removed():
    gif = table(None)
    entry = gif.get(FLOWS[0])
    gif.announce(FLOWS[0], Announcement(100, 3.0), 1.0)
    assert (entry.size, entry.deadline, entry.announced_at) == (100, 3.0, 1.0)
    assert entry.urgent(2.9)
    assert not entry.missed(2.9)
    assert entry.missed(3.0)
    assert not entry.urgent(3.0)
    gif.announce(FLOWS[0], Announcement(None, 3.0), 1.0)
    assert not entry.urgent(2.0)
    assert not entry.missed(4.0)
    gif.announce(FLOWS[0], None, 2.0)
    assert (entry.size, entry.deadline) == (None, None)
    gif.announce(FLOWS[1], Announcement(1, 1.0), 2.0)  # not in the table
    gif.remove(FLOWS[1])
    gif.remove(FLOWS[0])
    assert len(gif) == 0
    assert gif.rows(5.0) == []


def test_acknowledged_bytes_are_not_remaining():
    gif = table(Announcement(1000, 9.0))
    entry = gif.get(FLOWS[0])
    for acked, remaining in ((0, 1000), (999, 1), (1000, 0), (5000, 0)):
        gif.progressed(FLOWS[0], progress(acked), 1.0)
        assert entry.remaining == remaining
    assert not entry.urgent(1.0)
    assert not entry.missed(99.0)
    gif.progressed(FLOWS[1], progress(1), 1.0)  # not in the table


def test_the_time_of_the_last_progress_of_a_flow():
    gif = table(None)
    entry = gif.get(FLOWS[0])
    gif.progressed(FLOWS[0], progress(0, 0, established=False), 1.0)
    assert not entry.answered
    assert entry.progressed_at < 0
    moves = []
    for at, sent in ((2.0, 0), (3.0, 0), (4.0, 10), (5.0, 10)):
        gif.progressed(FLOWS[0], progress(0, sent), at)
        moves.append(entry.progressed_at)
    assert entry.answered
    assert moves == [2.0, 2.0, 4.0, 4.0]


ANNOUNCEMENTS = st.builds(
    Announcement, st.none() | st.integers(1, 1000), st.none() | st.floats(0, 20, allow_nan=False)
)


@given(st.lists(st.none() | ANNOUNCEMENTS, max_size=7), st.floats(0, 20))
def test_the_order_is_edf_whatever_was_announced(announcements, now):
    rows = table(*announcements).rows(now)
    assert sorted(row.flow for row in rows) == sorted(FLOWS[: len(announcements)])
    urgent = [
        row
        for row in rows
        if row.deadline is not None and row.deadline > now and row.remaining_size is not None
    ]
    assert rows[: len(urgent)] == urgent
    assert [row.deadline for row in urgent] == sorted(row.deadline for row in urgent)
    rest = rows[len(urgent) :]
    assert [row.start for row in rest] == sorted(row.start for row in rest)
