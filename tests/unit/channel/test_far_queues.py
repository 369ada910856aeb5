"""SET_FAR_QUEUES, LEASE_FAR_RATES and the list of far queues on the wire."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import far_queues, oxm
from fairq_ryu.channel.far_queues import FarQueueState, RateLease
from fairq_ryu.far_queue import FarQueue
from tests.support.fakes import DATAPATH, wire

QUEUE = FarQueue("eth0", 1_250_000_000, 1_000_000, 0.98)
TOLD = {"eth0": QUEUE, "enp131s0f0np1": None}


def test_all_changes_are_in_one_message():
    data = far_queues.encode_set(TOLD)
    first, second = data[: far_queues.SET_SIZE], data[far_queues.SET_SIZE :]
    assert first == struct.pack("!16sQIII4x", b"eth0", 1_250_000_000, 1_000_000, 980_000, 0)
    assert second == struct.pack("!16sQIII4x", b"enp131s0f0np1", 0, 0, 0, far_queues.REMOVED)
    assert far_queues.decode_set(data) == TOLD
    assert far_queues.decode_set(b"") == {}


def test_more_than_fit_in_a_message():
    names = [f"p{number}" for number in range(far_queues.MOST_TOLD + 1)]
    message = far_queues.set_far_queues(DATAPATH, dict.fromkeys(names[1:]))
    assert len(wire(message)) < 1 << 16
    with pytest.raises(ValueError, match="1001 far queues"):
        far_queues.set_far_queues(DATAPATH, dict.fromkeys(names))


@pytest.mark.parametrize("share", [0.1, 0.123456, 0.98, 1.0])
def test_a_share_stays_what_it_is(share):
    queue = FarQueue("eth0", share=share)
    assert far_queues.decode_set(far_queues.encode_set({"eth0": queue})) == {"eth0": queue}


def test_leased_rates():
    lease = RateLease(2, {"eth0": 625_000_000, "eth1": 125_000})
    data = far_queues.encode_lease(lease)
    assert data == struct.pack("!I4x16sQ16sQ", 2, b"eth0", 625_000_000, b"eth1", 125_000)
    assert far_queues.decode_lease(data) == lease
    assert far_queues.decode_lease(far_queues.encode_lease(RateLease(0, {}))) == (0, {})


def test_the_list():
    states = [FarQueueState(QUEUE, True, 7, 625_000_000), FarQueueState(FarQueue("eth1"), False, 8)]
    data = far_queues.encode_reply(states)
    assert data[: far_queues.RECORD_SIZE] == struct.pack(
        "!16sQIIIIQ", b"eth0", 1_250_000_000, 1_000_000, 980_000, far_queues.TOLD, 7, 625_000_000
    )
    assert far_queues.decode_reply(data) == states
    assert far_queues.decode_request(b"") is None


@pytest.mark.parametrize(
    ("decode", "size"),
    [
        (far_queues.decode_set, far_queues.SET_SIZE - 1),
        (far_queues.decode_set, far_queues.SET_SIZE + 1),
        (far_queues.decode_lease, 0),
        (far_queues.decode_lease, far_queues.LEASE_SIZE + far_queues.RATE_SIZE - 1),
        (far_queues.decode_request, 1),
        (far_queues.decode_reply, far_queues.RECORD_SIZE + 1),
    ],
)
def test_a_wrong_length(decode, size):
    with pytest.raises(ValueError, match=f"not {size}"):
        decode(bytes(size))


@pytest.mark.parametrize("name", [b"", b"\xff", b"a\0b"])
def test_a_name_that_is_none(name):
    with pytest.raises(ValueError, match=r"interface|decode"):
        far_queues.decode_set(struct.pack("!16sQIII4x", name, 0, 0, 980_000, 0))


def test_a_name_twice():
    data = far_queues.encode_set({"eth0": QUEUE})
    with pytest.raises(ValueError, match="twice"):
        far_queues.decode_set(data * 2)


def told():
    return far_queues.set_far_queues(DATAPATH, TOLD)


def listed():
    return far_queues.request(DATAPATH)


def error(request, kind, code, text=b""):
    data = wire(request())[:64] + text
    own = {"experimenter": oxm.EXPERIMENTER_ID, "exp_type": code} if kind == ofp.OFPET_EXPERIMENTER else {}
    return SimpleNamespace(type=kind, code=code, data=data, **own)


def test_why_an_agent_refuses():
    own = ofp.OFPET_EXPERIMENTER, far_queues.ERROR_FAR_QUEUE
    assert far_queues.refused(error(told, *own, b"eth0: no room")) == "eth0: no room"
    assert far_queues.refused(error(told, *own)) == far_queues.ERRORS[far_queues.ERROR_FAR_QUEUE]
    said = far_queues.refused(error(told, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE))
    assert said == "it answers with error 1, code 10 (see its log)"
    assert far_queues.refused(error(listed, *own)) is None
    assert far_queues.is_unlisted(error(listed, ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM))
    assert not far_queues.is_unlisted(error(told, *own))
