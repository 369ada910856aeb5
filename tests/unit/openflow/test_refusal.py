"""Error messages of switches as text."""

from types import SimpleNamespace

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import congestion, framing, oxm, tenants
from fairq_ryu.openflow import refusal


def words(
    kind: int, code: int, asked: int = ofp.OFPT_MULTIPART_REQUEST, body: bytes = bytes(8), **more: int
) -> str:
    data = bytes([4, asked, 0, 16, 0, 0, 0, 7]) + body
    return refusal.described(SimpleNamespace(type=kind, code=code, data=data, **more))


def told(number: int) -> bytes:
    """How one of our messages begins."""
    return framing.EXPERIMENTER.pack(oxm.EXPERIMENTER_ID, number)


def test_numbers_are_replaced_by_names():
    # 1 and 11 were the only information in the log.
    assert words(1, 11) == "a multipart request (BAD_REQUEST, BAD_PORT): the port does not exist"
    assert words(5, 1, ofp.OFPT_FLOW_MOD) == "a rule (FLOW_MOD_FAILED, TABLE_FULL): its table is full"
    assert words(4, 3, ofp.OFPT_FLOW_MOD) == "a rule (BAD_MATCH, BAD_DL_ADDR_MASK)"


@pytest.mark.parametrize("code", [congestion.ERROR_ORDER, congestion.ERROR_FLAGS])
def test_our_own_errors(code):
    ours = {"exp_type": code, "experimenter": oxm.EXPERIMENTER_ID}
    text = words(0xFFFF, 0, ofp.OFPT_EXPERIMENTER, told(congestion.EXP_TYPE_SET_THRESHOLDS), **ours)
    assert text.startswith(f"thresholds of a queue (EXPERIMENTER, {code}): ")
    assert words(0xFFFF, 0, exp_type=code, experimenter=1) == f"a multipart request (EXPERIMENTER, {code})"


def test_the_reason_that_an_agent_gives_is_shown():
    """Behind the message that it quotes."""
    ours = {"exp_type": tenants.ERROR_TENANTS, "experimenter": oxm.EXPERIMENTER_ID}
    body = told(tenants.EXP_TYPE_SET_TENANTS) + b"tenant 3 has no weight"
    text = words(0xFFFF, 0, ofp.OFPT_EXPERIMENTER, body, **ours)
    assert text == f"a table of tenants (EXPERIMENTER, {tenants.ERROR_TENANTS}): tenant 3 has no weight"


def test_unknown_numbers_are_shown():
    assert words(77, 5, 99) == "a message of type 99 (error type 77, code 5)"
    assert words(1, 99) == "a multipart request (BAD_REQUEST, code 99)"


@pytest.mark.parametrize("data", [None, b"", b"\x04\x12"])
def test_without_the_refused_message(data):
    found = refusal.described(SimpleNamespace(type=1, code=11, data=data))
    assert found == "a message (BAD_REQUEST, BAD_PORT): the port does not exist"
