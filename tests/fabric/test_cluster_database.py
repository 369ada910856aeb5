"""The database between controllers, as real servers: one, and a Raft cluster of three whose servers are
killed, stopped and cut off from each other, and whose clocks differ. Controllers and switches are simulated;
what they have done is checked against two invariants: the rules in force at a switch are of at most one owner
per generation, and no stored request is lost.
"""

import contextlib
import logging
import random
import re
import signal
import socket
import threading
import time

import ovs.db.idl
import pytest

from fairq_ryu.cluster import database as rows
from fairq_ryu.cluster.database import Database
from fairq_ryu.cluster.ownership import Ownership, Together
from fairq_ryu.cluster.view import TO_AGENT, Bridge, Claim, Member, View
from mininet_topos.patience import patient
from tests.support.cluster_model import Switch
from tests.support.ovsdb import NAME, Cluster, single

pytestmark = pytest.mark.timeout(600)
LOG = logging.getLogger("test")
BEAT = 0.2
FAULTS = (
    "kill leader",
    "stop server",
    "cut off leader",
    "cut off server",
    "cut link",
    "step clock",
    "pause",
    "isolate",
    "restart",
    "switch",
)


@pytest.fixture
def server(tmp_path):
    made = single(tmp_path)
    yield made
    made.kill()


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.kill()


class Client:
    """A database, stepped until something is so."""

    def __init__(self, remote):
        self.database = Database(remote, LOG)

    def until(self, condition, seconds=10.0):
        deadline = time.monotonic() + patient(seconds)
        while not condition():
            assert time.monotonic() < deadline
            self.database.step()
            self.database.work()
            self.database.wait(0.01)

    def write(self, change, seconds=5.0):
        found = []
        self.database.write(change, found.append, seconds)
        self.until(lambda: found, seconds + 10)
        return found[0]

    def requests(self):
        self.database.take_requests()
        return dict(self.database._requests)


def test_rows_are_written_and_read(server):
    a, b = Client(server.remote), Client(server.remote)
    assert a.write(rows.beat(Member("a/1", "a", "http://x:1", "s", reach={1: 3, 2**63: 1}), {}))
    b.until(lambda: b.database.view().members)
    assert b.database.view().members == {"a/1": Member("a/1", "a", "http://x:1", "s", 1, {1: 3, 2**63: 1})}
    assert a.write(rows.claim([Claim(2**63, None, 5)], "a/1"))
    assert a.write(rows.beat(Member("a/1", reach={}), {2**63: 7, 1: 7}))
    b.until(lambda: b.database.view().members["a/1"].beat == 2)
    assert b.database.view().owned("a/1") == {2**63: 5}
    assert b.database.view().bridges[2**63].load == 7
    assert b.write(rows.leave("a/1", 2))
    assert b.database.view().members == {}


