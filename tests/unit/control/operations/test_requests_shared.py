"""Two controllers with one database: what is asked of one, both carry out, and a third that starts later."""

import dataclasses
import time

import pytest

from fairq_ryu.control.operations import far_control
from fairq_ryu.control.operations.announcing import Announcing
from fairq_ryu.control.operations.requests import Key, Requests
from fairq_ryu.errors import UserError
from fairq_ryu.fabric.deadlines.announcements import Full
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.model import FlowKey, PortKey, PortMode
from tests.support.restsite import RestSite

WANTED = Request("10.0.0.1", "10.0.0.2", 80, size=1000, deadline=0.5)


class Database:
    """What all have stored; the next ``conflicts`` attempts come too late."""

    def __init__(self):
        self.texts, self.members, self.conflicts = {}, [], []

    def member(self):
        requests = Requests(self.store)
        self.members.append(requests)
        return requests

    def store(self, changes, expected):
        if self.conflicts:
            self.store(self.conflicts.pop(), {})
        if any(self.texts.get(key) != value for key, value in expected.items()):
            return False
        for key, value in changes.items():
            self.texts[key] = value
            if value is None:
                del self.texts[key]
        for each in self.members:
            each.found(changes)
        return True


class Two:
    def __init__(self):
        self.database = Database()
        self.one, self.other = self.site(), self.site()

    def site(self):
        made = RestSite(policy="sed", requests=self.database.member())
        made.requests.found(self.database.texts)
        return made

    def all(self):
        return (self.one, self.other, self.site())


@pytest.fixture
def two():
    return Two()


def test_the_policy_and_parameters_of_each(two):
    one, other = two.one.service.policy, two.other.service.policy
    one.change("fairq", {})
    other.change(None, {"alpha": 0.25} if _has(other, "alpha") else {})
    one.change("sed", {"margin": 0.8})
    other.change(None, {"threshold": 0.5})
    for site in two.all():
        found = site.service.policy.policy()
        values = {each["name"]: each["value"] for each in found["parameters"]}
        assert (found["policy"], values["margin"], values["threshold"]) == ("sed", 0.8, 0.5)
        assert site.windows.engine.policy.name == "sed"


def _has(view, name):
    return any(each["name"] == name for each in view.policy()["parameters"])


def test_a_wrong_value_is_stored_nowhere(two):
    with pytest.raises(UserError):
        two.one.service.policy.change("sed", {"margin": 7})
    with pytest.raises(UserError):
        two.one.service.policy.change("no-such-policy", {})
    assert two.database.texts == {}


def test_what_one_cannot_carry_out_stays_as_it_was(two):
    two.database.store({("parameter", "sed.margin"): "7", ("policy", ""): '"no-such-policy"'}, {})
    for site in (two.one, two.other):
        assert site.service.policy.policy()["policy"] == "sed"
    two.one.service.policy.change("sed", {"margin": 0.8})
    assert two.other.service.policy.policy()["policy"] == "sed"


def test_tenants(two):
    assert two.one.service.tenants.put("red", ["10.0.1.0/24"], 3)
    assert two.other.service.tenants.put("blue", ["10.0.2.0/24"], 1)
    assert not two.other.service.tenants.put("red", ["10.0.1.0/24"], 5)
    with pytest.raises(UserError, match="both have"):
        two.other.service.tenants.put("green", ["10.0.2.0/24"], 1)
    assert two.one.service.tenants.remove("blue") and not two.one.service.tenants.remove("blue")
    for site in two.all():
        named = [(each.name, each.weight) for each in site.windows.tenants.tenants()]
        assert named == [("red", 5)]


def test_of_two_tenants_that_are_stored_at_once_all_keep_the_same(two):
    text = '{"hosts": ["10.0.1.0/24"], "weight": 1}'
    two.database.store({("tenant", "b"): text, ("tenant", "a"): text}, {})
    for site in two.all():
        assert [each.name for each in site.windows.tenants.tenants()] == ["a"]


@pytest.mark.parametrize("bad", ("[]", "7", '"x"', '{"hosts": 3}', '{"hosts": ["10.0.1.0/99"], "weight": 1}'))
def test_a_tenant_that_cannot_be_read_keeps_no_other_from_being_one(two, bad, caplog):
    good = '{"hosts": ["10.0.1.0/24"], "weight": 1}'
    two.database.store({("tenant", "a"): bad, ("tenant", "b"): good, ("tenant", "c d"): good}, {})
    for site in two.all():
        assert [each.name for each in site.windows.tenants.tenants()] == ["b"]
    for name in ("a", "c d"):
        assert f"tenant {name!r} cannot be as it was requested" in caplog.text


