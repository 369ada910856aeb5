"""The live page in a real browser, with a fake controller."""

import itertools
import re
import statistics

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from fairq_ryu.far_queue import FAR
from tests.support import fake_controller as scenes
from tests.support.fake_controller import PAGE, FatTree, Hostile, Incast, LeafSpine

RECEIVER = f"{scenes.dpid(1)}:17"
# What a browser itself logs about an unreachable controller; the page cannot prevent it.
NOT_THERE = re.compile(
    r"ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE)"
)


def press(page, *keys):
    ActionChains(page.driver).send_keys(*keys).perform()


def focused(page, expression):
    return page.script(f"return document.activeElement.{expression}")


def port(key):
    return f'#map [data-port="{key}"]'


def queue(page):
    return float(page.script("return document.getElementById('chart').dataset.queue") or 0)


@pytest.mark.parametrize(
    ("scene", "switches", "hosts", "links"),
    [
        (Incast, 1, 17, 0),
        (LeafSpine, 4, 16, 4),
        (FatTree, 20, 16, 32),
        (scenes.Scene, 0, 0, 0),
    ],
)
def test_the_map_shows_every_switch_host_and_link(page, serve, scene, switches, hosts, links):
    page.open(serve(scene()).url)
    page.live()
    assert len(page.all("#map .switch")) == switches
    assert len(page.all("#map .host")) == hosts
    assert len(page.all("#map .link")) == hosts + links


def test_a_far_queue_is_drawn_above_the_switch_and_dashed(page, serve):
    page.open(serve(scenes.FarIncast()).url)
    page.live()
    (found,) = page.script(
        "return [...document.querySelectorAll('#map .far')].map((each) => {"
        "  const body = each.querySelector('.body');"
        "  const box = body.getBoundingClientRect();"
        "  const map = document.querySelector('#map svg').getBoundingClientRect();"
        "  return [each.dataset.port, getComputedStyle(body).strokeDasharray, box.top, box.bottom, map.top]})"
    )
    (below,) = page.script(
        "return [...document.querySelectorAll('#map .switch rect')]"
        ".map((each) => each.getBoundingClientRect().top)"
    )
    key, dashes, top, bottom, edge = found
    assert key == f"{scenes.dpid(1)}:{FAR | 5}" and dashes != "none"
    assert edge <= top < bottom <= below + 1


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scene", [Incast, LeafSpine, FatTree])
def test_levels_are_drawn_above_each_other_without_overlap(page, serve, scene, width):
    made = scene()
    page.open(serve(made).url, width)
    page.live()
    boxes = page.script(
        "return [...document.querySelectorAll('#map .switch')].map((each) => {"
        "  const box = each.querySelector('rect').getBoundingClientRect();"
        "  return [each.querySelector('title').textContent, box.left, box.right, box.top, box.bottom]})"
    )
    hosts = page.script(
        "return [...document.querySelectorAll('#map .host circle')].map((each) => {"
        "  const box = each.getBoundingClientRect(); return [box.left, box.right, box.top]})"
    )
    lowest = max(bottom for *_, bottom in boxes)
    assert all(top > lowest for _, _, top in hosts)
    for row in ([each[1:3] for each in boxes if each[3] == top] for top in {each[3] for each in boxes}):
        row.sort()
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(row))
    frame = page.script(
        "const box = document.getElementById('map').getBoundingClientRect(); return [box.left, box.right]"
    )
    assert all(frame[0] <= left and right <= frame[1] for _, left, right, *_ in boxes)
    ranks = {"c": 0, "a": 1, "e": 2, "p": 0, "l": 1, "s": 0}
    heights = {name: top for name, _, _, top, _ in boxes}
    for one in heights:
        for other in heights:
            if ranks[one[0]] < ranks[other[0]]:
                assert heights[one] < heights[other]


def test_links_show_their_rate_and_load(page, serve):
    page.open(serve(Incast()).url)
    page.live()
    receiver = page.one(f'[data-lane="{RECEIVER}>"]')
    page.wait(lambda: receiver.get_attribute("data-load") in ("high", "full"))
    idle = page.one(f'[data-lane="{scenes.dpid(1)}:16>"]')
    assert float(receiver.get_attribute("stroke-width")) > 2 * float(idle.get_attribute("stroke-width"))
    assert any(re.fullmatch(r"↓1\d\dM", text) for text in page.texts("#map .rate"))
    assert "200 Mbit/s" in page.script(
        "return [...document.querySelectorAll('#map .link title')].at(-1).textContent"
    ).replace("\u00a0", " ")


