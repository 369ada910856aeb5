"""The live page during a real incast: Open vSwitch, agent, controller, real TCP, and a real browser."""

import itertools
import json
import statistics
import threading
from typing import NamedTuple

import pytest

from fairq_ryu import client
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments import testbed as testbeds
from fairq_ryu.experiments.variants import Variant
from fairq_ryu.experiments.workloads.incast.measurement import IncastMeasurement
from tests.support.browser import chromium

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
SENDERS = 8
RECEIVER = f"{1:016x}:{SENDERS + 1}"
# The page says that its data is old after five intervals of a second (PATIENCE in fairq_ryu/page/live.js).
STALE = 5
# For every frame that the page shows from now on: when it was shown, when it was made, and the queue of the
# chosen port.
RECORD = """
const chart = document.getElementById("chart");
window.frames_shown = [];
new MutationObserver(() => {
  window.frames_shown.push([Date.now() / 1000, Number(chart.dataset.time), Number(chart.dataset.queue)]);
}).observe(chart, { attributes: true, attributeFilter: ["data-time"] });
"""


class Traffic(IncastMeasurement):
    """An incast that goes on for as long as it is watched, and then ends as always."""

    def __init__(self, testbed, chosen):
        super().__init__(testbed, chosen, lambda _step, _part: None)
        self.seen = threading.Event()
        self.outcome = {}
        # The generators end with the thread that starts them: that is not this one.
        self.thread = threading.Thread(target=lambda: self.outcome.update(self.measure()), daemon=True)

    def make_rounds(self, make, wanted, *rest, **options):
        made = []
        while not self.seen.is_set() and len(made) < wanted:
            before = len(made)
            made += super().make_rounds(
                lambda number, first=before: make(first + number), 1, *rest, **options
            )
        return made


@pytest.fixture
def incast(tmp_path, nothing_left):
    """A network for an incast: the testbed and the traffic."""
    # Rounds for two minutes: on a slow machine everything takes longer.
    hosts = {"senders": str(SENDERS), "mice_per_sender": "4"}
    chosen = scenario.load("incast", {**hosts, "rounds": "120", "warmup_s": "1", "elephants_only_s": "1"})
    testbed = testbeds.Testbed(chosen, Variant("droptail", "droptail"), tmp_path / "logs", None)
    traffic = None
    try:
        testbed.start()
        traffic = Traffic(testbed, chosen)
        yield testbed, traffic
    finally:
        # The thread would use generators that have ended: if it runs, it is waited for.
        if traffic is not None and traffic.thread.is_alive():
            traffic.seen.set()
            traffic.thread.join(60)
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


class Frame(NamedTuple):
    """Seconds of Unix time, by the browser and by the controller, and bytes."""

    shown: float
    made: float
    queue: float


def frames(page):
    return [Frame(*each) for each in page.script("return window.frames_shown")]


def latest(page, seconds, since=0.0):
    """The queues of the frames of the last ``seconds``; empty if ``since`` is later than their start."""
    made = [each for each in frames(page) if each.made > since]
    if not made or made[-1].made - made[0].made < seconds:
        return []
    return [each.queue for each in made if made[-1].made - each.made <= 1.1 * seconds]


def test_an_incast_as_the_page_shows_it(incast, page):
    """The run begins without windows; then the policy is changed, and the queue shrinks while all hosts
    continue to send.
    """
    testbed, traffic = incast
    url = f"http://127.0.0.1:{testbed.rest_port}"
    page.open(f"{url}/")
    page.live(20)
    page.wait(lambda: len(page.all("#map .switch")) == 1 and not page.all("#map .switch.blind"))
    assert page.text("#connection-text") == "Live"
    traffic.thread.start()
    page.wait(lambda: len(page.all("#map .host")) == SENDERS + 1, 20)
    page.one(f'[data-port="{RECEIVER}"]').click()
    page.wait(lambda: page.text("#port-title").startswith(f"s1-eth{SENDERS + 1} to 10.0.0."))
    assert facts(page)["Limit"] == "125\u00a0kB"
    assert facts(page)["Target"] == "–" and facts(page)["Windows"] == "none"
    half = testbed.scenario.buffer_bytes / 2

    # Elephants fill the whole buffer.
    page.script(RECORD)
    full = page.wait(lambda: (found := latest(page, 3)) and statistics.median(found) > half and found, 20)
    lane = page.one(f'[data-lane="{RECEIVER}>"]')
    page.wait(lambda: lane.get_attribute("data-load") in ("high", "full"), 20)
    assert any(text.startswith("↓") and text.endswith("M") for text in page.texts("#map .rate"))

    body = json.dumps({"policy": "fairq"}).encode()
    client.ask(url, "PATCH", "/v1/policy", body, usage="docs/rest.md", token=testbed.token)
    changed = "return document.querySelector('#event-list [data-kind=policy] .message')?.textContent"
    page.wait(lambda: page.script(changed) == "now policy fairq, was droptail")
    page.wait(lambda: page.text("#policy-name") == "fairq")
    since = frames(page)[-1].made
    # Medians: a single frame may show a volley's first windows, under any policy.
    filled = statistics.median(full)
    page.wait(lambda: (found := latest(page, 2, since)) and 1.5 * statistics.median(found) < filled, 20)
    # During all that time the port is as busy as before.
    page.wait(lambda: lane.get_attribute("data-load") in ("high", "full"))
    assert traffic.thread.is_alive()
    page.wait(lambda: facts(page)["Target"] == "31.3\u00a0kB" and "pool" in facts(page)["Windows"])
    page.one("#tab-flows").click()
    page.wait(lambda: len(page.all("#flows tbody tr")) >= testbed.scenario.elephants)
    assert any("established" in text for text in page.texts("#flows tbody td"))
    page.wait(lambda: len(frames(page)) > 21, 30)
    assert traffic.thread.is_alive()

    traffic.seen.set()
    page.wait(lambda: not traffic.thread.is_alive(), 120)
    assert traffic.outcome["mice"]["count"] > 0
    page.wait(lambda: number(page, "queue") == 0, 15)
    assert number(page, "highest") > half / 3  # the minute before is still there
    page.wait(lambda: lane.get_attribute("data-load") in ("idle", "low"), 15)
    # The page is current: there is a frame each second, and later where the machine is busy.
    seen = frames(page)
    ages = sorted(after.shown - each.made for each, after in itertools.pairwise(seen))
    assert len(ages) > 20 and statistics.median(ages) <= STALE, ages[-10:]


def test_the_page_shows_that_an_agent_or_the_controller_is_missing(lab, page):
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
    assert "has not answered since" in page.text("#gone")
    # The browser itself logs refused connections; nothing else may be logged.
    assert all("ERR_" in each["message"] for each in page.errors())