@pytest.mark.parametrize("bad", ("7", "[1, 2]", '{"rate": "fast"}', '{"rate": 7, "buffer": 0, "share": 0.9}'))
def test_a_far_queue_that_cannot_be_read_keeps_no_other_from_being_one(two, bad, caplog):
    good = '{"rate": 1250000, "buffer": 0, "share": 0.98}'
    names = ("x", "", "0000000000000002 eth/0", "0000000000000002 eth1", "0000000000000002 eth2")
    two.database.store({("far_queue", each): good for each in names} | {("far_queue", names[3]): bad}, {})
    for site in two.all():
        assert list(site.windows.far_orders.of(2)) == ["eth2"]
    for each in names[2:4]:
        assert f"the far queue of {each!r} cannot be as it was requested" in caplog.text
    assert "far queues were requested of 'x', which is no bridge" in caplog.text


def test_of_more_far_queues_than_an_agent_can_be_told_it_is_told_as_many_as_it_can(two, monkeypatch, caplog):
    monkeypatch.setattr(far_control, "MOST_TOLD", 2)
    good = '{"rate": 1250000, "buffer": 0, "share": 0.98}'
    two.database.store({("far_queue", f"0000000000000002 eth{each}"): good for each in range(3)}, {})
    for site in two.all():
        assert list(site.windows.far_orders.of(2)) == ["eth0", "eth1"]
    assert "'0000000000000002 eth2' cannot be as it was requested: the bridge has 2 others" in caplog.text


@pytest.mark.parametrize(
    "bad", ("7", '{"dpid": 2}', '{"dpid": null, "port": "x", "name": "", "disabled": true}')
)
def test_a_disable_that_cannot_be_read_keeps_no_other_from_being_one(two, bad, caplog):
    good = '{"dpid": "0000000000000002", "port": 1, "name": "", "disabled": true, "until": null}'
    two.database.store({("disables", ""): f"[{bad}, {good}]"}, {})
    for site in two.all():
        assert site.windows.modes.of(PortKey(2, 1)) is PortMode.DISABLED
        assert site.windows.modes.of(PortKey(2, 2)) is PortMode.ACT
    assert "ports cannot be disabled or enabled as it was requested" in caplog.text
    two.database.store({("disables", ""): bad}, {})
    for site in two.all():
        assert site.windows.modes.of(PortKey(2, 1)) is PortMode.ACT


def test_a_parameter_that_cannot_be_carried_out_keeps_no_other_from_it(two, caplog):
    wrong = {
        "sed.margin": "7",
        "sed.speed": "1",
        "nobody.x": "1",
        "fairq_ryu.lease": "4",
        "fairq.alpha": "[]",
    }
    texts = {("parameter", name): text for name, text in wrong.items()}
    # Each by itself is possible, and more than a quarter of the lease is not.
    texts |= {("parameter", "iqm-paper.interval"): "1.0", ("parameter", "iqm-paper.alpha"): "0.3"}
    two.database.store({**texts, ("parameter", "sed.threshold"): "0.5", ("policy", ""): '["x"]'}, {})
    for site in two.all():
        found = site.service.policy.policy()
        values = {each["name"]: each["value"] for each in found["parameters"]}
        assert (found["policy"], values["margin"], values["threshold"]) == ("sed", 0.9, 0.5)
        assert site.service.policy.config.number("iqm-paper", "alpha") == 0.3
        assert site.service.policy.config.number("fairq_ryu", "lease") == 2
    for name in wrong:
        assert f"parameter {name} cannot be changed as it was requested" in caplog.text
    assert (
        "iqm-paper.interval cannot be changed as it was requested: [iqm-paper] interval = 1 s" in caplog.text
    )
    assert "the policy cannot be changed as it was requested: there is no policy ['x']" in caplog.text


def test_a_disable_of_two_controllers_at_once_has_an_order(two):
    now = time.monotonic()
    first = two.other.modes
    # While one stores its statement, another's is stored: neither is lost.
    first.disable(None, "2:2", 60.0, now)
    conflict = dict(two.database.texts)
    first.enable(None, None, now)
    two.database.conflicts = [conflict]
    two.one.modes.disable(None, "2:1", None, now)
    for site in two.all():
        for port in (1, 2):
            assert site.windows.modes.of(PortKey(2, port)) is PortMode.DISABLED
    two.one.modes.enable(None, None, now)
    for site in two.all():
        assert site.windows.modes.of(PortKey(2, 1)) is PortMode.ACT
        assert not site.windows.modes.disables


def test_a_disable_ends_at_its_time_everywhere(two):
    now = time.monotonic()
    two.one.modes.disable(None, "2:1", 60.0, now)
    late = two.site()
    for site in (two.other, late):
        assert abs(site.windows.modes.disables.next_end - (now + 60)) < 1
        site.modes.tick(now + 62)
        assert site.windows.modes.of(PortKey(2, 1)) is PortMode.ACT


