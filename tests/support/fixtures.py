"""Fixtures for the tests that build a network."""

import contextlib

import pytest

from mininet_topos.switch import remove_leftover
from tests.support import lab as lab_module
from tests.support.kept import Kept
from tests.support.ofp import StubController
from tests.support.traces import traces


@contextlib.contextmanager
def leaving_nothing():
    """What is made inside is gone at the end, or the test fails; so it does if s1 exists already."""
    remove_leftover("s1")
    if "bridge s1" in traces({"s1"}):
        pytest.fail("bridge s1 is in use on this machine: remove it, or end what uses it")
    with leaving_no_more():
        yield


@contextlib.contextmanager
def leaving_no_more():
    """At the end there are no traces that there were not before, or the test fails."""
    before = traces({"s1"})
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


@pytest.fixture(scope="module")
def labs(tmp_path_factory):
    labs = Kept(lambda _key: made_lab(tmp_path_factory.mktemp("lab")))
    yield labs
    labs.close()


@pytest.fixture
def lab(labs):
    """A lab as if it were new. The tests of a file share bridge and hosts; what a test has started in it is
    ended after that test, which must leave no traces.
    """
    made = labs.of("lab")
    with leaving_no_more():
        try:
            yield made
            made.clear()
        except BaseException:
            labs.close()
            raise


@pytest.fixture
def own_lab(labs, tmp_path):
    """A lab that a test may leave in any state."""
    labs.close()
    with made_lab(tmp_path) as made:
        yield made


@pytest.fixture
def nothing_left(labs):
    labs.close()
    with leaving_nothing():
        yield


@pytest.fixture
def stub():
    controller = StubController()
    yield controller
    controller.shut()
