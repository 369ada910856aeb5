"""The collector looks at young objects only, until it is told to look at all."""

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


def test_many_new_objects_cause_no_full_collection(collections):
    kept = [[number] for number in range(300_000)]
    assert set(collections) == {0, 1} and len(kept) == 300_000
    garbage.collect()
    assert collections[-1] == 2


def test_young_objects_are_collected_also_while_as_many_are_freed_as_made(collections):
    for _ in range(3):
        garbage.collect_young()
    assert collections == [1, 1, 1] and gc.get_count()[1] == 0


def test_cycles_of_young_objects_are_collected(collections):
    for _ in range(100_000):
        pair = [[], []]
        pair[0].append(pair)
    assert gc.get_count()[0] < 5000
