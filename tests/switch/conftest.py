"""A switch that consists of its eBPF programs: veth interfaces as ports, in their own network namespace."""

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
    """The module's tests run in their own network namespace, which is removed afterwards."""
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
    """Three ports, no rules, no known flows, all counters 0."""
    loaded_switch.reset()
    return loaded_switch
