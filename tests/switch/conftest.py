"""A switch that consists of its eBPF programs: veth interfaces as ports, in their own network namespace."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.switch.rig import Switch, loaded, namespace

ROOTLESS = ("test_layout",)
# Tests of programs that the kernel may fail to call for a packet. While a process attaches a program to a
# tracepoint, the kernel calls none there for about 10 ms, and other tests start such processes. One kernel
# also leaves out programs in process 1 (docs/policies/peers.md). In production the next packet corrects a
# count, but a test of a single packet fails. So these tests are repeated; a program that is wrong fails each
# time.
MISSED_CALLS = pytest.mark.flaky(reruns=2)
COUNTED_BY_KERNEL = tuple(
    f"test_{name}"
    for name in (
        *("congestion", "host_controls", "injection", "missed_events", "queue", "queue_laws", "taildrop"),
        "tx_queues",
    )
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.path).startswith(here) and item.path.stem not in ROOTLESS:
            item.add_marker(pytest.mark.root)
            if item.path.stem in COUNTED_BY_KERNEL:
                item.add_marker(MISSED_CALLS)


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
