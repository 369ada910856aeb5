"""The collector looks at young objects only, until the process has grown or a long time has passed."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fairq_ryu.apps import garbage


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generations that are collected."""
    before, found = gc.get_threshold(), []

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            found.append(about["generation"])

    gc.callbacks.append(note)
    garbage.configure()
    yield found
    gc.callbacks.remove(note)
    gc.set_threshold(*before)
    gc.unfreeze()


def test_many_new_objects_cause_no_full_collection(collections):
    kept = [[number] for number in range(300_000)]
    assert set(collections) == {0, 1} and len(kept) == 300_000
    garbage.FullCollections(clock=iter((0.0, garbage.LONGEST)).__next__).look()
    assert collections[-1] == 2


class Process:
    """A process of some size, at some time."""

    def __init__(self, size: int) -> None:
        self.size, self.now, self.made, self.freed = size, 0.0, 0, 0
        self.collections = garbage.FullCollections(lambda: self.size, lambda: self.now, self._collect)

    def _collect(self) -> None:
        self.made += 1
        self.size -= self.freed

    def look(self, size: int) -> int:
        """It has this size now. The number of collections so far."""
        self.size = size
        self.collections.look()
        return self.made


def test_a_process_that_has_grown_is_collected():
    small = Process(10 * garbage.GROWTH // 100)
    assert small.look(small.size + garbage.GROWTH - 1) == 0
    assert small.look(small.size + 1) == 1


def test_a_large_process_may_grow_by_a_part_of_its_size():
    size = 100 * garbage.GROWTH
    large, more = Process(size), int(garbage.PART * size)
    assert large.look(size + more - 1) == 0
    assert large.look(size + more) == 1


def test_what_it_has_after_a_collection_is_where_it_grows_from():
    """Whether memory was freed or not: a process that needs what it has is not collected again and again."""
    kept, garbage_only = Process(0), Process(0)
    garbage_only.freed = garbage.GROWTH
    assert [kept.look(garbage.GROWTH) for _ in range(3)] == [1, 1, 1]
    assert [garbage_only.look(garbage.GROWTH) for _ in range(3)] == [1, 2, 3]


def test_after_a_long_time_it_is_collected_all_the_same():
    idle = Process(garbage.GROWTH)
    idle.now = garbage.LONGEST - 1
    assert idle.look(idle.size) == 0
    idle.now += 1
    assert [idle.look(idle.size) for _ in range(2)] == [1, 1]


def test_a_size_that_cannot_be_read_is_no_growth():
    """As when no more files can be opened."""
    full = Process(garbage.GROWTH)
    assert [full.look(size) for size in (0, garbage.GROWTH, 2 * garbage.GROWTH)] == [0, 0, 1]


@pytest.mark.usefixtures("collections")
def test_what_was_there_before_is_not_collected():
    assert gc.get_freeze_count() > 0


def test_the_size_is_that_of_the_process():
    before = garbage.resident()
    kept = bytes(64 << 20).replace(b"\0", b"x")
    assert garbage.resident() - before >= len(kept)
