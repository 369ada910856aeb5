"""Fixtures for the tests that build a network."""

import contextlib

import pytest

from mininet_topos.switch import remove_leftover
from tests.support import lab as lab_module
from tests.support.ofp import StubController
from tests.support.traces import traces


@contextlib.contextmanager
def leaving_nothing():
    """What is made inside is gone at the end, or the test fails; so it does if s1 exists already."""
    remove_leftover("s1")
    before = traces({"s1"})
    if "bridge s1" in before:
        pytest.fail("bridge s1 is in use on this machine: remove it, or end what uses it")
    yield
    # The kernel and ending programs need a moment.
    lab_module.until(lambda: traces({"s1"}) <= before, 5)
    left = traces({"s1"}) - before
    assert not left, sorted(left)


@contextlib.contextmanager
def made_lab(folder):
    """A lab that is removed afterwards, with all that it made."""
    with leaving_nothing():
        made = lab_module.Lab(folder)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def nothing_left():
    with leaving_nothing():
        yield


@pytest.fixture
def lab(tmp_path):
    with made_lab(tmp_path) as made:
        yield made


@pytest.fixture
def stub():
    controller = StubController()
    yield controller
    controller.shut()
