"""A controller among others: what it does with the rows, and what it shows. The database is a few dicts."""

import logging
from types import SimpleNamespace

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import oxm
from fairq_ryu.cluster import ownership
from fairq_ryu.cluster.ownership import MISSES, Together
from fairq_ryu.cluster.view import TO_AGENT, Bridge, Member, View
from fairq_ryu.control.ownership import owners as module
from fairq_ryu.control.ownership.owners import Owners
from fairq_ryu.rest.schema.state import Cluster
from tests.support.fakes import FakeSwitch

ME = Member("a/1", "a", "http://10.0.0.1:8080", "same")
LEASE = 2.0
# The last integer of OVSDB.
LAST = 2**63 - 1
REFUSED = object()


class Rows:
    """The database: transactions are carried out at once; if it is ``down``, they fail, if ``slow``, wait."""

    def __init__(self):
        self.members, self.bridges, self.texts = {}, {}, {}
        self.down, self.slow, self.changed = False, False, False
        self.connected, self.refused = True, False
        self.urgent = {}  # whether each kind of transaction was urgent, the last time

    def step(self):
        changed, self.changed = self.changed, False
        return changed

    def work(self):
        pass

    def view(self):
        return View(dict(self.members), dict(self.bridges))

    def take_requests(self):
        found, self.texts = self.texts, {}
        return found

    def write(self, change, over=lambda _: None, seconds=0.0, urgent=False, within=None):
        self.urgent[change.__name__], self.within = urgent, within
        if self.slow:
            return
        self.refused = False
        if not self.down:
            self.refused = change() is REFUSED
            self.changed = True
        over(not self.down and not self.refused)


@pytest.fixture
def site(monkeypatch):
    return Site(monkeypatch)


class Site:
    def __init__(self, monkeypatch):
        self.rows, self.log, self.requested = Rows(), [], []
        monkeypatch.setattr(module.rows, "beat", self.beat)
        monkeypatch.setattr(module.rows, "claim", self.claim)
        monkeypatch.setattr(module.rows, "leave", self.leave)
        monkeypatch.setattr(module.rows, "remove", self.remove)
        self.removals = []
        self.owners = Owners(
            self.rows,
            ME,
            Together.NONE,
            False,
            LEASE,
            lambda datapath: self.log.append(("gained", datapath.id)),
            lambda datapath, why: self.log.append(("lost", datapath.id, why)),
            lambda dpid: self.log.append(("dropped", dpid)),
            lambda dpid: 14,
            logging.getLogger("test"),
            self.requested.append,
        )
        self.now = 0.0

    def beat(self, member, loads):
        def beat():
            before = self.rows.members.get(member.id, member)
            self.rows.members[member.id] = member._replace(beat=before.beat + 1)
            for dpid, load in loads.items():
                self.rows.bridges[dpid] = self.rows.bridges[dpid]._replace(load=load)

        return beat

    def claim(self, claims, owner):
        def claim():
            if any(each.generation > LAST for each in claims):
                return REFUSED
            for each in claims:
                self.rows.bridges[each.dpid] = Bridge(owner, each.generation)

        return claim

    def leave(self, member, beat=None):
        def leave():
            del self.rows.members[member]

        return leave

    def remove(self, bridges):
        def remove():
            self.removals.append(bridges)
            for dpid, generation in bridges.items():
                assert self.rows.bridges.pop(dpid).generation == generation

        return remove

    def run(self, beats):
        for _ in range(beats):
            self.now += 1.001 * self.owners.beat
            self.owners._step(self.now)

    def connect(self, number):
        switch = FakeSwitch(number)
        switch.owned = False
        self.owners.connected(switch)
        return switch

    def confirm_after(self, switch):
        """It is claimed, and accepts the role."""
        self.run(MISSES + 6)
        self.confirm(switch)

    def refuse(self, switch, generation):
        """The switch refuses the role that was requested last, because it has seen this generation."""
        self.owners.role_reply(
            SimpleNamespace(datapath=switch, role=ofp.OFPCR_ROLE_EQUAL, generation_id=generation)
        )

    def confirm(self, switch):
        """The switch accepts the role that was requested last."""
        asked = [each for each in switch.sent if each.msg_type == ofp.OFPT_ROLE_REQUEST][-1]
        reply = SimpleNamespace(datapath=switch, role=asked.role, generation_id=asked.generation_id)
        self.owners.role_reply(reply)


def test_a_lease_has_room_for_the_beats_and_for_what_follows(site):
    assert (MISSES + 1) * site.owners.beat < 0.75 * LEASE