def test_a_transaction_that_cannot_be_made_is_in_the_way_of_no_other(server):
    client, found = Client(server.remote), []
    client.until(lambda: client.database.connected)
    client.database.write(lambda database, transaction: 1 // 0, found.append)
    with pytest.raises(ZeroDivisionError):
        client.until(lambda: found)
    assert found == [False]
    assert client.write(rows.beat(Member("a/1"), {}))


def test_a_database_that_is_not_there_is_named_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(rows, "_SILENT", 0.2)
    client, began = Client(f"unix:{tmp_path}/none.sock"), time.monotonic()
    while time.monotonic() - began < 1:
        client.database.step()
        client.database.wait(0.02)
    said = [each.getMessage() for each in caplog.records]
    assert len(said) == 1 and "none.sock does not answer; no bridge is governed" in said[0]


def test_of_two_claims_of_one_generation_one_is_accepted(server):
    a, b = Client(server.remote), Client(server.remote)
    assert a.write(rows.claim([Claim(1, None, 1)], "a"))
    b.until(lambda: b.database.view().bridges)
    results = []
    a.database.write(rows.claim([Claim(1, 1, 2)], "a"), results.append)
    b.database.write(rows.claim([Claim(1, 1, 2), Claim(2, None, 1)], "b"), results.append)
    for each in (a, b):  # both are sent before one of them has seen the other's
        each.database.work()
    a.until(lambda: a.database._running is None)
    b.until(lambda: b.database._running is None)
    assert sorted(results) == [False, True]
    assert (2 in b.database.view().bridges) == (b.database.view().bridges[1].owner == "b")


def test_a_generation_that_is_no_integer_of_the_database_is_refused(server):
    a = Client(server.remote)
    assert a.write(rows.claim([Claim(1, None, 2**63 - 1)], "a")) and not a.database.refused
    assert not a.write(rows.claim([Claim(1, 2**63 - 1, 2**63), Claim(2, None, 1)], "b"), seconds=0)
    assert a.database.refused
    assert not a.write(rows.claim([Claim(1, 3, 4)], "b"), seconds=0)  # somebody was faster
    assert not a.database.refused
    assert a.database.view().bridges == {1: Bridge("a", 2**63 - 1)}


def test_a_row_that_was_removed_leaves_its_generation_behind(server):
    a, b = Client(server.remote), Client(server.remote)
    assert a.write(rows.claim([Claim(1, None, 5), Claim(2, None, 9), Claim(3, None, 1)], "a"))
    assert a.write(rows.remove({1: 5, 2: 8, 7: 1}))  # another has claimed 2 meanwhile, and removed 7
    assert not a.write(rows.remove({1: 5, 2: 8}), seconds=0)
    b.until(lambda: b.database.filled and len(b.database.view().bridges) == 2)
    assert b.database.view() == View({}, {2: Bridge("a", 9), 3: Bridge("a", 1)}, 5)
    assert b.write(rows.remove({3: 1}))
    assert b.database.view() == View({}, {2: Bridge("a", 9)}, 5)
    assert not b.write(rows.claim([Claim(1, None, 5)], "b"), seconds=0)
    assert b.write(rows.claim([Claim(1, None, 6)], "b"))
    assert b.write(rows.remove({2: 9}))
    a.until(lambda: a.database.view() == View({}, {1: Bridge("b", 6)}, 9))


def test_a_view_has_the_rows_as_they_are_now(server):
    a, b = Client(server.remote), Client(server.remote)
    assert a.write(rows.claim([Claim(1, None, 1), Claim(2, None, 1)], "a"))
    b.until(lambda: len(b.database.view().bridges) == 2)
    assert a.write(rows.claim([Claim(1, 1, 2)], "c"))
    b.until(lambda: b.database.view().bridges == {1: Bridge("c", 2), 2: Bridge("a", 1)})
    server.kill()
    b.until(lambda: not b.database.connected)
    server.start()
    assert a.write(rows.claim([Claim(2, 1, 3)], "c"), 20)
    b.until(lambda: b.database.view().bridges == {1: Bridge("c", 2), 2: Bridge("c", 3)}, 20)


def test_requests_are_stored_together_and_only_as_expected(server):
    a, b = Client(server.remote), Client(server.remote)
    assert a.write(rows.put({("policy", ""): '"sed"', ("tenant", "x"): "1"}, {}))
    b.until(lambda: len(b.requests()) == 2)
    assert not b.write(rows.put({("tenant", "x"): "3"}, {("tenant", "x"): "2"}), seconds=0)
    assert b.write(rows.put({("tenant", "x"): "3", ("policy", ""): None}, {("tenant", "x"): "1"}))
    assert b.requests() == {("tenant", "x"): "3"}
    a.until(lambda: a.requests() == {("tenant", "x"): "3"})


@pytest.mark.parametrize(("key", "value"), ((("policy", ""), "1"), (("tenant", "x"), None)))
def test_what_seems_to_change_nothing_is_stored_where_there_is_something_later(server, key, value):
    late, other = Client(server.remote), Client(server.remote)
    assert late.write(rows.put({("policy", ""): "1"}, {}))
    assert other.write(rows.put({("policy", ""): "2", ("tenant", "x"): "2"}, {}))
    results = []
    late.database.write(rows.put({key: value}, {}), results.append)
    late.database.work()
    assert late.requests() == {("policy", ""): "1"}  # it has not seen the later ones yet
    late.until(lambda: results)
    assert results == [True]
    other.until(lambda: other.requests().get(key) == value)


def test_an_update_of_a_row_that_has_been_made_anew_is_not_reported_as_stored(server):
    late, other = Client(server.remote), Client(server.remote)
    assert late.write(rows.put({("policy", ""): "1"}, {}))
    for value in (None, "2"):
        other.until(lambda: other.database.connected)
        assert other.write(rows.put({("policy", ""): value}, {}))
    results = []
    late.database.write(rows.put({("policy", ""): "3"}, {}), results.append, 5.0)
    late.database.work()
    late.until(lambda: results)
    assert results == [False] and late.requests() == other.requests() == {("policy", ""): "2"}


@pytest.mark.parametrize("later", (None, "3"))
def test_a_second_attempt_replaces_nothing_that_was_stored_after_the_first(server, later):
    late, other = Client(server.remote), Client(server.remote)
    assert late.write(rows.put({("policy", ""): "1"}, {}))
    other.until(lambda: other.requests())
    results = []
    late.database.write(rows.put({("policy", ""): "2"}, {}), results.append, 20.0)
    late.database.work()
    other.until(lambda: other.requests() == {("policy", ""): "2"})
    if later is not None:
        assert other.write(rows.put({("policy", ""): later}, {}))
    late.database._idl.force_reconnect()  # before it has the answer
    late.until(lambda: results, 20)
    assert results == [later is None]
    assert late.requests() == {("policy", ""): later or "2"}


def test_an_urgent_transaction_is_carried_out_before_those_that_wait(server):
    a, order = Client(server.remote), []
    a.until(lambda: a.database.connected)
    for number in range(4):
        put = rows.put({("tenant", str(number)): "1"}, {})
        a.database.write(put, lambda _, number=number: order.append(number), 5.0)
    a.database.work()  # the first one is on its way
    a.database.write(rows.beat(Member("a/1", "a"), {}), lambda _: order.append("beat"), 5.0, urgent=True)
    a.until(lambda: len(order) == 5)
    assert order == [0, "beat", 1, 2, 3]


def test_a_request_that_could_not_begin_in_its_time_is_not_carried_out_later(server):
    a, results = Client(server.remote), []
    a.until(lambda: a.database.connected)
    server.signal(signal.SIGSTOP)
    a.database.write(rows.put({("tenant", "x"): "1"}, {}), results.append)
    a.database.write(rows.put({("tenant", "y"): "1"}, {}), results.append, 0.1, within=0.1)
    a.database.write(rows.put({("tenant", "z"): "1"}, {}), results.append, 60.0, within=60.0)
    a.database.work()
    time.sleep(0.2)
    server.signal(signal.SIGCONT)
    a.until(lambda: len(results) == 3)
    assert results == [True, False, True]
    assert a.requests() == {("tenant", "x"): "1", ("tenant", "z"): "1"}


def test_rows_are_found_without_a_look_at_all(server, monkeypatch):
    a = Client(server.remote)
    assert a.write(rows.put({("tenant", "x"): "1", ("tenant", "y"): "1"}, {}))
    assert a.write(rows.claim([Claim(1, None, 1)], "a/1"))
    looked = []
    monkeypatch.setattr(a.database, "_rows", looked.append)
    for change in (
        rows.put({("tenant", "x"): "2", ("tenant", "z"): "2"}, {("tenant", "y"): "1"}),
        rows.claim([Claim(1, 1, 2)], "a/2"),
        rows.beat(Member("a/1", "a"), {1: 5}),
        rows.remove({1: 1}),
    ):
        transaction = ovs.db.idl.Transaction(a.database._idl)
        change(a.database, transaction)
        transaction.abort()
    assert looked == []


def test_a_server_that_comes_back_has_everything_and_is_found(server):
    a = Client(server.remote)
    assert a.write(rows.put({("tenant", "x"): "1", ("tenant", "y"): "1"}, {}))
    server.kill()
    a.until(lambda: not a.database.connected)
    assert not a.write(rows.put({("tenant", "x"): "2"}, {}), seconds=0.5)
    server.start()
    assert a.write(rows.put({("tenant", "y"): None}, {}))
    assert a.requests() == {("tenant", "x"): "1"}


@pytest.mark.parametrize("role", ("leader", "follower"))
def test_a_server_that_is_cut_off_commits_nothing(cluster, role):
    leader = cluster.leader()
    lonely = leader if role == "leader" else cluster.others(leader)[0]
    a = Client(lonely.remote)
    b = Client(",".join(each.remote for each in cluster.others(lonely)))
    a.until(lambda: a.write(rows.claim([Claim(1, None, 1)], "a")) or a.database.view().bridges, 60)
    b.until(lambda: b.database.view().bridges, 60)
    cluster.cut(lonely)
    results = []
    a.database.write(rows.claim([Claim(1, 1, 2)], "a"), results.append)
    a.database.write(rows.put({("tenant", "x"): "1", ("tenant", "y"): "1"}, {}), results.append)
    a.database.work()  # it is on its way before the server knows that it is alone
    # An answer that an election takes away is no reason to fail: what counts are the rows.
    before = dict(b.database.view().bridges)
    b.until(lambda: b.write(rows.claim([Claim(1, 1, 2)], "b")) or b.database.view().bridges != before, 60)
    assert b.database.view().bridges == {1: Bridge("b", 2)}
    b.until(lambda: b.write(rows.put({("tenant", "x"): "2"}, {})), 60)
    a.until(lambda: len(results) == 2, 60)
    assert results == [False, False]
    cluster.mend()
    a.until(lambda: a.database.view().bridges == {1: Bridge("b", 2)}, 60)
    # What the server had from its clients comes to the others late, and has no effect.
    a.until(lambda: a.write(rows.put({("tenant", "z"): "3"}, {})), 60)
    for each in (a, b):
        each.until(lambda each=each: ("tenant", "z") in each.requests(), 60)
        assert each.requests() == {("tenant", "x"): "2", ("tenant", "z"): "3"}
        assert each.database.view().bridges == {1: Bridge("b", 2)}


def test_a_server_that_is_cut_off_does_not_confirm_what_it_has_already(cluster):
    lonely = cluster.others(cluster.leader())[0]
    a = Client(lonely.remote)
    b = Client(",".join(each.remote for each in cluster.others(lonely)))
    a.until(lambda: a.write(rows.put({("policy", ""): "1"}, {})), 60)
    b.until(lambda: b.requests(), 60)
    cluster.cut(lonely)
    b.until(lambda: b.write(rows.put({("policy", ""): "2"}, {})), 60)
    # For this server there is nothing to do.
    results = []
    a.database.write(rows.put({("policy", ""): "1"}, {}), results.append)
    a.until(lambda: results, 60)
    assert results == [False]
    assert a.requests() == {("policy", ""): "1"}


def test_a_server_has_a_clock_of_its_own(cluster):
    leader, day = cluster.leader(), 86400
    now = time.time()
    leader.clock.step(7 * day)
    a = Client(leader.remote)
    a.until(lambda: a.write(rows.put({("tenant", "x"): "1"}, {})), 60)
    dates = [int(each) / 1000 for each in re.findall(r'"_date":(\d+)', leader.file.read_text())]
    assert max(dates) > now + 6 * day


class Echoing(threading.Thread):
    """A server that answers echoes, and nothing else."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.remote = f"tcp:127.0.0.1:{self.listener.getsockname()[1]}"
        self.met = 0
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.met += 1
                while text := connection.recv(65536):
                    if b'"echo"' in text:
                        connection.sendall(b'{"id":"echo","result":[],"error":null}')


def test_a_server_that_only_answers_echoes_is_left(server, monkeypatch):
    monkeypatch.setattr(rows, "_STILL", 3.0)
    monkeypatch.setattr(
        random, "shuffle", lambda remotes: remotes.sort(key=lambda each: each == server.remote)
    )
    deaf = Echoing()
    try:
        a = Client(f"{deaf.remote},{server.remote}")
        a.until(lambda: a.database.connected, 20)
        assert deaf.met == 1
        # Nobody writes: the rows stand still. It is asked again, and has them all.
        before = a.database._idl._session.get_seqno()
        a.until(lambda: a.database._idl._session.get_seqno() > before, 20)
        a.until(lambda: a.database.connected, 30)
        assert a.write(rows.beat(Member("a/1", "a"), {}), 20)
    finally:
        deaf.listener.close()


class Controller:
    """One of several in this process: it beats, claims, sends rules and stores requests."""

    def __init__(self, name, remote, switches):
        self.name, self.remote, self.switches = name, remote, switches
        self.paused = self.isolated = False
        self.stores = True
        self.process = 0
        self.database = None
        self.stored, self.tried = set(), 0  # its own requests: those that are confirmed, the last on its way
        self.spans = {}  # of those that are confirmed: when they began, and were confirmed
        self.tried_at = 0.0
        self.born()

    def born(self):
        if self.database is not None:
            self.database.close()
        self.process += 1
        self.id = f"{self.name}/{self.process}"
        self.database = Database(self.remote, LOG)
        self.ownership = Ownership(self.id, Together.NONE, 3 * BEAT)
        self.beat_at, self.beating, self.claiming, self.storing = 0.0, False, False, False
        self.held, self.owned = {}, {}
        for switch in self.switches.values():
            switch.master = None if switch.master is self else switch.master

    def step(self, now):
        if self.paused:
            return
        if not self.isolated:
            self._talk(now)
        for dpid in [dpid for dpid, generation in self.held.items() if self.owned.get(dpid) != generation]:
            del self.held[dpid]
        for dpid, generation in self.owned.items():
            switch = self.switches[dpid]
            if (dpid not in self.held or switch.master is not self) and switch.obeys(self, generation):
                self.held[dpid] = generation
            if dpid in self.held:
                switch.rule(self, generation)

    def _talk(self, now):
        database = self.database
        database.step()
        self.owned = database.view().owned(self.id)
        if not self.beating and now - self.beat_at >= BEAT:
            self.beat_at, self.beating = now, True
            member = Member(self.id, self.name, reach=dict.fromkeys(self.switches, TO_AGENT))
            database.write(rows.beat(member, {}), lambda _: setattr(self, "beating", False))
        claims = self.ownership.plan(database.view(), now)
        if claims and not self.claiming:
            self.claiming = True
            database.write(rows.claim(claims, self.id), lambda _: setattr(self, "claiming", False))
        if self.stores and not self.storing and database.connected and now - self.tried_at >= BEAT / 2:
            self.tried_at, self.storing = now, True
            self.tried += 1
            # One that lasts, one that each later one replaces, and one that everybody replaces.
            changes = {(self.name, str(self.tried)): "1", ("last", self.name): str(self.tried)}
            changes["shared", ""] = f"{self.name} {self.tried}"
            database.write(rows.put(changes, {}), self._stored, 1.0)
        database.work()

    def _stored(self, done):
        self.storing = False
        if done:
            self.stored.add(self.tried)
            self.spans[f"{self.name} {self.tried}"] = self.tried_at, time.monotonic()


class Watch:
    """Follows the owners of each generation, and what everybody stores."""

    def __init__(self, remote):
        self.database, self.owners = Database(remote, LOG), {}
        self.shared = []

    def look(self):
        self.database.step()
        for dpid, row in self.database.view().bridges.items():
            before = self.owners.setdefault((dpid, row.generation), row.owner)
            assert before == row.owner, "a generation has two owners"
        value = self.database.take_requests().get(("shared", ""))
        if value is not None and value not in self.shared[-1:]:
            assert value not in self.shared, "a request has replaced a later one"
            self.shared.append(value)


class History:
    """Three controllers and a cluster of three servers, for some seconds with faults."""

    def __init__(self, cluster, seed):
        self.cluster, self.random = cluster, random.Random(seed)
        self.switches = {dpid: Switch(dpid) for dpid in range(1, 7)}
        self.controllers = [Controller(name, cluster.remote, self.switches) for name in "abc"]
        self.watch = Watch(cluster.remote)

    def run(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for each in self.controllers:
                each.step(time.monotonic())
            self.watch.look()
            time.sleep(0.01)

    def run_until(self, condition):
        deadline = time.monotonic() + patient(120)
        while not condition():
            assert time.monotonic() < deadline, self.describe()
            self.run(0.5)

    def fault(self, kind):
        chosen = self.random.choice(self.controllers)
        server = self.random.choice(self.cluster.servers)
        if kind == "kill leader":
            leader = self.cluster.leader()
            leader.kill()
            self.run(self.random.uniform(1, 4))
            leader.start()
        elif kind == "stop server":
            server.signal(signal.SIGSTOP)
            self.run(self.random.uniform(1, 5))
            server.signal(signal.SIGCONT)
        elif kind == "cut off leader":
            self.cut_off(self.cluster.leader())
        elif kind == "cut off server":
            self.cut_off(server)
        elif kind == "cut link":
            self.cluster.cut(server, self.random.choice(self.cluster.others(server)))
            self.run(self.random.uniform(1, 5))
            self.cluster.mend()
        elif kind == "step clock":
            server.clock.step(self.random.randint(-(10**6), 10**6))
            self.run(self.random.uniform(1, 3))
            server.clock.step(0)
        elif kind == "switch":
            switch = self.random.choice(list(self.switches.values()))
            switch.restart()
            for each in self.controllers:
                each.held.pop(switch.dpid, None)
        elif kind == "restart":
            chosen.born()
        else:
            what = "paused" if kind == "pause" else "isolated"
            setattr(chosen, what, True)
            self.run(self.random.uniform(0.5, 4))
            setattr(chosen, what, False)
        self.run(self.random.uniform(0.2, 2))

    def cut_off(self, server):
        """A server runs and answers, but does not reach the others: they go on, under a leader of theirs."""
        self.cluster.cut(server)
        self.run(self.random.uniform(0.5, 2))
        self.run_until(lambda: any(each.leads for each in self.cluster.others(server)))
        self.run_until(lambda: not server.leads)
        before = [len(each.stored) for each in self.controllers]
        self.run_until(lambda: before != [len(each.stored) for each in self.controllers])
        self.cluster.mend()

    def check(self):
        for switch in self.switches.values():
            of = {}
            before = (-1, 0)
            for (owner, generation, current), life in zip(switch.rules, switch.lives, strict=True):
                assert of.setdefault(generation, owner) == owner, "two owners' rules of one generation"
                assert generation == current
                assert (life, generation) >= before, "a rule of an earlier owner after one of a later"
                assert self.watch.owners.get((switch.dpid, generation), owner) == owner
                before = life, generation

    def settled(self):
        view = self.watch.database.view()
        masters = {dpid: getattr(switch.master, "id", None) for dpid, switch in self.switches.items()}
        owners = {dpid: row.owner for dpid, row in view.bridges.items()}
        counts = [len(view.owned(each.id)) for each in self.controllers]
        return masters == owners and max(counts) - min(counts) <= 1

    def describe(self):
        """What the databases and servers say, for people."""
        masters = {dpid: getattr(each.master, "id", None) for dpid, each in self.switches.items()}
        said = [f"masters: {masters}"]
        databases = {"watch": self.watch.database, **{each.id: each.database for each in self.controllers}}
        for name, database in databases.items():
            session, view = database._idl._session, database.view()
            beats = {each.id: each.beat for each in view.members.values()}
            owners = {dpid: (row.owner, row.generation) for dpid, row in view.bridges.items()}
            state = session.reconnect.state.name, database._idl.state, session.get_name()
            said.append(f"{name}: {state}, beats {beats}, owners {owners}")
        said += [f"{each.remote}: {each.ask('cluster/status', NAME)}" for each in self.cluster.servers]
        return "\n".join(said)

    def stored(self):
        """Whether the cluster has what it has confirmed, or something later."""
        reader = Client(self.cluster.remote)
        reader.until(lambda: reader.database.filled)
        found = reader.requests()
        reader.database.close()
        spans = {value: span for each in self.controllers for value, span in each.spans.items()}
        confirmed = spans.get(found["shared", ""], (0.0, float("inf")))[1]
        assert all(began < confirmed for began, _ in spans.values()), "a stored request is lost"
        for each in self.controllers:
            there = {int(key) for kind, key in found if kind == each.name}
            assert each.stored, "nothing was stored"
            assert each.stored <= there, "a stored request is lost"
            assert max(there) == int(found["last", each.name]) <= each.tried, "an earlier request came later"


@pytest.mark.parametrize("seed", range(3))
def test_a_history_with_faults_of_controllers_and_servers(cluster, seed):
    history = History(cluster, seed)
    history.run(3)
    for kind in history.random.sample(FAULTS, len(FAULTS)):
        history.fault(kind)
        history.check()
    for each in history.controllers:
        each.stores = False
    history.run_until(history.settled)
    history.check()
    history.stored()
