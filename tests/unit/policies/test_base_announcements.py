"""Announcing flows to policies that ignore sizes and deadlines: it is declined."""

import logging

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.control.operations.announcing import Announcing
from fairq_ryu.control.operations.requests import Requests
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.policies.base import PortLaw, takes_announcements
from fairq_ryu.policies.choice import PolicyChoice, make
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.rest.views import AnnouncementsView, Declined
from tests.support.site import Site

WANTED = Request("10.0.0.1", "10.0.0.2", 80, size=1000, deadline=0.5)


@pytest.mark.parametrize(
    ("name", "uses"),
    [
        ("fairq", False),
        ("droptail", False),
        ("fixed", False),
        ("iqm", False),
        ("sed", True),
        ("rsed", True),
        ("sed-paper", True),
        ("rsed-paper", True),
    ],
)
def test_which_policies_use_announcements(name, uses):
    assert takes_announcements(make(name, Config())) is uses


@pytest.mark.parametrize("name", ["fairq", "fairswitch", "las"])
def test_deadlines_are_used_where_new_connections_take_turns(name):
    assert takes_announcements(make(name, Config({(name, "turns"): "on"})))
    assert not takes_announcements(make(name, Config({(name, "turns"): "off"})))


class Foreign:
    """A policy of another package, whose laws are of ``kind``."""

    name, interval = "foreign", 0.01

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def port_law(self, port):
        return self.kind()


class Broken:
    def __init__(self):
        raise RuntimeError("no such port")


class Using(PortLaw):
    def announced(self, flow, announcement, now):
        return None


@pytest.mark.parametrize(("law", "ignored"), [(PortLaw, True), (Using, False), (Broken, False)])
def test_laws_of_other_packages_use_announcements_if_they_have_the_method(law, ignored):
    reason = PolicyEngine(Foreign(law), 2).announcements_ignored()
    assert reason == ("the policy in force (foreign) ignores sizes and deadlines" if ignored else None)


def test_one_policy_that_uses_announcements_is_enough():
    fairq, sed = (make(name, Config()) for name in ("fairq", "sed"))
    assert PolicyEngine(PolicyChoice(fairq, (("s1-*", sed),)), 2).announcements_ignored() is None
    assert (
        PolicyEngine(fairq, 2).announcements_ignored()
        == "the policy in force (fairq) ignores sizes and deadlines"
    )


def view_of(site):
    return AnnouncementsView(site.windows, Announcing(site.windows, Requests(), logging.getLogger("test")))


def test_an_announcement_is_declined_or_taken():
    site = Site()
    view = view_of(site)
    assert view.announce(WANTED)["id"] == 1
    site.windows.engine.use(make("fairq", Config()), 1.0)
    with pytest.raises(Declined, match="fairq"):
        view.announce(WANTED)
    assert len(site.windows.announcements) == 1


PRIORITY = Request(WANTED.src, WANTED.dst, 80, priority=400)
BOTH = Request(WANTED.src, WANTED.dst, 80, size=9, priority=400)


@pytest.mark.parametrize(
    ("policy", "taken"), [("tenants", (PRIORITY, BOTH)), ("sed", (WANTED, BOTH)), ("fairq", ())]
)
def test_an_announcement_is_taken_if_the_policy_uses_anything_of_it(policy, taken):
    site = Site()
    site.windows.engine.use(make(policy, Config()), 1.0)
    view = view_of(site)
    for wanted in (WANTED, PRIORITY, BOTH):
        if wanted in taken:
            assert view.announce(wanted)["priority"] == wanted.priority
        else:
            with pytest.raises(Declined, match=policy):
                view.announce(wanted)
