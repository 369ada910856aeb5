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