def test_a_port_that_is_clicked_is_shown(page, serve):
    page.open(serve(Incast()).url)
    page.live()
    page.one(port(f"{scenes.dpid(1)}:3")).click()
    page.wait(lambda: page.text("#port-title") == "s1-eth3 to 10.0.0.3")
    assert "no queue that can be controlled" in page.text("#port-about")
    page.one(port(RECEIVER)).click()
    page.wait(lambda: page.text("#port-title") == "s1-eth17 to 10.0.0.17")
    page.wait(lambda: queue(page) > 0)
    facts = dict(zip(page.texts("#facts dt"), page.texts("#facts dd"), strict=True))
    assert facts["Limit"] == "125\u00a0kB" and facts["Target"] == "31.3\u00a0kB"
    assert facts["Capacity"] == "200\u00a0Mbit/s" and facts["Policy"] == "fairq"
    assert page.script("return location.hash") == f"#port={RECEIVER}"
    # The graph moves, and its text equals that of its table.
    count = "return Number(document.getElementById('chart').dataset.samples)"
    before = page.script(count)
    page.wait(lambda: page.script(count) >= before + 3)
    page.one("#port summary").click()
    assert len(page.all("#minute tbody tr")) >= 1


def test_the_graph_is_drawn(page, serve):
    page.open(serve(Incast()).url + f"#port={RECEIVER}")
    page.live()
    page.wait(lambda: int(page.script("return document.getElementById('chart').dataset.samples")) > 4)
    colours = page.script(
        "const canvas = document.getElementById('chart');"
        "const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
        "const found = new Set();"
        "for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200)"
        "  found.add([data[at], data[at + 1], data[at + 2]].join());"
        "return [...found]"
    )
    assert "20,99,159" in colours and "184,70,10" in colours  # --accent and --alert: queue and limit
    page.script("document.getElementById('chart').focus()")
    press(page, Keys.ARROW_LEFT)
    page.wait(lambda: re.match(r"\d+ s ago: queue .*B, peak", page.text("#readout")))
    press(page, Keys.ESCAPE)
    assert page.text("#readout") == ""


