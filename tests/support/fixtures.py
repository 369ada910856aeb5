"""Fixtures for the tests that build a network."""

import pytest

from mininet_topos.switch import remove_leftover
from tests.support import lab as lab_module
from tests.support.ofp import StubController
from tests.support.traces import traces


@pytest.fixture
def nothing_left():
    remove_leftover("s1")
    before = traces({"s1"})
    if "bridge s1" in before:
        pytest.fail("bridge s1 is in use on this machine: remove it, or end what uses it")
    yield
    # The kernel and ending programs need a moment.
    lab_module.until(lambda: traces({"s1"}) <= before, 5)
    left = traces({"s1"}) - before
    assert not left, sorted(left)


@pytest.fixture
def lab(tmp_path, nothing_left):
    made = lab_module.Lab(tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def stub():
    controller = StubController()
    yield controller
    controller.shut()
