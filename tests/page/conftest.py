import pytest

from tests.support.browser import chromium
from tests.support.fake_controller import FakeController


@pytest.fixture(scope="module")
def browser():
    with chromium() as page:
        yield page


@pytest.fixture
def page(browser):
    """The browser without an open page; an error in its log that a test does not expect fails the test."""
    browser.prefer(prefers_color_scheme="light", prefers_reduced_motion="no-preference")
    browser.errors()
    yield browser
    left = browser.errors()
    browser.driver.get("about:blank")
    assert left == []


@pytest.fixture
def serve(browser):
    """Starts fake controllers. After the test the page is left before they stop: its next request would be
    refused, which the browser logs as an error.
    """
    running = []

    def start(scene):
        running.append(FakeController(scene).start())
        return running[-1]

    yield start
    browser.driver.get("about:blank")
    for fake in running:
        if not fake.stopping:
            fake.stop()
    assert [fault for fake in running for fault in fake.faults] == []
