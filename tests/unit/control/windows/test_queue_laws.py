"""Queue laws in the controller: who gets one, leases, refusals, and fair shares that are worked out here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.channel import queue_law, window_law
from fairq_ryu.channel.flowmod_decoder import decode_flow_mod
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.channel.window_law import ALL_LAWS, LawCommand
from fairq_ryu.config.loader import Config
from fairq_ryu.control.operations.state import _queue_law
from fairq_ryu.control.windows.queue_laws import beside
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FAR
from fairq_ryu.laws.afq.policy import Afq
from fairq_ryu.laws.codel import CodelLaw
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.model import PortKey, WindowKind, WindowRule
from fairq_ryu.policies.choice import make
from fairq_ryu.queue_law_spec import Limits, QueueLawSpec
from tests.support.agent_peer import Peer
from tests.support.fakes import wire
from tests.support.flownet import B
from tests.support.law_network import Network, policy
from tests.support.site import Obedient, Site

CODEL, RED = CodelLaw(), RedLaw()


class Judging(Obedient):
    """A policy whose ports have this queue law."""

    spec: QueueLawSpec | None = CODEL

    def queue_law(self, port: PortKey) -> QueueLawSpec | None:
        return self.spec


def depth(port: int = 2, backlog: int = 0, limit: int = 125_000, rate: int = 25_000_000) -> QueueDepth:
    return QueueDepth(port, 0, backlog, 0, limit, rate, 0, 0, 1)


def read(site: Site, now: float, **queue: int) -> list[Any]:
    """The queue of port 2 is read; the messages that this makes."""
    site.log.clear()
    site.windows.queues_read(site.link, [depth(**queue)], now)
    return [each for message in site.agent.sent if (each := told(message)) is not None]


def told(message: Any) -> Any:
    """What a message says about queue laws; None: nothing."""
    data = bytes(message.buf)
    if data[1] == ofp.OFPT_FLOW_MOD:
        mod = decode_flow_mod(data)
        return (mod.command, mod.window) if mod.table == 1 else None
    if data[1] == ofp.OFPT_EXPERIMENTER and message.exp_type == queue_law.EXP_TYPE_SET_QUEUE_LAW:
        return queue_law.decode_set(bytes(message.data))
    return None


RULE = ofp.OFPFC_ADD, WindowRule(WindowKind.QUEUE_LAW, 2)


@pytest.fixture
def judging() -> Judging:
    return Judging()


@pytest.fixture
def site(judging: Judging) -> Site:
    return Site(judging)


def test_laws_of_an_earlier_connection_are_removed(judging: Judging) -> None:
    site = Site(judging, agent=False)
    site.connect_agent()
    assert (LawCommand.DELETE, ALL_LAWS, None) in map(told, site.agent.sent)


def test_a_port_without_flows_has_a_law_too_and_its_lease_is_renewed(site: Site) -> None:
    assert read(site, 1.0) == [(LawCommand.ADD, 2, CODEL), RULE]
    assert read(site, 1.2) == []
    assert read(site, 1.5) == [RULE], "a lease of 2 s is renewed after a quarter of it"


def test_a_port_without_a_known_queue_has_none(site: Site) -> None:
    assert read(site, 1.0, limit=0) == [] and read(site, 1.0, rate=0) == []
    read(site, 2.0)
    assert read(site, 2.1, rate=0) == [(LawCommand.DELETE, 2, None)]


def test_a_far_queue_has_none(site: Site) -> None:
    """Its packets have left it when the agent sees them."""
    assert read(site, 1.0, port=FAR | 2) == []


def test_a_law_changes_and_ends_with_its_policy(site: Site, judging: Judging) -> None:
    read(site, 1.0)
    judging.spec = RED
    assert read(site, 1.1) == [(LawCommand.MODIFY, 2, RED)]
    judging.spec = None
    assert read(site, 1.2) == [(LawCommand.DELETE, 2, None)]
    assert read(site, 1.3) == []


def test_a_port_that_does_not_act_has_none(judging: Judging) -> None:
    site = Site(judging, config=Config({("fairq_ryu", "mode"): "observe"}))
    assert read(site, 1.0) == []


def test_a_policy_that_fails_is_asked_once_and_other_ports_keep_theirs(
    site: Site, judging: Judging, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert RULE in read(site, 1.0)
    monkeypatch.setattr(judging, "queue_law", lambda port: "none of ours")
    for now in (1.1, 1.2):
        read(site, now)
    assert caplog.text.count(f"policy {judging.name} failed on port") == 1
    assert site.windows.queue_laws.failures == 1
    monkeypatch.undo()
    assert RULE not in read(site, 9.0), "it is not asked again"


def test_a_port_has_no_law_when_its_agent_has_gone(site: Site) -> None:
    read(site, 1.0)
    key = PortKey(site.link.dpid, 2)
    assert site.windows.queue_laws.shown(key) == (CODEL, None)
    site.windows.agent_disconnected(site.link)
    assert site.windows.queue_laws.shown(key) == (None, None)


def test_a_refusal_is_logged_once_and_tried_again_on_another_queue(site: Site) -> None:
    read(site, 1.0)
    refused = window_law.RefusedLaw(2, "no room")
    assert site.windows.queue_laws.refused(site.link, refused) == "no queue law on port 2: no room"
    assert site.windows.queue_laws.refused(site.link, refused) is None
    assert read(site, 2.0) == []
    assert site.windows.queue_laws.shown(PortKey(1, 2)) == (CODEL, "no room")
    assert read(site, 3.0, limit=60_000)[0] == (LawCommand.ADD, 2, CODEL)


def test_a_law_that_another_controller_deletes_is_sent_again_once(site: Site) -> None:
    read(site, 1.0)
    deleted = window_law.RefusedLaw(2, "no queue law 2", others=True)
    laws = site.windows.queue_laws
    assert [laws.refused(site.link, deleted) for _ in range(2)] == [None, None]
    assert read(site, 1.1) == [(LawCommand.DELETE, 2, None), (LawCommand.ADD, 2, CODEL), RULE]
    assert laws.refused(site.link, deleted) == "no queue law on port 2: no queue law 2"


def test_the_law_of_the_setting_is_that_of_ports_whose_policy_has_none() -> None:
    site = Site(config=Config({("fairq_ryu", "queue_law"): "codel"}))
    (law, _rule) = read(site, 1.0)
    assert law.spec.kind is CodelLaw.kind
    assert beside(Config()) is None
    with pytest.raises(UserError, match="policy droptail has no queue law"):
        beside(Config({("fairq_ryu", "queue_law"): "droptail"}))


def test_the_laws_of_policies_are_made_once() -> None:
    made = make("afq", Config({}))
    assert isinstance(made, Afq) and made.queue_law(PortKey(1, 2)) is made.queue_law(PortKey(1, 3))


def test_states_are_requested_four_times_a_second() -> None:
    site = Site(Judging())
    read(site, 1.0)
    asked = []
    for step in range(1000):
        site.log.clear()
        site.link.send(site.windows.queue_laws.request(site.link, step / 1000))
        asked += [step / 1000] * len(site.agent.sent)
    assert asked[1] - asked[0] == pytest.approx(0.25, abs=0.0011)


# Displays


def test_the_row_of_a_port_has_what_its_law_has_done() -> None:
    spec = Afq(Config().section("afq")).queue_law(PortKey(1, 2))
    state = QueueLawState(2, 2, 1, 1, Limits.SHARE, 90, 5, 3, 80, 2, 500 << 15, 4, 2000, 10, 25_000, 2500)
    row = _queue_law(spec, None, state)
    assert (row["queue_law"], row["queue_law_limits"], row["judged_dropped"]) == ("afq", "share", 5)
    assert (row["fair_share"], row["fair_share_flows"], row["queue_delay_s"]) == (250.0, 4, 0.0025)
    assert row["delay_target_s"] is None, "AFQ has none"
    assert _queue_law(None, None, state)["queue_law"] is None
    old = _queue_law(spec, "old", state)
    assert (old["queue_law"], old["queue_law_missing"], old["judged"]) == ("afq", "old", None)


def judged(site: Site) -> dict[int, int]:
    """How many packets the law of each port has judged, as reported."""
    reported = {number: port.queue_law.state for number, port in site.link.ports.items()}
    return {number: state.judged for number, state in reported.items() if state is not None}


def test_reports_of_ports_without_a_law_are_dropped(site: Site) -> None:
    read(site, 1.0)
    states = [
        QueueLawState(2, 2, 4, 1, 0, judged=7),
        QueueLawState(3, 3, 4, 1, 0),
        QueueLawState(4, 0, 4, 1, 0),
    ]
    site.windows.queue_laws.reported(site.link, states)
    assert judged(site) == {2: 7}
    site.windows.port_removed(PortKey(1, 2))
    assert judged(site) == {}


def test_a_port_that_is_added_again_gets_its_law_again(site: Site) -> None:
    read(site, 1.0)
    site.windows.port_removed(PortKey(1, 2))
    assert read(site, 1.1) == [(LawCommand.ADD, 2, CODEL), RULE]


def test_errors_about_queue_laws_are_no_errors_about_windows(site: Site) -> None:
    request = wire(queue_law.request(site.agent))
    error = SimpleNamespace(type=ofp.OFPET_BAD_REQUEST, code=ofp.OFPBRC_BAD_EXP_TYPE, data=request)
    assert window_law.refused_law(error) is None


# With an agent


def test_the_agent_has_the_law_of_the_policy_beside_that_of_the_windows() -> None:
    net = Network(config=Config({("fairq_ryu", "queue_law"): "mark"}))
    net.read(B)
    number, law, _expires = net.data.queue_laws[B.port]
    assert (number, law.kind, net.rule(B)) == (B.port, MarkLaw.kind, WindowKind.LAW)
    net.site.link.send(net.windows.queue_laws.request(net.site.link, net.now))
    net.deliver()
    assert net.site.link.ports[B.port].queue_law.state.kind == MarkLaw.kind
    assert net.warned == []


def test_a_law_that_the_agent_refuses_is_not_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    net = Network(policy("codel"))
    net.data.limits = {port: QueueLimits("", 0, 0, "it has no qdisc") for port in (1, 2, 3)}
    for _ in range(20):
        net.read(B)
    assert net.data.queue_laws == {} and net.warned == []
    (line,) = [each.getMessage() for each in caplog.records if "queue law" in each.getMessage()]
    assert "it has no qdisc" in line
    assert "it has no qdisc" in str(net.windows.queue_laws.shown(B)[1])


def test_a_connection_begins_anew() -> None:
    net = Network(policy("codel"))
    net.read(B)
    net.data.queue_laws.clear()
    net.connect()
    net.read(B)
    assert net.data.queue_laws[B.port][1].kind == CodelLaw.kind


def test_a_law_that_another_controller_deletes_comes_back() -> None:
    net = Network(policy("codel"))
    net.read(B)
    Peer(net.server).ask(queue_law.set_queue_law(net.site.agent, LawCommand.DELETE, ALL_LAWS))
    assert net.data.queue_laws == {}
    for _ in range(20):
        net.read(B)
    assert net.data.queue_laws[B.port][1].kind == CodelLaw.kind
