"""Window laws on the wire: SET_LAW and the reports, and which law an error is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import flowmod, oxm, window_law
from fairq_ryu.channel.window_law import LawCommand, LawState
from fairq_ryu.law_spec import LAW_BOUNDS, Gain, LawFlags, LawKind, LawSpec
from fairq_ryu.model import PortKey, RuleChange, RuleTarget, WindowKind, WindowRule
from tests.support.fakes import DATAPATH, wire

U32 = st.integers(0, 2**32 - 1)
specs = st.builds(
    LawSpec,
    st.sampled_from(LawKind),
    st.sampled_from(Gain),
    st.integers(0, 3).map(LawFlags),
    **{name: st.integers(least, most) for name, (least, most) in LAW_BOUNDS.items()},
)


@given(st.sampled_from([LawCommand.ADD, LawCommand.MODIFY]), U32, specs)
def test_a_law_arrives_as_it_was_sent(command, law, spec):
    found = window_law.decode_set(window_law.encode_set(command, law, spec))
    assert found == (command, law, spec)


def test_a_deletion_has_no_parameters():
    body = window_law.encode_set(LawCommand.DELETE, 7, None)
    assert len(body) == 48
    assert window_law.decode_set(body) == (LawCommand.DELETE, 7, None)


@pytest.mark.parametrize("place, value", [(1, 99), (2, 9), (33, 0x10)], ids=["kind", "gain", "flag"])
def test_what_is_not_known_leaves_the_law_without_parameters(place, value):
    body = bytearray(window_law.encode_set(LawCommand.ADD, 7, LawSpec(LawKind.FAIRQ)))
    body[place] = value
    assert window_law.decode_set(bytes(body)) == (LawCommand.ADD, 7, None)


@given(st.binary(max_size=100))
def test_wrong_lengths_are_refused(data):
    if len(data) != 48:
        with pytest.raises(ValueError, match="48 bytes"):
            window_law.decode_set(data)
    if len(data) != 8:
        with pytest.raises(ValueError, match="8 bytes"):
            window_law.decode_request(data)
    if len(data) % 64:
        with pytest.raises(ValueError, match="multiple of 64 bytes"):
            window_law.decode_reply(data)


@given(st.lists(st.tuples(*[U32] * 10, *[st.integers(0, 65535)] * 2, *[U32] * 3), max_size=4))
def test_reports_come_back(rows):
    states = [LawState(*row) for row in rows]
    assert window_law.decode_reply(window_law.encode_reply(states)) == states


# Errors


def error(request, kind=ofp.OFPET_EXPERIMENTER, code=window_law.ERROR_LAW_UNSTABLE, experimenter=None):
    found = parser.OFPErrorMsg(DATAPATH, kind, code, data=request[:64])
    found.experimenter = oxm.EXPERIMENTER_ID if experimenter is None else experimenter
    found.exp_type = code
    return found


def law_rule():
    rule = WindowRule(WindowKind.LAW, 17)
    return wire(flowmod.window_rule(DATAPATH, RuleChange(RuleTarget(PortKey(1, 17), None), rule), 2))


def test_an_error_names_its_law():
    law = wire(window_law.set_law(DATAPATH, LawCommand.ADD, 17, LawSpec(LawKind.LAS)))
    assert window_law.refused_law(error(law)) == 17
    unknown = error(law, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXP_TYPE)
    assert window_law.refused_law(unknown) == 17, "an agent that has no laws"
    assert window_law.refused_law(error(law_rule())) == 17


def test_other_errors_name_none():
    others = [
        error(wire(window_law.set_law(DATAPATH, LawCommand.DELETE, 17))),
        error(law_rule(), ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL),
        error(law_rule(), experimenter=1),
        error(law_rule(), code=1),
        error(wire(parser.OFPEchoRequest(DATAPATH, data=bytes(64)))),
        parser.OFPErrorMsg(DATAPATH, ofp.OFPET_BAD_REQUEST, 0, data=b""),
    ]
    assert [window_law.refused_law(each) for each in others] == [None] * len(others)