def test_a_switch_is_claimed_fenced_used_and_given_up(site):
    agent = site.connect(oxm.agent_dpid(5))
    site.run(MISSES + 6)
    assert site.rows.bridges == {5: Bridge("a/1", 1, 14)}
    assert site.log == []  # it has not confirmed yet
    site.confirm(agent)
    assert site.log == [("gained", agent.id)]
    site.rows.bridges[5] = Bridge("b/1", 2, 14)
    site.rows.members["b/1"] = Member("b/1", "b", settings="same", reach={5: TO_AGENT})
    site.rows.changed = True
    site.owners._step(site.now)
    kinds = [each[0] for each in site.log]
    assert kinds == ["gained", "lost", "dropped"] and "another controller" in site.log[1][2]
    assert agent.sent[-1].role == ofp.OFPCR_ROLE_SLAVE and agent.sent[-1].generation_id == 2


def test_a_bridge_that_connects_where_only_agents_are_governed_gets_no_message(site, caplog):
    site.owners.agents_only = True
    with caplog.at_level(logging.WARNING):
        bridge, agent = site.connect(5), site.connect(oxm.agent_dpid(5))
    assert caplog.text.count("bridge 0000000000000005: it is connected, and left alone") == 1
    site.run(MISSES + 6)
    assert site.rows.members["a/1"].reach == {5: TO_AGENT}
    site.confirm(agent)
    site.rows.bridges[5] = Bridge("b/1", 2, 14)
    site.rows.members["b/1"] = Member("b/1", "b", settings="same", reach={5: TO_AGENT})
    site.rows.changed = True
    site.run(1)
    site.owners.disconnected(bridge)
    assert bridge.sent == [] and [each[0] for each in site.log] == ["gained", "lost", "dropped"]


def test_beats_go_on_after_a_fault_between_two(site):
    agent = site.connect(oxm.agent_dpid(5))
    site.run(MISSES + 6)
    site.confirm(agent)
    before, load = site.rows.members[ME.id].beat, site.owners.load
    site.owners.load = lambda _: 1 // 0
    with pytest.raises(ZeroDivisionError):
        site.run(1)
    site.owners.load = load
    site.run(3)
    assert site.rows.members[ME.id].beat == before + 3


def test_what_fails_while_a_bridge_is_dropped_is_tried_again_and_delays_no_beats(site):
    for dpid in (5, 6):
        site.confirm_after(site.connect(oxm.agent_dpid(dpid)))
    dropped, site.owners.dropped = site.owners.dropped, lambda _: 1 // 0
    site.rows.bridges = {5: Bridge("b/1", 2, 14), 6: Bridge("b/1", 2, 14)}
    site.rows.members["b/1"] = Member("b/1", "b", settings="same", reach={5: TO_AGENT, 6: TO_AGENT})
    site.rows.changed = True
    before = site.rows.members[ME.id].beat
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            site.run(1)
    assert site.rows.members[ME.id].beat == before + 3
    # The switches are told at once.
    assert [each[0] for each in site.log] == ["gained", "gained", "lost", "lost"]
    site.owners.dropped = dropped
    site.run(2)
    assert site.log[4:] == [("dropped", 5), ("dropped", 6)]


def test_a_connection_that_ends_is_lost_but_its_bridge_is_not_dropped(site):
    agent = site.connect(oxm.agent_dpid(5))
    site.run(MISSES + 6)
    site.confirm(agent)
    site.owners.disconnected(agent)
    assert site.log[1:] == [("lost", agent.id, "connection lost")]


def test_without_the_database_what_is_there_goes_on(site):
    agent = site.connect(oxm.agent_dpid(5))
    site.run(MISSES + 6)
    site.confirm(agent)
    site.rows.down = True
    before = dict(site.rows.bridges)
    site.run(100)
    assert site.rows.bridges == before and site.log == [("gained", agent.id)]


def test_the_dead_are_removed_after_a_while(site):
    site.rows.members["b/1"] = Member("b/1", "b", settings="same", beat=7)
    site.run(60 * MISSES)
    assert "b/1" in site.rows.members
    site.run(MISSES)
    assert "b/1" not in site.rows.members


def test_a_switch_with_a_later_generation_is_claimed_with_one_later_still_while_it_is_there(site):
    agent = site.connect(oxm.agent_dpid(5))
    site.run(MISSES + 6)
    site.refuse(agent, 57)
    site.run(1)
    assert site.rows.bridges[5].generation == 58
    site.refuse(agent, 100)
    site.owners.disconnected(agent)
    site.run(1)
    assert site.rows.bridges[5].generation == 58
    # While one of its two connections is there, what the other has said counts.
    agent = site.connect(oxm.agent_dpid(5))
    site.connect(5)
    site.refuse(agent, 100)
    site.owners.disconnected(agent)
    site.run(1)
    assert site.rows.bridges[5].generation == 101


def test_a_peer_that_lies_about_its_generation_does_not_keep_others_from_an_owner(site, caplog):
    peer = site.connect(oxm.agent_dpid(666))
    site.run(MISSES + 6)
    site.connect(oxm.agent_dpid(5))
    with caplog.at_level(logging.WARNING):
        for generation in (LAST, LAST - 1, LAST):
            site.refuse(peer, generation)
    site.run(MISSES + 6)
    assert site.rows.bridges == {666: Bridge("a/1", 1, 14), 5: Bridge("a/1", 1, 14)}
    assert [each.getMessage()[:23] for each in caplog.records] == ["bridge 000000000000029a"]


