"""Window laws on the wire: SET_LAW and the reports, and which law an error is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent import messages
from fairq_ryu.channel import flowmod, oxm, queue_depth, window_law
from fairq_ryu.channel.window_law import LawCommand, LawState
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.laws.registry import window_laws
from fairq_ryu.model import FlowKey, PortKey, RuleChange, RuleTarget, WindowKind, WindowRule
from tests.support.fakes import DATAPATH, wire
from tests.support.law_traces import specs

U32 = st.integers(0, 2**32 - 1)
laws = st.sampled_from([*window_laws().values()]).flatmap(specs)


@given(st.sampled_from([LawCommand.ADD, LawCommand.MODIFY]), U32, laws)
def test_a_law_arrives_as_it_was_sent(command, law, spec):
    found = window_law.decode_set(window_law.encode_set(command, law, spec))
    assert found == (command, law, spec)


def test_a_deletion_has_no_parameters():
    body = window_law.encode_set(LawCommand.DELETE, 7, None)
    assert len(body) == 8
    assert window_law.decode_set(body) == (LawCommand.DELETE, 7, None)


def test_a_kind_that_is_not_known_leaves_the_law_without_parameters():
    body = bytearray(window_law.encode_set(LawCommand.ADD, 7, FairQLaw()))
    body[1] = 99
    assert window_law.decode_set(bytes(body)) == (LawCommand.ADD, 7, None)


@pytest.mark.parametrize("law", window_laws().values(), ids=lambda law: law.name)
@pytest.mark.parametrize("more", [-1, 1, 4])
def test_parameters_of_another_length_are_refused(law, more):
    body = window_law.encode_set(LawCommand.ADD, 7, law())
    body = body[:more] if more < 0 else body + bytes(more)
    size = law.layout().size
    with pytest.raises(ValueError, match=f"of kind {law.name} are {size} bytes, not {size + more}"):
        window_law.decode_set(body)


@given(st.binary(max_size=150))
def test_wrong_lengths_are_refused(data):
    if len(data) < 8:
        with pytest.raises(ValueError, match="8 bytes or more"):
            window_law.decode_set(data)
    if len(data) > 8:
        with pytest.raises(ValueError, match="to delete a law is 8 bytes"):
            window_law.decode_set(bytes([LawCommand.DELETE]) + data[1:])
    if len(data) != 8:
        with pytest.raises(ValueError, match="8 bytes"):
            window_law.decode_request(data)
    if len(data) % 104:
        with pytest.raises(ValueError, match="multiple of 104 bytes"):
            window_law.decode_reply(data)


@given(st.lists(st.tuples(*[U32] * 10, *[st.integers(0, 65535)] * 2, *[U32] * 8), max_size=4))
def test_reports_come_back(rows):
    states = [LawState(*row) for row in rows]
    assert window_law.decode_reply(window_law.encode_reply(states)) == states


# Errors


def error(
    request, kind=ofp.OFPET_EXPERIMENTER, code=window_law.ERROR_LAW_NO_QUEUE, experimenter=None, why=""
):
    found = parser.OFPErrorMsg(DATAPATH, kind, code, data=request[:64] + why.encode())
    found.experimenter = oxm.EXPERIMENTER_ID if experimenter is None else experimenter
    found.exp_type = code
    return found


def law_rule():
    rule = WindowRule(WindowKind.LAW, 17)
    return wire(flowmod.window_rule(DATAPATH, RuleChange(RuleTarget(PortKey(1, 17), None), rule), 2))


def flow_rule():
    target = RuleTarget(PortKey(1, 17), FlowKey("10.0.0.1", "10.0.0.2", 1, 2))
    return wire(flowmod.window_rule(DATAPATH, RuleChange(target, WindowRule(WindowKind.WINDOW, 17)), 2))


LAW = wire(window_law.set_law(DATAPATH, LawCommand.ADD, 17, LasLaw()))


@pytest.mark.parametrize("request_", [LAW, law_rule()], ids=["law", "rule"])
def test_an_error_names_its_law_and_the_reason(request_):
    reason = window_law.ERRORS[window_law.ERROR_LAW_NO_QUEUE]
    assert window_law.refused_law(error(request_)) == (17, reason, False)
    assert window_law.refused_law(error(request_, why="no queue")) == (17, "no queue", False)
    for code in (window_law.ERROR_LAW_EXISTS, window_law.ERROR_LAW_UNKNOWN):
        assert window_law.refused_law(error(request_, code=code)).others


def test_the_reason_survives_ryu():
    """Ryu has a class of its own for experimenter errors."""
    data = messages.error(ofp.OFPET_EXPERIMENTER, window_law.ERROR_LAW_NO_QUEUE, LAW, "no queue")
    found = parser.OFPErrorMsg.parser(DATAPATH, 4, ofp.OFPT_ERROR, len(data), 7, data)
    assert window_law.refused_law(found) == (17, "no queue", False)


def test_an_agent_whose_kernel_refuses_the_law():
    found = window_law.refused_law(error(LAW, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM))
    assert (found.law, found.others) == (17, False)


def test_other_errors_name_none():
    slave = (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE)
    others = [
        error(LAW, *slave),
        error(law_rule(), *slave),
        error(LAW, code=1),
        error(LAW, experimenter=1),
        error(LAW[:20]),
        error(flow_rule(), ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_SET_TYPE),
        error(flow_rule()),
        error(law_rule(), ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL),
        error(law_rule(), ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_UNKNOWN),
        error(law_rule(), experimenter=1),
        error(law_rule(), code=1),
        error(law_rule()[:58]),
        error(wire(queue_depth.request(DATAPATH, 17)), ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXP_TYPE),
        error(wire(parser.OFPEchoRequest(DATAPATH, data=bytes(64)))),
        parser.OFPErrorMsg(DATAPATH, ofp.OFPET_BAD_REQUEST, 0, data=b""),
    ]
    assert [window_law.refused_law(each) for each in others] == [None] * len(others)


@given(st.binary(max_size=120), st.sampled_from([1, 2, 5, 0xFFFF]), st.integers(0, 12))
def test_any_quotation_is_read_without_a_fault(data, kind, code):
    found = window_law.refused_law(error(data, kind, code))
    assert found is None or 0 <= found.law <= 0xFFFFFFFF
