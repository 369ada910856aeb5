"""The live page before a real incast: Open vSwitch, agent, controller, real TCP, and a real browser."""

import threading

import pytest

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments import testbed as testbeds
from fairq_ryu.experiments.incast import Incast
from tests.support.browser import chromium

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
SENDERS = 16
RECEIVER = f"{1:016x}:{SENDERS + 1}"


@pytest.fixture
def incast(tmp_path, nothing_left):
    """A network with an incast to come: the testbed, and what starts the traffic in a thread of its own."""
    chosen = scenario.load("incast", {"rounds": "8", "warmup_s": "1", "elephants_only_s": "1"})
    testbed = testbeds.Testbed(chosen, "fairq", tmp_path / "logs", None)
    outcome = {}
    running = []
    try:
        testbed.start()
        # Here and not in the thread: the generators end with the thread that starts them.
        measurement = Incast(testbed, chosen, lambda _step, _part: None)

        def run():
            outcome.update(measurement.measure())

        def start():
            running.append(threading.Thread(target=run, daemon=True))
            running[0].start()
            return running[0]

        yield testbed, start, outcome
    finally:
        # The thread would talk to generators that are gone: it is waited for if it runs.
        for thread in running:
            thread.join(60)
        assert testbed.stop() == []


@pytest.fixture
def page():
    with chromium() as made:
        yield made
        left = made.errors()
        assert left == []


def number(page, name):
    return float(page.script("return document.getElementById('chart').dataset[arguments[0]]", name) or 0)


def facts(page):
    return dict(zip(page.texts("#facts dt"), page.texts("#facts dd"), strict=True))


def test_an_incast_as_the_page_shows_it(incast, page):
    testbed, start, outcome = incast
    page.open(f"http://127.0.0.1:{testbed.rest_port}/")
    page.live(20)
    page.wait(lambda: len(page.all("#map .switch")) == 1 and not page.all("#map .switch.blind"))
    assert page.text("#connection-text") == "Live"
    traffic = start()
    page.wait(lambda: len(page.all("#map .host")) == SENDERS + 1, 20)
    page.one(f'[data-port="{RECEIVER}"]').click()
    page.wait(lambda: page.text("#port-title").startswith(f"s1-eth{SENDERS + 1} to 10.0.0."))
    limit = testbed.scenario.buffer_bytes
    # Elephants keep the queue at its target; the mice are beside them.
    page.wait(lambda: number(page, "queue") > limit / 16, 20)
    page.wait(lambda: number(page, "highest") > limit / 6, 20)
    assert facts(page)["Limit"] == "125\u00a0kB" and facts(page)["Target"] == "31.3\u00a0kB"
    page.wait(lambda: "pool" in facts(page)["Windows"])
    lane = page.one(f'[data-lane="{RECEIVER}>"]')
    page.wait(lambda: lane.get_attribute("data-load") in ("high", "full"), 20)
    assert any(text.startswith("↓") and text.endswith("M") for text in page.texts("#map .rate"))
    page.one("#tab-flows").click()
    page.wait(lambda: len(page.all("#flows tbody tr")) >= testbed.scenario.elephants)
    assert any("established" in text for text in page.texts("#flows tbody td"))
    assert number(page, "highest") < limit  # or FairQ does not work
    page.wait(lambda: not traffic.is_alive(), 90)
    assert outcome["mice"]["unfinished"] == 0
    # The senders have ended: the queue falls, and the page follows.
    page.wait(lambda: number(page, "queue") == 0, 15)
    assert number(page, "highest") > limit / 6  # the minute before is still there
    page.wait(lambda: lane.get_attribute("data-load") in ("idle", "low"), 15)


def test_the_page_says_that_an_agent_or_the_controller_is_missing(lab, page):
    manager = lab.controller("fairq")
    manager.wait_for("bridge 0000000000000001: connected")
    page.open(manager.url)
    page.live(20)
    page.wait(lambda: "No agent on switch s1" in page.text("#warnings"), 20)
    agent = lab.agent(f"tcp:127.0.0.1:{manager.port}")
    page.wait(lambda: not page.one("#warnings").is_displayed(), 20)
    agent.end()
    page.wait(lambda: "No agent on switch s1" in page.text("#warnings"), 20)
    assert page.errors() == []
    manager.end()
    page.wait(lambda: page.one("#gone").is_displayed(), 10)
    assert "does not answer since" in page.text("#gone")
    # The browser itself complains of a connection that is refused; nothing else may be there.
    assert all("ERR_" in each["message"] for each in page.errors())
