"""The agent's window laws: objects of the channel, as meters are; rules of ports refer to them."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent import layout
from fairq_ryu.agent.law_table import LawTable, parameters
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.qdisc import FAR_KIND, QueueLimits
from fairq_ryu.agent.status import rule_row
from fairq_ryu.agent.turn_queue import TurnCounts
from fairq_ryu.channel import flowmod, framing, window_law
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.window_law import ALL_LAWS, LawCommand, SetLaw, set_law
from fairq_ryu.far_queue import FAR
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.acdc import AcdcLaw
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.laws.registry import window_laws
from fairq_ryu.laws.sed import SedLaw
from fairq_ryu.model import PortKey, RuleChange, RuleTarget, WindowKind, WindowRule
from tests.support.agent_peer import Peer, role
from tests.support.fakes import DATAPATH, FakeDatapath, bridge_port

FAIRQ = FairQLaw()
LIMITS = QueueLimits("netem", 125_000, 25_000_000)


def law_rule(port: int, law: int, lease: int = 2) -> Any:
    rule = WindowRule(WindowKind.LAW, law, FAIRQ)
    return flowmod.window_rule(DATAPATH, RuleChange(RuleTarget(PortKey(1, port), None), rule), lease)


def add(law: int = 1, spec: LawSpec = FAIRQ, command: LawCommand = LawCommand.ADD) -> Any:
    return set_law(DATAPATH, command, law, spec)


# The life of a law


def test_a_law_does_nothing_until_a_rule_refers_to_it(peer: Peer, data: FakeDatapath) -> None:
    assert peer.ask(add()) == []
    assert data.laws == {}
    assert peer.ask(law_rule(1, 1)) == []
    number, law, expires = data.laws[1]
    window, rule_expires, _ = data.installed[1]
    assert (number, law.kind, law.limit, law.rate) == (1, FairQLaw.kind, 125_000, 25_000_000)
    assert window == WindowRule(WindowKind.LAW, 1) and rule_expires == expires


def test_a_law_is_changed_while_it_governs(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.ask(law_rule(1, 1))
    changed = dataclasses.replace(FAIRQ, target_ppm=100_000)
    assert peer.ask(add(1, changed, LawCommand.MODIFY)) == []
    assert data.laws[1][1].target == 12_500


def test_the_rules_that_refer_to_a_deleted_law_are_removed(peer: Peer, data: FakeDatapath) -> None:
    for number in (1, 2):
        peer.ask(add(number))
        rule = law_rule(number, number)
        rule.flags = ofp.OFPFF_SEND_FLOW_REM
        peer.ask(rule)
    (removed,) = peer.ask(set_law(DATAPATH, LawCommand.DELETE, 1))
    assert (removed.msg_type, removed.match["in_port"]) == (ofp.OFPT_FLOW_REMOVED, 1)
    assert data.laws.keys() == data.installed.keys() == {2}
    assert len(peer.ask(set_law(DATAPATH, LawCommand.DELETE, ALL_LAWS))) == 1
    assert data.laws == data.installed == {}
    assert peer.ask(set_law(DATAPATH, LawCommand.DELETE, 1)) == [], "as with meters, that is no error"


def test_a_rule_of_another_kind_takes_the_place_of_the_law(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.ask(law_rule(1, 1))
    peer.set_window(31_250, pool=True)
    assert data.laws == {}
    assert data.installed[1][0] == WindowRule(WindowKind.POOL, 31_250)
    assert peer.ask(law_rule(1, 1)) == []


def test_a_port_that_changes_its_law_frees_the_former(peer: Peer, data: FakeDatapath) -> None:
    for number in (1, 2):
        peer.ask(add(number))
    peer.ask(law_rule(1, 1))
    peer.ask(law_rule(1, 2))
    assert data.laws[1][0] == 2
    assert peer.ask(law_rule(2, 1)) == []


def test_a_rule_without_a_lease_left_takes_its_law_along(data: FakeDatapath) -> None:
    table = LawTable(data, 8)
    table.set(SetLaw(LawCommand.ADD, 1, FAIRQ))
    table.install_rule(1, WindowRule(WindowKind.LAW, 1), 10, 0)
    table.remove_rule(1)
    assert data.laws == {}
    assert len(table) == 1


def test_the_parameters_follow_the_port_and_the_state_stays(data: FakeDatapath) -> None:
    table = LawTable(data, 8)
    table.set(SetLaw(LawCommand.ADD, 1, FAIRQ))
    table.install_rule(1, WindowRule(WindowKind.LAW, 1), 10, 0)
    before = data.laws[1][1]
    table.limits_changed()
    assert data.laws[1][1] is before, "nothing has changed"
    data.limits[1] = QueueLimits("bfifo", 50_000, 5_000_000)
    table.limits_changed()
    assert (data.laws[1][1].target, data.laws[1][1].rate) == (12_500, 5_000_000)
    data.limits[1] = QueueLimits("", 0, 0)
    table.limits_changed()
    assert data.laws == {}, "nothing can be worked out without a buffer"


# Refusals


def test_refused_laws_change_nothing(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.ask(law_rule(1, 1))
    before = data.laws[1]
    cases = [
        (add(), window_law.ERROR_LAW_EXISTS),
        (add(2, FAIRQ, LawCommand.MODIFY), window_law.ERROR_LAW_UNKNOWN),
        (set_law(DATAPATH, 9, 1, FAIRQ), window_law.ERROR_LAW_COMMAND),  # type: ignore[arg-type]
        (set_law(DATAPATH, LawCommand.ADD, 2, None), window_law.ERROR_LAW_KIND),
        (add(0), window_law.ERROR_LAW_PARAMETER),
        (add(ALL_LAWS), window_law.ERROR_LAW_PARAMETER),
        (law_rule(1, 2), window_law.ERROR_LAW_UNKNOWN),
        (law_rule(2, 1), window_law.ERROR_LAW_IN_USE),
    ]
    for message, code in cases:
        assert peer.own_refusal(message) == code
    assert data.laws == {1: before} and data.installed.keys() == {1}


@pytest.mark.parametrize("law", window_laws().values(), ids=lambda law: law.name)
def test_every_parameter_has_its_bounds(data: FakeDatapath, law: type[LawSpec]) -> None:
    for name, _, least, most, _ in law.parameters():
        table = LawTable(data, 8)
        table.set(SetLaw(LawCommand.ADD, 1, law()))
        for value in (least, most):
            assert "is not between" not in (law(**{name: value}).wrong() or "")
        for value in (least - 1, most + 1):
            with pytest.raises(OpenFlowError, match=f"{name} {value} is not between") as refused:
                table.set(SetLaw(LawCommand.MODIFY, 1, law(**{name: value})))
            assert refused.value.code == window_law.ERROR_LAW_PARAMETER


@pytest.mark.parametrize("law", window_laws().values(), ids=lambda law: law.name)
def test_a_law_fills_its_own_struct(law: type[LawSpec]) -> None:
    struct = layout.STRUCTS.get(f"{law.name}_law")
    fields = [] if struct is None else [name for name, *_ in struct._fields_ if not name.startswith("pad")]
    assert list(law().own(125_000, 25_000_000)) == fields


def test_a_law_that_the_kernel_refuses_leaves_the_former(data: FakeDatapath) -> None:
    table = LawTable(data, 8)
    for number in (1, 2):
        table.set(SetLaw(LawCommand.ADD, number, FAIRQ))
    table.install_rule(1, WindowRule(WindowKind.LAW, 1), 10, 0)

    def fail(*_: Any) -> None:
        raise BpfError("no room")

    data.install_rule = fail  # type: ignore[method-assign]
    for target in (1, 2):
        with pytest.raises(BpfError):
            table.install_rule(target, WindowRule(WindowKind.LAW, 2), 20, 0)
    assert {port: (law, expires) for port, (law, _, expires) in data.laws.items()} == {1: (1, 10)}
    assert [(state.law, state.port) for state in table.states(ALL_LAWS)] == [(1, 1), (2, 0)]


def test_the_status_of_a_port_has_the_state_of_its_law(peer: Peer, switch: Any, data: FakeDatapath) -> None:
    def row(port: int, later: int = 0) -> Any:
        return rule_row(switch.table.port_rule(port), switch.laws, time.monotonic_ns() + later)

    for number, law in ((1, FairQLaw()), (2, IqmLaw())):
        peer.ask(add(number, law))
        peer.ask(law_rule(number, number))
    data.law_states[1] = layout.fq_law_state(granted=31_250, flows=7, late=3)
    found = row(1)
    assert (found["kind"], found["bytes"]) == ("law", 31_250)
    assert (found["law"]["kind"], found["law"]["flows"], found["law"]["late"]) == ("fairq", 7, 3)
    assert 1.5 < found["expires_in_s"] <= 2
    assert row(2)["bytes"] == 0
    data.law_states[2] = layout.fq_law_state(window=2920)
    assert (row(2)["bytes"], row(2)["law"]["kind"]) == (2920, "iqm")
    assert row(1, 3 * 10**9) is None
    peer.set_window(31_250, pool=True)
    assert (row(1)["kind"], row(1)["bytes"]) == ("pool", 31_250) and "law" not in row(1)


def test_openflow_s_own_statistics_have_the_rules_of_laws(peer: Peer) -> None:
    peer.ask(add())
    rule = law_rule(1, 1)
    rule.flags = ofp.OFPFF_SEND_FLOW_REM
    peer.ask(rule)
    (entry,) = peer.one(parser.OFPFlowStatsRequest(DATAPATH)).body
    (action,) = entry.instructions[0].actions
    assert (action.key, action.value, entry.match["in_port"]) == ("tcp_window_law", 1, 1)
    assert peer.session.server.expire_rules(time.monotonic_ns() + 3 * 10**9) is None
    (removed,) = peer.taken()
    assert (removed.reason, removed.match["in_port"]) == (ofp.OFPRR_HARD_TIMEOUT, 1)


def test_a_law_of_another_length_is_refused_whole(peer: Peer, data: FakeDatapath) -> None:
    whole = window_law.encode_set(LawCommand.ADD, 1, FAIRQ)
    for body in (b"", whole[:4], whole[:8], whole[:-1], whole + b"\0"):
        message = framing.command(DATAPATH, window_law.EXP_TYPE_SET_LAW, body)
        assert peer.refusal(message) == (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN)
    request = framing.request(DATAPATH, window_law.EXP_TYPE_LAW_STATS, bytes(4))
    assert peer.refusal(request) == (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN)


def test_a_law_that_the_kernel_refuses_to_change_stays(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.ask(law_rule(1, 1))

    def fail(*_: Any) -> None:
        raise BpfError("no room")

    data.install_law = fail  # type: ignore[method-assign]
    changed = dataclasses.replace(FAIRQ, target_ppm=100_000)
    message = add(1, changed, LawCommand.MODIFY)
    assert peer.refusal(message) == (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)
    assert peer.refusal(law_rule(1, 1)) == (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_UNKNOWN)
    (state,) = peer.session.server.laws.states(1)
    assert state.target in (0, 31_250) and data.laws[1][1].target == 31_250


def test_a_port_without_a_queue_of_known_size_gets_no_law(peer: Peer, data: FakeDatapath) -> None:
    data.limits[1] = QueueLimits("noqueue", 0, 25_000_000)
    peer.ask(add())
    (answer,) = peer.ask(law_rule(1, 1))
    refused = window_law.refused_law(answer)
    assert answer.exp_type == window_law.ERROR_LAW_NO_QUEUE
    assert refused is not None and (refused.law, refused.others) == (1, False)
    assert "port 1" in refused.reason and data.laws == data.installed == {}


def test_there_are_as_many_laws_as_the_table_holds(data: FakeDatapath) -> None:
    table = LawTable(data, 2)
    for number in (1, 2):
        table.set(SetLaw(LawCommand.ADD, number, FAIRQ))
    with pytest.raises(OpenFlowError, match="2 laws are there already"):
        table.set(SetLaw(LawCommand.ADD, 3, FAIRQ))


def test_a_slave_sets_no_laws(peer: Peer, switch: Any) -> None:
    slave = Peer(switch)
    role(slave, ofp.OFPCR_ROLE_SLAVE)
    assert slave.refusal(add()) == (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE)


# What the programs get, and what controllers see


def test_turns_are_a_flag_of_the_law_and_counted_in_its_state(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add(1, dataclasses.replace(FAIRQ, turns=1)))
    peer.ask(law_rule(1, 1))
    assert data.laws[1][1].flags == layout.CONSTANTS["FQ_LAW_TURNS"] | layout.CONSTANTS["FQ_LAW_FLOOR"]
    data.law_states[1] = layout.fq_law_state()
    data.turns[1] = TurnCounts(waiting=1, held=20, released=15, late=3, full=2)
    (state,) = window_law.decode_reply(peer.one(window_law.request(DATAPATH)).body.data)
    assert state[-5:] == (1, 20, 15, 3, 2)


def test_the_parameters_are_worked_out_from_buffer_and_rate() -> None:
    law = parameters(FAIRQ, LIMITS)
    assert (law.target, law.interval_ns, law.base_rtt_ns) == (31_250, 200_000, 1_000_000)
    # 0.4 in a round trip of 1 ms and 1.25 ms.
    assert law.gain_q16 == round(0.4 * 0.0002 / 0.00225 * 65536)
    # 8 bytes in 8 us at 1 Gbit/s are 40 in 200 us at 200 Mbit/s.
    trim = parameters(FairSwitchLaw(), LIMITS)
    assert (layout.own("fairswitch_law", trim).trim_step, trim.gain_q16) == (40, 0)
    assert layout.own("iqm_law", parameters(IqmLaw(), LIMITS)).calm == 25_000


def test_a_far_queue_keeps_an_eighth_of_its_buffer_for_what_is_not_counted() -> None:
    far, here = (
        parameters(FAIRQ, dataclasses.replace(LIMITS, kind=kind)) for kind in (FAR_KIND, LIMITS.kind)
    )
    assert (far.limit, here.limit) == (109_375, 125_000)
    assert (far.target, here.target) == (27_343, 31_250)
    calm = layout.own("iqm_law", parameters(IqmLaw(), dataclasses.replace(LIMITS, kind=FAR_KIND))).calm
    assert calm == 21_875


def test_acdc_cannot_govern_a_far_queue(data: FakeDatapath) -> None:
    number = FAR | 1
    data.ports[number], data.limits[number] = bridge_port(number), LIMITS
    table = LawTable(data, 8)
    table.set(SetLaw(LawCommand.ADD, 1, AcdcLaw()))
    table.set(SetLaw(LawCommand.ADD, 2, FAIRQ))
    with pytest.raises(OpenFlowError, match="is a far queue") as refused:
        table.install_rule(number, WindowRule(WindowKind.LAW, 1), 10**12, 0)
    assert refused.value.code == window_law.ERROR_LAW_NO_QUEUE and data.installed == {}
    table.install_rule(number, WindowRule(WindowKind.LAW, 2), 10**12, 0)
    assert data.laws[number][1].kind == FairQLaw.kind


def test_the_threshold_of_acdc_is_in_frames_whatever_the_buffer() -> None:
    law = parameters(AcdcLaw(mark_packets=30, weight_shift=5), LIMITS)
    assert (law.target, layout.own("acdc_law", law).weight_shift, law.first_window) == (30 * 1514, 5, 10)


@pytest.mark.parametrize("law", [IqmLaw, SedLaw])
def test_an_empty_queue_is_short(law: type[IqmLaw | SedLaw]) -> None:
    assert layout.own(f"{law.name}_law", parameters(law(calm_ppm=0), LIMITS)).calm == 1


def test_the_state_of_laws_is_reported(peer: Peer, data: FakeDatapath) -> None:
    peer.ask(add())
    peer.ask(add(2, IqmLaw()))
    peer.ask(law_rule(1, 1))
    data.law_states[1] = layout.fq_law_state(granted=31_250, flows=7, queue=30_000, updates=9, late=1, mode=2)
    answer = peer.one(window_law.request(DATAPATH))
    one, other = window_law.decode_reply(answer.body.data)
    assert (one.law, one.port, one.pool, one.flows, one.queue) == (1, 1, 31_250, 7, 30_000)
    assert (one.target, one.updates, one.late, one.mode, one.kind) == (31_250, 9, 1, 2, FairQLaw.kind)
    assert (other.law, other.port, other.pool, other.kind) == (2, 0, 0, IqmLaw.kind)
    # IQM's flows share no pool.
    peer.ask(law_rule(2, 2))
    data.law_states[2] = layout.fq_law_state(granted=31_250, window=2920, beta=3, mode=1)
    answer = peer.one(window_law.request(DATAPATH, 2))
    (other,) = window_law.decode_reply(answer.body.data)
    assert (other.port, other.pool, other.window, other.beta, other.mode) == (2, 0, 2920, 3, 1)
    assert peer.own_refusal(window_law.request(DATAPATH, 3)) == window_law.ERROR_LAW_UNKNOWN