def test_far_queues_are_told_to_agents_by_whoever_owns_them_later(two):
    text = '{"rate": 1250000, "buffer": 0, "share": 0.98}'
    two.database.store({("far_queue", "0000000000000002 eth0"): text}, {})
    two.database.store({("far_queue", "0000000000000009 eth1"): "{}"}, {})
    for site in two.all():
        orders = site.windows.far_orders
        assert orders.of(2)["eth0"].rate == 1_250_000
        assert orders.of(9) == {"eth1": None}


def test_announcements_have_one_number_everywhere(two):
    announcing = Announcing(two.one.windows, two.one.requests, two.one.logger)
    elsewhere = Announcing(two.other.windows, two.other.requests, two.other.logger)
    now = time.monotonic()
    entry = announcing.announce(WANTED, now)
    assert elsewhere.windows.announcements.get(entry.id, now).request.size == 1000
    late = two.site()
    Announcing(late.windows, late.requests, late.logger)
    elsewhere.withdraw(entry.id, now)
    for site in (two.one, two.other):
        with pytest.raises(KeyError):
            site.windows.announcements.get(entry.id, now)
    with pytest.raises(KeyError):
        announcing.withdraw(entry.id, now)


def test_an_announcement_that_is_replaced_leaves_no_request(two):
    one, other = _announcing(two.one), _announcing(two.other)
    now = time.monotonic()
    wanted = dataclasses.replace(WANTED, sport=1000)
    first = one.announce(wanted, now)
    last = other.announce(dataclasses.replace(wanted, size=7), now)
    assert [name for _, name in two.database.texts] == [str(last.id)]
    for each in (one, other):
        assert [entry.id for entry in each.windows.announcements.listed(now)] == [last.id] != [first.id]


def test_an_announcement_whose_flows_have_ended_leaves_no_request(two):
    one, other = _announcing(two.one), _announcing(two.other)
    now = time.monotonic()
    wanted = dataclasses.replace(WANTED, src="10.0.9.9")  # which has no flow yet
    used, left = one.announce(wanted, now), one.announce(dataclasses.replace(wanted, count=2), now)
    announcements = one.windows.announcements
    for port in (1000, 1001):  # the second one has the other announcement, which is for one more
        flow = FlowKey("10.0.9.9", "10.0.0.2", port, 80)
        announcements.flow_started(flow, flow, now, now)
        one.remove_ended()
        assert len(two.database.texts) == (2 if port == 1000 else 1)
        announcements.flow_ended(flow)
        one.remove_ended()
        assert [name for _, name in two.database.texts] == [str(left.id)]
    # Where it has not been used, it stays.
    assert other.windows.announcements.get(used.id, now).left == 1


def test_a_withdrawal_stays_for_those_who_have_not_heard_of_it(two):
    one, other = _announcing(two.one), _announcing(two.other)
    entry = one.announce(WANTED, time.monotonic())
    other.withdraw(entry.id, time.monotonic())
    for each in (one, other):
        each.remove_ended()
    assert len(two.database.texts) == 1


def test_the_number_of_requests_of_announcements_has_a_bound(two):
    one, other = _announcing(two.one), _announcing(two.other)
    for each in (one, other):
        each.windows.announcements.capacity = 3
    now = time.monotonic()
    exact = dataclasses.replace(WANTED, sport=1000)
    one.announce(exact, now)
    for each in (one, other):  # what was withdrawn is stored for a while
        each.withdraw(each.announce(WANTED, now).id, now)
    before = dict(two.database.texts)
    with pytest.raises(Full, match="3 announcements already"):
        other.announce(WANTED, now)
    assert two.database.texts == before
    other.announce(exact, now)  # in place of another
    assert len(two.database.texts) == 3


def test_a_request_for_which_a_controller_has_no_room_is_not_removed_by_it(two):
    one, other = _announcing(two.one), _announcing(two.other)
    other.windows.announcements.capacity = 0
    one.announce(WANTED, time.monotonic())
    other.remove_ended()
    assert len(two.database.texts) == 1


def _announcing(site):
    return Announcing(site.windows, site.requests, site.logger)


def test_the_request_of_an_announcement_is_removed_after_it_has_ended(two, monkeypatch):
    announcing = Announcing(two.one.windows, two.one.requests, two.one.logger)
    entry = announcing.announce(WANTED, time.monotonic())
    announcing.remove_ended()
    assert two.one.requests.get(*Key("announcement", str(entry.id))) is not None
    today = time.time()
    monkeypatch.setattr(time, "time", lambda: today + WANTED.ttl + 31)
    announcing.remove_ended()
    assert two.database.texts == {}
    # What people have written there is removed, too.
    two.database.store(
        {("announcement", "x"): "[]", ("announcement", "7"): '{"until": 1e12, "ttl": "x"}'}, {}
    )
    announcing.remove_ended()
    assert [name for _, name in two.database.texts] == ["7"]
    # Flows that have it keep it.
    assert two.one.windows.announcements.get(entry.id, time.monotonic()) is entry