def test_a_link_leads_to_its_busier_port(page, serve):
    made = LeafSpine()
    page.open(serve(made).url)
    page.live()
    page.wait(lambda: any(page.texts("#map .rate")))
    page.script(
        "document.querySelector('#map .link .hit').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    # l1 sends through p1; in the other direction there are only ACKs.
    page.wait(lambda: page.text("#port-title") == "l1-eth9 to p1")


def test_everything_can_be_reached_by_keyboard(page, serve):
    page.open(serve(LeafSpine()).url)
    page.live()
    press(page, Keys.TAB)
    assert focused(page, "className") == "skip"
    seen = []
    for _ in range(40):
        press(page, Keys.TAB)
        seen.append(focused(page, "id") or focused(page, "dataset.port") or focused(page, "type"))
        if focused(page, "tagName") == "BODY":
            break
    # The map is one tab stop, and the order is that of the page.
    on_map = [each for each in seen if each and ":" in each]
    assert len(on_map) == 1
    order = [seen.index(each) for each in (on_map[0], "chart", "tab-ports", "event-list")]
    assert order == sorted(order)
    page.script("document.querySelector('#map [tabindex=\"0\"]').focus()")
    first = focused(page, "dataset.port")
    press(page, Keys.ARROW_RIGHT)
    second = focused(page, "dataset.port")
    assert second and second != first
    ring = "return getComputedStyle(document.activeElement.querySelector('.ring')).strokeWidth"
    assert page.script(ring) == "2.5px"
    press(page, Keys.ARROW_DOWN)  # along the link
    other = focused(page, "dataset.port")
    assert other.split(":")[0] != second.split(":")[0]
    press(page, Keys.ENTER)
    assert page.script("return location.hash") == f"#port={other}"
    assert focused(page, "getAttribute('aria-pressed')") == "true"
    page.script("document.getElementById('tab-ports').focus()")
    press(page, Keys.ARROW_RIGHT)
    assert focused(page, "id") == "tab-flows"
    assert page.one("#panel-flows").is_displayed() and not page.one("#panel-ports").is_displayed()
    page.wait(lambda: page.texts("#flows tbody tr"))
    press(page, Keys.HOME)
    assert page.one("#panel-ports").is_displayed()
    page.script("document.querySelector('#ports tbody [tabindex=\"0\"]').focus()")
    row = focused(page, "textContent")
    press(page, Keys.ARROW_DOWN)
    assert focused(page, "textContent") != row
    chosen = focused(page, "textContent")
    press(page, Keys.ENTER)
    assert page.text("#ports tr[aria-current=true] button") == chosen
    assert page.text("#port-title").startswith(f"{chosen} to ")


def test_ports_are_found_and_sorted(page, serve):
    page.open(serve(Incast()).url)
    page.live()
    page.wait(lambda: len(page.all("#ports tbody tr")) == 17)
    page.one("#ports-filter [name=find]").send_keys("10.0.0.17")
    page.wait(lambda: page.texts("#ports tbody td:first-child") == ["s1-eth17"])
    page.one("#ports-filter [name=find]").clear()
    page.one("#ports-filter [name=find]").send_keys(" ")
    page.wait(lambda: len(page.all("#ports tbody tr")) == 17)
    next(each for each in page.all("#ports th button") if each.text == "Queue").click()
    assert page.texts("#ports tbody td:first-child")[0] == "s1-eth17"
    assert page.one("#ports th[aria-sort=descending]").text.startswith("Queue")


def test_flows_are_filtered_by_the_controller(page, serve):
    fake = serve(Incast())
    page.open(fake.url)
    page.live()
    page.one("#tab-flows").click()
    page.wait(lambda: len(page.all("#flows tbody tr")) == 24)
    page.one("#flows-filter [name=src]").send_keys("10.0.0.3")
    page.wait(lambda: set(page.texts("#flows tbody td:first-child")) == {"10.0.0.3:32770", "10.0.0.3:32786"})
    assert any("src=10.0.0.3" in path for path in fake.requests)
    asked = len([path for path in fake.requests if "dst=" in path])
    page.one("#flows-filter [name=dst]").send_keys("nonsense")
    page.wait(lambda: "an IP address" in page.text("#flows-problem"))
    assert page.one("#flows-filter [name=dst]").get_attribute("aria-invalid") == "true"
    assert len([path for path in fake.requests if "dst=" in path]) == asked  # a wrong filter is not requested
    page.one("#flows-filter [type=reset]").click()
    page.wait(lambda: len(page.all("#flows tbody tr")) == 24)
    page.one("#flows-here").click()
    page.wait(lambda: any("port=1%3A17" in path for path in fake.requests))


def test_the_way_of_a_flow_is_marked(page, serve):
    page.open(serve(LeafSpine()).url)
    page.live()
    page.one("#tab-flows").click()
    page.wait(lambda: page.texts("#flows tbody tr"))
    page.one("#flows tbody button").click()
    page.wait(lambda: len(page.all("#map .on-path")) == 4)  # from its host, up, down, to the receiver
    page.one("#flows tbody button").click()
    page.wait(lambda: not page.all("#map .on-path"))


def test_ten_thousand_flows_stay_fluid(page, serve):
    scene = Incast()
    scene.flow_count = 10_000
    fake = serve(scene)
    page.open(fake.url)
    page.live()
    page.one("#tab-flows").click()
    page.wait(lambda: len(page.all("#flows tbody tr")) == 50)
    assert page.text("#flows-note") == "1 to 50 of 10,000"
    page.one("#flows-on").click()
    page.wait(lambda: page.text("#flows-note") == "51 to 100 of 10,000")
    assert len(page.all("#flows tbody tr")) == 50
    assert all("limit=50" in path for path in fake.requests if path.startswith("/v1/flows"))
    page.driver.set_script_timeout(20)

    def half_the_frames_are_shorter_than_a_second():
        frames = page.driver.execute_async_script(
            "const done = arguments[0], frames = []; let last = performance.now(); const end = last + 3000;"
            "const step = (now) => { frames.push(now - last); last = now;"
            "  if (now < end) requestAnimationFrame(step); else done(frames); };"
            "requestAnimationFrame((now) => { last = now; requestAnimationFrame(step); });"
        )
        return statistics.median(frames) < 1000

    # While the page works; on a busy machine again, because something else may have had its processors.
    page.wait(half_the_frames_are_shorter_than_a_second, 60)


def test_deadlines_count_down_between_frames(page, serve):
    scene = scenes.Deadlines()
    fake = serve(scene)
    page.open(fake.url)
    page.live()
    page.one("#tab-gif").click()
    page.wait(lambda: len(page.all("#gif tbody tr")) == 8)
    # The controller pauses for a moment; the clock does not.
    last = "return document.querySelector('#gif tbody tr:last-child td:nth-child(6)').textContent"
    fake.silent = True
    page.wait(lambda: True)
    before = float(page.script(last).split()[0])
    page.wait(lambda: float(page.script(last).split()[0]) < before - 0.3)
    fake.silent = False
    page.live()


def test_a_long_gif_table_is_counted_whole(page, serve):
    page.open(serve(scenes.Deadlines(300)).url)
    page.live()
    page.one("#tab-gif").click()
    page.wait(lambda: len(page.all("#gif tbody tr")) == scenes.MOST_GIF)
    assert page.text("#count-gif") == "300"
    assert page.text("#gif-note") == "The first 200 of 300 rows."


def test_tenants_are_shown_with_what_they_have(page, serve):
    page.open(serve(scenes.Tenants()).url)
    page.live()
    page.one("#tab-tenants").click()
    page.wait(
        lambda: page.one("#panel-tenants").is_displayed() and not page.one("#panel-ports").is_displayed()
    )
    page.wait(lambda: len(page.all("#tenants tbody tr")) == 3)
    assert page.text("#count-tenants") == "3"
    cells = "return [...arguments[0].cells].map((cell) => cell.textContent.replace(/\\s/g, ' '))"
    rows = [page.script(cells, row) for row in page.all("#tenants tbody tr")]
    found = {
        name: [goodput, share, weight, flows, broken]
        for name, _, goodput, share, weight, flows, _, broken in rows
    }
    assert found == {
        "blue": ["126 Mbit/s", "67 %", "2", "4", "0"],
        "idle": ["–", "–", "1", "–", "–"],
        "red": ["62.0 Mbit/s", "33 %", "1", "40", "7"],
    }


def test_without_tenants_the_table_says_so(page, serve):
    page.open(serve(Incast()).url)
    page.live()
    page.one("#tab-tenants").click()
    page.wait(lambda: page.text("#tenants-note").startswith("No tenants."))
    assert page.text("#count-tenants") == "0"


def test_events_by_kind(page, serve):
    scene = Incast()
    scene.event("loss", "3 packets lost at s1-eth17")
    scene.event("repin", "a flow goes another way")
    page.open(serve(scene).url)
    page.live()
    kinds = "return [...document.querySelectorAll('#event-list li')].map((each) => each.dataset.kind)"
    page.wait(lambda: {"loss", "repin"} <= set(page.script(kinds)))
    page.one("#kinds [name=loss]").click()
    page.wait(lambda: "loss" not in page.script(kinds))
    scene.event("policy", "the policy is another")
    page.wait(lambda: page.script(kinds)[0] == "policy")
    assert len(page.script(kinds)) == len(set(page.texts("#event-list li")))  # none twice


def test_events_call_switches_and_ports_by_their_names(page, serve):
    scene = LeafSpine()
    here = {"dpid": scenes.dpid(1), "port": None}
    shown = {
        "10.0.0.1:9 -> 10.0.0.2:1 now goes by 1:10 2:8, was by 1:9 2:8": (
            "10.0.0.1:9 -> 10.0.0.2:1 now goes by l1-eth10 l2-eth8, was by l1-eth9 l2-eth8"
        ),
        "[2001:db8::1:9]:1 -> [1:2::1]:2 now goes by 1:99": None,
        "the queue of port 1:9 has dropped: 3 packets": "the queue of l1-eth9 has dropped: 3 packets",
        "the queue of l1-eth9 (1:9) is congested: 1 bytes": None,
        "bridge 1 has connected": "bridge l1 has connected",
        "the agent of bridge 1 has gone": "the agent of bridge l1 has gone",
    }
    for message in shown:
        scene.event("repin", message, here if "bridge" in message else None)
    page.open(serve(scene).url)
    page.live()
    wanted = {named or message for message, named in shown.items()}
    page.wait(lambda: wanted <= set(page.texts("#event-list .message")))


def test_a_dead_controller_is_reported_and_reconnected(page, serve):
    fake = serve(Incast())
    page.open(fake.url)
    page.live()
    assert page.text("#connection-text") == "Live" and not page.one("#gone").is_displayed()
    fake.stop()
    page.wait(lambda: page.one("#gone").is_displayed())
    assert re.search(r"has not answered since \d\d:\d\d:\d\d", page.text("#gone"))
    assert page.one("#gone").get_attribute("role") == "alert"
    assert page.text("#connection-text") == "No connection"
    opacity = "return getComputedStyle(document.querySelector('main')).opacity"
    page.wait(lambda: float(page.script(opacity)) < 1)
    shown = page.text("#gone")
    page.script(
        "window.changes = 0; new MutationObserver((all) => { window.changes += all.length })"
        ".observe(document.getElementById('gone'), {childList: true, subtree: true, characterData: true})"
    )
    before = page.text("#port-title")
    page.wait(lambda: len([each for each in page.errors() if NOT_THERE.search(each["message"])]) >= 1)
    assert (
        page.text("#gone") == shown and page.script("return window.changes") == 0
    )  # not announced repeatedly by screen readers
    assert page.text("#port-title") == before  # the last known state stays
    fake.start()
    page.live()
    page.wait(lambda: not page.one("#gone").is_displayed())
    assert [each for each in page.errors() if not NOT_THERE.search(each["message"])] == []


def test_a_silent_controller_is_reported(page, serve):
    fake = serve(Incast())
    page.open(fake.url)
    page.live()
    fake.silent = True
    page.wait(lambda: page.one("#gone").is_displayed())
    fake.silent = False
    page.live()


def test_the_reason_of_a_refusal_is_shown(page, serve):
    fake = serve(Incast())
    fake.full = True
    page.open(fake.url)
    page.wait(lambda: "8 streams are open" in page.text("#gone"))
    assert page.text("#connection-text") == "No live data"
    fake.full = False
    page.live()
    assert all("503" in each["message"] for each in page.errors())


def test_another_controller_has_other_events(page, serve):
    scene = Incast()
    scene.event("loss", "of the first life")
    fake = serve(scene)
    page.open(fake.url)
    page.wait(lambda: "of the first life" in page.text("#event-list"))
    fake.stop()
    page.wait(lambda: page.one("#gone").is_displayed())
    fake.scene = Incast()
    fake.scene.started -= 100
    fake.scene.event("loss", "of the second life")
    fake.start()
    page.live()
    page.wait(lambda: "of the second life" in page.text("#event-list"))
    assert "of the first life" not in page.text("#event-list")
    page.errors()


def test_events_during_a_lost_connection_are_shown_later(page, serve):
    """With the same controller: another one has its own events, as above."""
    scene = scenes.Scene()
    scene.event("loss", "while it is live")
    fake = serve(scene)
    page.open(fake.url)
    page.wait(lambda: "while it is live" in page.text("#event-list"))
    known = scene.last_event
    fake.stop()
    page.wait(lambda: page.one("#gone").is_displayed())
    scene.event("repin", "while nobody listens")
    fake.start()
    page.live()
    page.wait(lambda: "while nobody listens" in page.text("#event-list"))
    assert "while it is live" in page.text("#event-list")
    asked = [path for path in fake.requests if path.startswith("/v1/events")]
    assert [path.rsplit("since=", 1)[1] for path in asked] == ["0", str(known)]
    # Again, and now the stream has a later event before the page requests the missed ones.
    fake.stop()
    page.wait(lambda: page.one("#gone").is_displayed())
    scene.event("repin", "while nobody listens again")
    fake.early = lambda: scene.event("loss", "as soon as somebody does")
    fake.start()
    page.live()
    page.wait(lambda: "as soon as somebody does" in page.text("#event-list"))
    page.wait(lambda: "while nobody listens again" in page.text("#event-list"))
    assert [each for each in page.errors() if not NOT_THERE.search(each["message"])] == []


def test_a_missing_agent_and_a_disconnected_switch_are_shown(page, serve):
    scene = LeafSpine()
    scene.switches[scene.edge[1]]["agent"] = False
    page.open(serve(scene).url)
    page.live()
    page.wait(lambda: "No agent on switch l2" in page.text("#warnings"))
    assert page.one("#warnings").is_displayed() and page.all("#map .switch.blind")
    assert "no agent" in page.text("#map .switch.blind")
    scene.switches[scene.edge[1]]["agent"] = True
    page.wait(lambda: not page.one("#warnings").is_displayed())
    scene.switches[scene.above[0]]["connected"] = False
    page.wait(lambda: "Not connected: switch p1" in page.text("#warnings"))
    page.wait(lambda: "not connected" in page.text("#map .switch.gone"))
    # It keeps its position.
    top = (
        "return [...document.querySelectorAll('#map .switch rect')]"
        ".map((each) => Math.round(each.getBoundingClientRect().top)).sort((a, b) => a - b)[arguments[0]]"
    )
    assert page.script(top, 0) == page.script(top, 1)
    # One that only its agent governs need not be connected.
    scene.switches[scene.above[0]]["way"] = "windows"
    page.wait(lambda: not page.one("#warnings").is_displayed() and not page.all("#map .switch.gone"))


def test_names_from_the_network_are_text_and_nothing_else(page, serve):
    page.open(serve(Hostile()).url)
    page.live()
    for tab in ("flows", "gif", "ports"):
        page.one(f"#tab-{tab}").click()
        page.wait(lambda tab=tab: Hostile.NAME in page.text(f"#{tab}"))
    page.wait(lambda: Hostile.NAME in page.text("#event-list") and Hostile.NAME in page.text("#policy-name"))
    page.wait(lambda: Hostile.NAME in page.text("#port-title"))
    assert page.script("return document.title") == "FairQ live"
    assert page.script("return document.querySelectorAll('img').length") == 1  # the sign in the header


@pytest.mark.parametrize("scene", [Incast, FatTree, Hostile, scenes.Deadlines])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_of_it_in_its_width(page, serve, scene, scheme):
    page.prefer(prefers_color_scheme=scheme)
    page.open(serve(scene()).url, 390, 844)
    page.live()
    for tab in ("flows", "gif", "tenants", "ports"):
        page.one(f"#tab-{tab}").click()
        for each in page.all("summary"):
            page.script("arguments[0].parentElement.open = true", each)
        width = "return document.documentElement.scrollWidth"
        assert page.script(width) == 390
        page.wait(lambda: page.script("return document.body.scrollWidth") <= 390)


def luminance(colour):
    red, green, blue = (int(part) / 255 for part in re.findall(r"\d+", colour)[:3])
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_to_its_background(page, serve, scheme):
    """WCAG AA: 4.5 to 1."""
    page.prefer(prefers_color_scheme=scheme)
    page.open(serve(Incast()).url)
    page.live()
    pairs = [
        ("ink", "panel"),
        ("ink-soft", "panel"),
        ("accent", "panel"),
        ("alert", "panel"),
        ("pool", "panel"),
    ]
    pairs += [
        ("ink-soft", "ground"),
        ("band-ink", "band"),
        ("band-soft", "band"),
        ("accent", "raised"),
        ("panel", "alert"),
    ]
    for front, back in pairs:
        if (front, back) == ("panel", "alert") and scheme == "dark":
            continue  # the banner has its own text colour there
        one, other = (
            luminance(
                page.script(
                    "const probe = document.createElement('i'); document.body.append(probe);"
                    "probe.style.color = `var(--${arguments[0]})`;"
                    "const found = getComputedStyle(probe).color; probe.remove(); return found",
                    name,
                )
            )
            for name in (front, back)
        )
        assert (max(one, other) + 0.05) / (min(one, other) + 0.05) >= 4.5, (front, back)


def test_nothing_moves_with_prefers_reduced_motion(page, serve):
    page.prefer(prefers_reduced_motion="reduce")
    page.open(serve(Incast()).url)
    page.live()
    assert page.script("return getComputedStyle(document.querySelector('main')).transitionDuration") in (
        "0s",
        "0s, 0s",
    )


def test_the_page_requests_only_its_own_controller(page, serve):
    fake = serve(Incast())
    page.open(fake.url)
    page.live()
    loaded = page.script("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert loaded and all(each.startswith(fake.url) for each in loaded)
    assert {path.name for path in PAGE.iterdir()} - {"index.html"} == {
        each.rsplit("/", 1)[1] for each in loaded if "/page/" in each
    }


def test_a_breach_of_the_content_security_policy_is_noticed(page, serve):
    """The fixture above must fail, for blocked requests and for warnings."""
    page.open(serve(Incast()).url)
    page.live()
    assert page.errors() == []
    page.script("document.body.append(Object.assign(document.createElement('style'), {textContent: 'p {}'}))")
    assert page.wait(page.errors)
    page.script("console.warn('The Content Security Policy directive is ignored')")
    assert [each["level"] for each in page.wait(page.errors)] == ["WARNING"]


def test_no_markup_is_made_from_text():
    """The tests above use some names; this one covers all others."""
    for path in PAGE.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|DOMParser|new Function|https?://(?!www\.w3\.org/2000/svg)",
            path.read_text(encoding="utf-8"),
        ), path
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=|https?://", page)
