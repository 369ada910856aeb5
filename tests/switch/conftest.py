"""A switch with nothing but its eBPF: veth interfaces as ports, in a network namespace of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.switch.rig import Switch, loaded, namespace

ROOTLESS = ("test_layout",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here) and item.path.stem not in ROOTLESS:
            item.add_marker(pytest.mark.root)


@pytest.fixture(scope="module")
def own_namespace(machine: str) -> Iterator[None]:
    """The module's tests run in a network namespace of their own, which goes with them."""
    if machine:
        pytest.fail(f"these tests need {machine}", pytrace=False)
    with namespace():
        yield


@pytest.fixture(scope="module")
def loaded_switch(own_namespace: None) -> Iterator[Switch]:
    with loaded() as switch:
        yield switch


@pytest.fixture
def switch(loaded_switch: Switch) -> Switch:
    """Three ports, no rule, no flow known, all counters 0."""
    loaded_switch.reset()
    return loaded_switch