def test_a_claim_that_the_server_refuses_does_not_keep_others_from_being_carried_out(site):
    # One that people have written, or that was made before such generations were not believed.
    site.rows.bridges[666] = Bridge("gone", LAST)
    for dpid in (5, 666, 7):
        site.connect(oxm.agent_dpid(dpid))
    site.run(MISSES + 6)
    assert {dpid: row.owner for dpid, row in site.rows.bridges.items()} == {666: "gone", 5: "a/1", 7: "a/1"}


def test_a_slow_database_is_named_once_a_minute(site, caplog):
    site.run(MISSES)
    site.rows.slow = True
    with caplog.at_level(logging.WARNING):
        site.run(1 + 3 - 1)  # a beat waits for less than three beats
        assert caplog.text == ""
        site.run(int(61 / site.owners.beat))
    assert caplog.text.count("the database has not confirmed a beat for 0.6 s") == 1
    assert len(caplog.records) == 2


def test_rows_of_bridges_that_nobody_reaches_are_removed_after_a_while_some_at_a_time(site, monkeypatch):
    monkeypatch.setattr(module, "_FORGET_BRIDGE", 2)
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    site.rows.bridges = {dpid: Bridge("gone", dpid) for dpid in (5, 6, 7, 8)}
    site.connect(oxm.agent_dpid(6))
    site.run(2 * MISSES + 1)
    assert site.removals == [] and len(site.rows.bridges) == 4
    site.run(1)
    assert site.removals == [{5: 5, 7: 7}]
    site.run(1)
    assert site.removals == [{5: 5, 7: 7}, {8: 8}] and list(site.rows.bridges) == [6]


def test_where_there_are_many_rows_those_that_nobody_reaches_are_removed_earlier(site, monkeypatch):
    monkeypatch.setattr(module, "_FORGET", 2)
    monkeypatch.setattr(module, "MOST_BRIDGES", 6)
    site.rows.bridges = {dpid: Bridge("gone", dpid) for dpid in (5, 6, 7)}
    site.run(10 * MISSES)
    assert site.removals == []
    site.rows.bridges[8] = Bridge("gone", 8)
    site.run(1)
    assert site.removals == [{5: 5, 6: 6, 7: 7}]


def test_bridges_that_are_too_many_are_named_once_a_minute(site, monkeypatch, caplog):
    monkeypatch.setattr(ownership, "MOST_BRIDGES", 1)
    for dpid in (5, 6, 7):
        site.connect(oxm.agent_dpid(dpid))
    site.run(10 * MISSES)
    assert list(site.rows.bridges) == [5]
    assert caplog.text.count("the database has 0 bridges: 2 more, such as 0000000000000006, are not") == 1


def test_other_settings_are_named_once(site, caplog):
    site.rows.members["b/1"] = Member("b/1", "b", settings="other", beat=7)
    with caplog.at_level(logging.WARNING):
        site.run(5)
    assert caplog.text.count("the settings of controller b are not the same as here") == 1


def test_requests_that_wait_delay_neither_beats_nor_claims(site, monkeypatch):
    monkeypatch.setattr(module.rows, "put", lambda changes, expected: lambda: None)
    site.connect(oxm.agent_dpid(5))
    site.run(MISSES + 6)
    site.owners.store({("policy", ""): '"sed"'}, {})
    assert site.rows.urgent == {"beat": True, "claim": True, "<lambda>": False}
    assert site.rows.within == module._STORING


def test_requests_are_carried_out(site):
    site.rows.texts = {("policy", ""): '"sed"'}
    site.run(2)
    assert site.requested == [{("policy", ""): '"sed"'}]


def test_what_people_may_read(site):
    site.connect(oxm.agent_dpid(5))
    site.rows.members["b/1"] = Member("b/1", "b", "http://10.0.0.2:8080", "same", beat=7)
    site.run(MISSES + 6)
    found = Cluster.model_validate(site.owners.cluster())
    assert [(row.name, row.alive, row.bridges, row.load) for row in found.controllers] == [
        ("a", True, 1, 14),
        ("b", False, 0, 0),
    ]
    assert [(row.dpid, row.owner, row.generation) for row in found.bridges] == [("0000000000000005", "a", 1)]
    assert site.owners.others() == [("b", "http://10.0.0.2:8080", False)]


def test_a_controller_that_was_started_anew_is_not_missing(site):
    """Its dead process has a row for a while; so has an earlier one of ours."""
    for each in ("b/1", "b/2", "c/1", "a/0"):
        site.rows.members[each] = Member(each, each[0], f"http://{each[0]}", "same", beat=5)
    site.rows.changed = True
    for _ in range(MISSES + 6):
        site.rows.members["b/2"] = site.rows.members["b/2"]._replace(beat=site.rows.members["b/2"].beat + 1)
        site.run(1)
    assert site.owners.others() == [("b", "http://b", True), ("c", "http://c", False)]
