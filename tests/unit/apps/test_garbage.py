"""The collector looks at young objects only, until it is told to look at all."""

from __future__ import annotations

import gc
import weakref
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


def test_many_new_objects_cause_no_full_collection(collections):
    kept = [[number] for number in range(300_000)]
    assert set(collections) == {0, 1} and len(kept) == 300_000
    garbage.collect()
    assert collections[-1] == 2


def test_young_objects_are_collected_also_while_as_many_are_freed_as_made(collections):
    young = garbage.Young(clock=lambda: 0.0)
    for _ in range(3):
        young.collect()
    assert collections == [1, 1, 1] and gc.get_count()[1] == 0


class Slow:
    """A clock with which a collection takes 2 ms."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.002
        return self.now


def test_long_collections_that_find_nothing_are_rare(collections):
    young = garbage.Young(clock=Slow())
    young.collect()  # what this test itself has left
    del collections[:]
    for _ in range(150):
        young.collect()
    assert len(collections) == 3


def test_while_there_is_garbage_each_collection_is_made(collections):
    young = garbage.Young(clock=Slow())
    for _ in range(20):
        pair: list[list[object]] = [[], []]
        pair[0].append(pair)
        del pair
        young.collect()
    assert len(collections) == 20


def test_collections_after_a_request_are_made(collections):
    answered = [0]
    young = garbage.Young(lambda: answered[0], Slow())
    gc.collect()
    young.collect()  # finds nothing: the next are left out
    del collections[:]
    young.collect()
    answered[0] = 1
    for _ in range(20):
        young.collect()
    assert len(collections) == 5


def test_what_was_put_aside_is_collected_with_everything(collections):
    young = garbage.Young(clock=Slow())
    gc.collect()
    young.collect()  # finds nothing: the next are left out
    kept = Kept()
    kept.itself = kept
    gone = weakref.ref(kept)
    del kept
    young.collect()
    gc.collect()
    assert gone() is not None, "it was put aside"
    garbage.collect()
    assert gone() is None


class Kept:
    """An object that refers to itself."""

    itself: object = None


def test_cycles_of_young_objects_are_collected(collections):
    for _ in range(100_000):
        pair = [[], []]
        pair[0].append(pair)
    assert gc.get_count()[0] < 5000
