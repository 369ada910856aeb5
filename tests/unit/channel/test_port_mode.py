"""SET_PORT_MODE and the reply about modes on the wire."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import port_mode
from fairq_ryu.channel.port_mode import PortWindows, SetPortMode
from tests.support.fakes import DATAPATH, wire

REPORTED = PortWindows(17, port_mode.OBSERVE, 4618, 0, 4511)


def test_a_mode_on_the_wire():
    data = port_mode.encode_set(SetPortMode(17, port_mode.OBSERVE))
    assert data == struct.pack("!II", 17, 1) and len(data) == port_mode.SET_SIZE
    assert port_mode.decode_set(data) == (17, port_mode.OBSERVE)


def test_a_request_on_the_wire():
    assert port_mode.decode_request(port_mode.encode_request(17)) == 17


def test_a_reply_on_the_wire():
    data = port_mode.encode_reply([REPORTED, REPORTED._replace(port=18)])
    assert data[: port_mode.RECORD_SIZE] == struct.pack("!IIQQQ", 17, 1, 4618, 0, 4511)
    assert port_mode.decode_reply(data) == [REPORTED, REPORTED._replace(port=18)]


@pytest.mark.parametrize(
    ("decode", "size"),
    [
        *((port_mode.decode_set, size) for size in (0, 7, 9)),
        *((port_mode.decode_request, size) for size in (0, 7, 9)),
        *((port_mode.decode_reply, size) for size in (31, 33)),
    ],
)
def test_a_wrong_length(decode, size):
    with pytest.raises(ValueError, match=f"not {size}"):
        decode(bytes(size))


@pytest.mark.parametrize(
    ("request_", "kind", "code", "refused"),
    [
        (port_mode.request(DATAPATH), ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM, True),
        (port_mode.set_port_mode(DATAPATH, 17, 1), ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM, True),
        # The port has just gone: it cannot act, and it is told its mode when it comes back.
        (port_mode.set_port_mode(DATAPATH, 17, 1), ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_PORT, False),
    ],
)
def test_which_errors_show_that_an_agent_cannot_observe(request_, kind, code, refused):
    error = SimpleNamespace(type=kind, code=code, data=wire(request_)[:64])
    assert port_mode.is_refused(error) is refused


def test_errors_about_other_messages_do_not():
    from fairq_ryu.channel import recovery

    other = recovery.set_recovery(DATAPATH, recovery.SetRecovery(17, 0, 0, 0, 0, 0))
    error = SimpleNamespace(type=ofp.OFPET_BAD_REQUEST, code=ofp.OFPBRC_EPERM, data=wire(other)[:64])
    assert not port_mode.is_refused(error)
    assert not port_mode.is_refused(SimpleNamespace(type=1, code=4, data=None))
