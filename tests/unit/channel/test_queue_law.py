"""Queue laws on the wire: SET_QUEUE_LAW, the reports, the rules, and which law an error is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import flowmod, oxm, queue_law, window_law
from fairq_ryu.channel.flowmod_decoder import decode_flow_mod
from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.window_law import LawCommand
from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.model import PortKey, RuleChange, RuleTarget, WindowKind, WindowRule
from tests.support.fakes import DATAPATH, wire
from tests.support.law_traces import specs

U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
laws = st.sampled_from([*queue_laws().values()]).flatmap(specs)
LAW = wire(queue_law.set_queue_law(DATAPATH, LawCommand.ADD, 17, AfcdLaw()))
RULE = wire(flowmod.queue_rule(DATAPATH, 17, 17, 2))
REQUEST = wire(queue_law.request(DATAPATH, 17))


@given(st.sampled_from([LawCommand.ADD, LawCommand.MODIFY]), U32, laws)
def test_a_law_arrives_as_it_was_sent(command, law, spec):
    assert queue_law.decode_set(queue_law.encode_set(command, law, spec)) == (command, law, spec)


def test_a_deletion_has_no_parameters():
    body = queue_law.encode_set(LawCommand.DELETE, 7, None)
    assert len(body) == 8 and queue_law.decode_set(body) == (LawCommand.DELETE, 7, None)


def test_a_kind_that_is_not_known_leaves_the_law_without_parameters():
    body = bytearray(queue_law.encode_set(LawCommand.ADD, 7, RedLaw()))
    body[1] = 99
    assert queue_law.decode_set(bytes(body)) == (LawCommand.ADD, 7, None)


@pytest.mark.parametrize("law", queue_laws().values(), ids=lambda law: law.name)
@pytest.mark.parametrize("more", [-1, 1, 4])
def test_parameters_of_another_length_are_refused(law, more):
    body = queue_law.encode_set(LawCommand.ADD, 7, law())
    body = body[:more] if more < 0 else body + bytes(more)
    size = law.layout().size
    with pytest.raises(ValueError, match=f"of kind {law.name} are {size} bytes, not {size + more}"):
        queue_law.decode_set(body)


@given(st.binary(max_size=180))
def test_wrong_lengths_are_refused(data):
    if len(data) < 8:
        with pytest.raises(ValueError, match="SET_QUEUE_LAW is 8 bytes or more"):
            queue_law.decode_set(data)
    if len(data) != 8:
        with pytest.raises(ValueError, match="8 bytes"):
            queue_law.decode_request(data)
    if len(data) % 88:
        with pytest.raises(ValueError, match="multiple of 88 bytes"):
            queue_law.decode_reply(data)


@given(st.lists(st.tuples(U32, U32, U16, U16, U32, *[U64] * 5, *[U32] * 8), max_size=3))
def test_reports_come_back(rows):
    states = [QueueLawState(*row) for row in rows]
    assert queue_law.decode_reply(queue_law.encode_reply(states)) == states


# Rules


def test_the_rule_of_a_port_and_its_removal():
    mod = decode_flow_mod(RULE)
    assert (mod.table, mod.match, mod.hard_timeout) == (1, {"in_port": 17}, 2)
    assert mod.window == WindowRule(WindowKind.QUEUE_LAW, 17)
    removal = decode_flow_mod(wire(flowmod.queue_rule(DATAPATH, 17, None, 2)))
    assert (removal.table, removal.command, removal.window) == (1, ofp.OFPFC_DELETE_STRICT, None)


def refusal(message: bytes) -> tuple[int, int]:
    with pytest.raises(OpenFlowError) as found:
        decode_flow_mod(message)
    return found.value.type, found.value.code


def test_each_field_is_set_in_its_own_table():
    window = WindowRule(WindowKind.POOL, 31_250)
    change = RuleChange(RuleTarget(PortKey(1, 17), None), window)
    for message, table in (
        (flowmod.window_rule(DATAPATH, change, 2), 1),
        (flowmod.queue_rule(DATAPATH, 17, 17, 2), 0),
    ):
        message.table_id = table
        assert refusal(wire(message)) == (ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_SET_TYPE)
    other = flowmod.queue_rule(DATAPATH, 17, 17, 2)
    other.table_id = 2
    assert refusal(wire(other)) == (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TABLE_ID)


def test_a_queue_law_is_for_a_port():
    rule = flowmod.queue_rule(DATAPATH, 17, 17, 2)
    rule.match = parser.OFPMatch(
        eth_type=0x0800, ip_proto=6, ipv4_src="10.0.0.1", ipv4_dst="10.0.0.2", tcp_src=1, tcp_dst=2
    )
    assert refusal(wire(rule)) == (ofp.OFPET_BAD_ACTION, ofp.OFPBAC_MATCH_INCONSISTENT)
    output = flowmod.queue_rule(DATAPATH, 17, 17, 2)
    copy = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, 192)]
    output.instructions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, copy)]
    assert refusal(wire(output)) == (ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_TYPE)


# Errors


def error(request, kind=ofp.OFPET_EXPERIMENTER, code=window_law.ERROR_LAW_NO_QUEUE, why=""):
    found = parser.OFPErrorMsg(DATAPATH, kind, code, data=request[:64] + why.encode())
    found.experimenter, found.exp_type = oxm.EXPERIMENTER_ID, code
    return found


@pytest.mark.parametrize("request_", [LAW, RULE, REQUEST], ids=["law", "rule", "states"])
def test_an_error_names_its_law_and_the_reason(request_):
    known = window_law.ERRORS[window_law.ERROR_LAW_NO_QUEUE]
    assert queue_law.refused_law(error(request_)) == (17, known, False)
    assert queue_law.refused_law(error(request_, why="no qdisc")) == (17, "no qdisc", False)
    assert queue_law.refused_law(error(request_, code=window_law.ERROR_LAW_UNKNOWN)).others


def test_the_laws_of_windows_and_of_queues_are_told_apart():
    window = wire(window_law.set_law(DATAPATH, LawCommand.ADD, 17, LasLaw()))
    rule = WindowRule(WindowKind.LAW, 17)
    window_rule = wire(flowmod.window_rule(DATAPATH, RuleChange(RuleTarget(PortKey(1, 17), None), rule), 2))
    for request in (window, window_rule, wire(window_law.request(DATAPATH, 17))):
        assert queue_law.refused_law(error(request)) is None
        assert window_law.refused_law(error(request)) is not None
    for request in (LAW, RULE, REQUEST):
        assert window_law.refused_law(error(request)) is None


def test_other_errors_name_none():
    slave = (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE)
    full = (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL)
    found = [error(LAW, *slave), error(RULE, *slave), error(RULE, *full), error(LAW, code=1), error(LAW[:20])]
    assert [queue_law.refused_law(each) for each in found] == [None] * len(found)
    assert queue_law.refused_law(error(LAW, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)).law == 17
    # A fault of the agent in answering something else says nothing about its laws.
    assert queue_law.refused_law(error(REQUEST, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)) is None
    unknown = (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_UNKNOWN)
    assert queue_law.refused_law(error(RULE, *unknown)).law == 17


@given(st.binary(max_size=120), st.sampled_from([1, 2, 5, 0xFFFF]), st.integers(0, 12))
def test_any_quotation_is_read_without_a_fault(data, kind, code):
    found = queue_law.refused_law(error(data, kind, code))
    assert found is None or 0 <= found.law <= 0xFFFFFFFF
