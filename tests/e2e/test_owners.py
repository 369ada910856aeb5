"""Two controllers, a database and a real bridge with its agent: one owns it, and the other takes over."""

import contextlib
import json
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from fairq_ryu.packet import parse
from tests.support.capture import frames
from tests.support.fixtures import leaving_nothing
from tests.support.lab import TOKEN, Lab, output, until
from tests.support.ovsdb import single

pytestmark = [pytest.mark.root, pytest.mark.timeout(240)]


class Site:
    """``managers``: the controllers by name. ``app``: their application; ``own``: settings of each. Each has
    an address of its own at the server of the database, ``remotes``.
    """

    def __init__(self, lab, server, way, app="fairq", own=("", "")):
        self.lab, self.server = lab, server
        self.managers, self.remotes = {}, {}
        for name, text in zip(("a", "b"), own, strict=True):
            self.remotes[name] = server.add_remote()
            config = f"[fairq_ryu]\nway = {way}\n[cluster]\ndatabase = {self.remotes[name]}\nname = {name}\n"
            self.managers[name] = lab.controller(app, config + text, connect=False)
        self.targets = [f"tcp:127.0.0.1:{each.port}" for each in self.managers.values()]
        if way != "windows":
            output("ovs-vsctl", "set-controller", "s1", *self.targets)
        self.agent = lab.agent(*self.targets)

    def row(self):
        """The owner of the bridge, its generation."""
        query = ["Fairq", {"op": "select", "table": "Bridge", "where": []}]
        found = json.loads(output("ovsdb-client", "transact", self.server.remote, json.dumps(query)))
        rows = found[0]["rows"]
        return (rows[0]["owner"].partition("/")[0], rows[0]["generation"]) if rows else (None, 0)

    def owner(self):
        return self.row()[0]

    def other(self):
        return "b" if self.owner() == "a" else "a"

    def roles(self):
        """The roles of the controllers at the bridge, as Open vSwitch has them, by name."""
        shown = json.loads(
            output("ovs-vsctl", "--format=json", "--columns=target,role", "list", "controller")
        )
        found = dict(shown["data"])
        return {name: found.get(target) for name, target in zip(self.managers, self.targets, strict=True)}

    def said(self, name, words):
        return words in self.managers[name].text

    def settled(self):
        """Whether a controller owns the bridge, and governs it by its agent."""
        name = self.owner()
        return name is not None and self.said(name, "agent of bridge 0000000000000001: connected")

    def ask(self, name, what, method="GET", **body):
        """A request to one of the controllers; its status and answer."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"{self.managers[name].url}/v1/{what}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def ruled(self):
        return self.lab.port_status()["rule"] is not None


@contextlib.contextmanager
def made_site(folder, way, **options):
    with leaving_nothing(), contextlib.ExitStack() as stack:
        server = single(folder)
        stack.callback(server.kill)
        lab = Lab(folder, 2, forward=way == "windows")
        stack.callback(lab.close)
        made = Site(lab, server, way, **options)
        assert until(made.settled, 20), made.managers["a"].text + made.managers["b"].text
        made.way = way
        yield made


@pytest.fixture(params=["normal", "windows", "paths"])
def site(request, tmp_path):
    with made_site(tmp_path, request.param) as made:
        yield made


def test_a_killed_owner_is_replaced(site):
    """How soon is measured (docs/scaling.md): a busy machine would cross any limit here."""
    dead, heir = site.owner(), site.other()
    _, generation = site.row()
    if site.way != "windows":
        # Open vSwitch writes roles into its database every five seconds.
        assert until(lambda: site.roles() == {dead: "master", heir: "slave"}, 15), site.roles()
    site.lab.bulk("h1", 5001)
    site.lab.bulk("h2", 5002)
    assert until(lambda: site.ruled(), 10)
    site.managers[dead].end(signal.SIGKILL)
    assert until(lambda: site.said(heir, "agent of bridge 0000000000000001: connected"), 10, 0.01)
    assert until(lambda: site.ruled(), 10, 0.01)
    assert site.row() == (heir, generation + 1)
    if site.way != "windows":
        assert until(lambda: site.roles()[heir] == "master", 15), site.roles()


def test_an_owner_that_was_stopped_is_refused_when_it_goes_on(site):
    sleeper, heir = site.owner(), site.other()
    _, generation = site.row()
    site.managers[sleeper].process.send_signal(signal.SIGSTOP)
    try:
        assert until(lambda: site.row() == (heir, generation + 1), 10)
        assert until(lambda: site.said(heir, "agent of bridge 0000000000000001: connected"), 10)
        # So long that nobody has closed its connections.
        time.sleep(1.0)
    finally:
        site.managers[sleeper].process.send_signal(signal.SIGCONT)
    assert until(lambda: site.said(sleeper, f"not owned any more, but by {heir}"), 10)
    time.sleep(3.0)
    assert site.row() == (heir, generation + 1)
    assert site.managers[heir].text.count("agent of bridge 0000000000000001: connected") == 1
    assert not site.said(heir, "connection lost")


def test_without_the_database_everybody_goes_on(site):
    row = site.row()
    site.lab.bulk("h1", 5001)
    assert until(lambda: site.ruled(), 10)
    site.server.kill()
    for _ in range(30):
        time.sleep(0.1)
        assert site.ruled()
    site.server.start()
    assert until(
        lambda: all(each.text.count("connected to the database") == 2 for each in site.managers.values()), 10
    )
    time.sleep(2.0)
    assert site.row() == row
    assert site.ruled()


def test_every_controller_answers_for_all_and_changes_outlive_the_owner(site):
    owner, other = site.owner(), site.other()
    own, asked = site.ask(owner, "ports")[1], site.ask(other, "ports")[1]
    assert own["missing"] == asked["missing"] == []
    where = [(port["dpid"], port["port"]) for port in own["ports"]]
    assert where and where == [(port["dpid"], port["port"]) for port in asked["ports"]]
    assert site.ask(other, "switches")[1]["switches"] == site.ask(owner, "switches")[1]["switches"]
    rows = site.ask(other, "cluster")[1]
    assert [(row["name"], row["alive"], row["bridges"]) for row in rows["controllers"]] == [
        (name, True, int(name == owner)) for name in ("a", "b")
    ]
    # Asked of the one that does not own the bridge.
    assert site.ask(other, "policy", "PATCH", policy="sed", parameters={"margin": 0.8})[0] == 200
    assert site.ask(other, "tenants/red", "PUT", hosts=["10.0.0.0/24"], weight=3)[0] == 201
    assert site.ask(other, "disable", "POST", bridge="s1", port="s1-eth1")[0] == 200
    status, row = site.ask(other, "far-queues/s1/s1-eth2", "PUT", rate="10mbit")
    assert (status, row["name"]) == (200, "s1-eth2")
    status, announced = site.ask(
        other, "announcements", "POST", src="10.0.0.1", dst="10.0.0.3", dport=80, size=1000, ttl=600
    )
    assert status == 201
    assert site.ask(other, "disable", "POST", bridge="s1", port="no-such-port")[0] == 422

    def stands(name):
        policy, ports = site.ask(name, "policy")[1], site.ask(name, "ports")[1]["ports"]
        margin = next(each["value"] for each in policy["parameters"] if each["name"] == "margin")
        modes = {port["name"]: port["mode"] for port in ports}
        return (
            (policy["policy"], margin, modes.get("s1-eth1"), modes.get("s1-eth3")),
            [(row["name"], row["weight"]) for row in site.ask(name, "tenants")[1]["tenants"]][:1],
            [(row["name"], row["origin"]) for row in site.ask(name, "far-queues")[1]["far_queues"]],
            site.ask(name, f"announcements/{announced['id']}")[0],
        )

    wanted = (
        ("sed", 0.8, "disabled", "act"),
        [("red", 3)],
        [("s1-eth2", "request")],
        200,
    )
    assert until(lambda: stands(owner) == wanted, 5), stands(owner)
    assert until(lambda: stands(other) == wanted, 5), stands(other)
    site.managers[owner].end(signal.SIGKILL)
    assert until(lambda: site.owner() == other, 5)
    assert until(lambda: stands(other) == wanted, 10), stands(other)
    missing = site.ask(other, "ports")[1]["missing"]
    assert [each["controller"] for each in missing] == [owner]


# The windows in between


class Acks:
    """The ACKs of a connection to port 5001, as the receiver has sent them and as h1 gets them."""

    def __init__(self, lab, folder):
        self.files = {name: folder / f"{name}.pcap" for name in ("r", "h1")}
        self.programs = []
        for name, file in self.files.items():
            words = ["tcpdump", "-n", "-i", f"{name}-eth0", "-s", "96", "-B", "65536", "-U", "-Z", "root"]
            program = lab[name].popen([*words, "-w", str(file), "tcp src port 5001"], stderr=subprocess.PIPE)
            assert b"listening" in program.stderr.readline()
            self.programs.append(program)

    def stop(self):
        """The windows of all ACKs that were captured at both, in order: the receiver's own, and as h1 gets
        it; and the factor that makes bytes of them.
        """
        time.sleep(1.2)  # the kernel delivers captured packets after a second at the latest
        for program in self.programs:
            program.send_signal(signal.SIGINT)
            program.communicate(timeout=20)
        sent, got = (list(frames(file.read_bytes())) for file in self.files.values())
        (scale,) = {tcp.wscale for each in sent if (tcp := parse.parse(each).tcp).syn}
        own = dict(map(_window, sent))
        pairs = [(own[key], window) for key, window in map(_window, got) if key in own]
        return pairs, 1 << scale


def _window(frame):
    """What tells an ACK from others, and its window: IPv4 without options."""
    return frame[18:20] + frame[34:47], int.from_bytes(frame[48:50], "big")


@pytest.mark.parametrize("way", ["windows", "paths"])
def test_no_window_in_between_is_wrong(tmp_path, way):
    """Each controller has a window of its own, so a lowered one tells whose it is. The owner is cut off from
    the database, goes on and is replaced; later the second owner is killed, and the first one owns again.
    """
    pools = {"a": 20_000, "b": 40_000}
    own = [f"[fixed]\npool = {pool}\n" for pool in pools.values()]
    with made_site(tmp_path, way, app="fixed", own=own) as site:
        first, second = site.owner(), site.other()
        acks = Acks(site.lab, tmp_path)
        site.lab.bulk("h1", 5001)
        seen = []

        def rule():
            """The agent's rule; what is seen is noted."""
            row = site.lab.port_status()["rule"]
            pool = row and row["bytes"]
            if not seen or seen[-1] != pool:
                seen.append(pool)
            return pool

        assert until(lambda: rule() == pools[first], 10), seen
        _, generation = site.row()
        site.server.remove_remote(site.remotes[first])
        assert until(lambda: rule() == pools[second], 10, 0.01), seen
        assert site.row() == (second, generation + 1)
        assert not until(lambda: rule() != pools[second], 1.5, 0.01), seen
        site.server.add_remote(site.remotes[first])
        assert until(lambda: rule() and site.said(first, f"not owned any more, but by {second}"), 10), seen
        site.managers[second].end(signal.SIGKILL)
        assert until(lambda: rule() == pools[first], 10, 0.01), seen
        assert site.row() == (first, generation + 2)
        pairs, unit = acks.stop()
        # The rules of before are cleared, or end.
        ends = [pool for pool in seen if pool is not None]
        assert ends == [pools[first], pools[second], pools[first]], seen
        windows = []
        for advertised, got in pairs:
            assert got <= advertised
            if got != advertised and (not windows or windows[-1] != got):
                windows.append(got)
        expected = [pools[first] // unit, pools[second] // unit, pools[first] // unit]
        assert windows == expected, (windows, unit)
