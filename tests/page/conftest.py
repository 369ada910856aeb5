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
def serve():
    """Starts fake controllers, and stops them after the test."""
    running = []

    def start(scene):
        running.append(FakeController(scene).start())
        return running[-1]

    yield start
    for fake in running:
        if not fake.stopping:
            fake.stop()
