"""Who is known to be at the ends of connections, and duplicate ACKs; both end with the connections."""

from __future__ import annotations

import pytest

from fairq_ryu.channel import waking
from fairq_ryu.model import FlowKey
from fairq_ryu.packet import tcp_build
from fairq_ryu.packet.parse import Frame
from tests.support.flownet import KEY, segment
from tests.support.site import CLIENT_MAC, SERVER_MAC, Site, state


def opened() -> Site:
    """KEY is established."""
    site = Site()
    site.open()
    site.log.clear()
    return site


@pytest.mark.parametrize(
    ("fields", "counted"),
    [
        ({"found": False}, "dupack: the switch does not know the flow"),
        ({"has_timestamps": None}, "dupack: it is not known whether the connection has timestamps"),
        ({"fin": True}, "dupack: the receiver has sent FIN or RST"),
    ],
)
def test_states_without_enough_for_an_ack_are_counted(fields, counted):
    site = opened()
    site.injector.send_duplicates(KEY, state(KEY, **fields))
    assert not site.log and site.injector.counts == {counted: 1}


def test_nothing_is_sent_to_a_disconnected_bridge():
    site = opened()
    site.fabric.bridge_disconnected(site.bridge)
    site.log.clear()
    site.injector.send_duplicates(KEY, state(KEY))
    assert not site.log and site.injector.counts == {"dupack: the receiver is not known": 1}


def test_nothing_is_kept_of_an_ended_connection():
    site = opened()
    assert site.injector._addresses
    site.reset(now=0.3)
    assert not site.injector._addresses


@pytest.mark.parametrize("end", [KEY, KEY.reversed])
def test_either_direction_identifies_the_connection(end):
    site = opened()
    site.injector.forget(end)
    assert not site.injector._addresses


def test_an_agent_that_has_copied_a_syn_is_told_the_tags_of_its_own_switch():
    """Switches may add or remove tags: the update leaves a switch as the copied segment has left it."""
    site = opened()
    answer = segment(KEY.reversed, "SA", seq=900, ack=101)
    for dpid, tags in ((1, (10,)), (2, ())):
        site.windows.syn_left(Frame(SERVER_MAC, CLIENT_MAC, tags, KEY.dst, None, answer, 0), dpid)
    site.link.send(site.injector.wake(site.link, [KEY]))
    (message,) = site.agent.sent
    assert waking.decode(message.data) == [tcp_build.Addressing(KEY.reversed, SERVER_MAC, CLIENT_MAC, (10,))]
    site.reset(now=0.3)
    assert not site.injector._leaving


def test_a_forged_syn_changes_no_address():
    site = opened()
    known = site.injector.addressing(KEY)
    forged = Frame("0e:00:00:00:00:01", "0e:00:00:00:00:02", (), KEY.src, None, segment(KEY, "S", seq=5), 0)
    site.windows.syn_seen(forged)
    site.windows.syn_left(forged, 1)
    assert site.injector.addressing(KEY) == known and not site.injector._leaving


def test_syns_without_a_connection_are_forgotten():
    """Their path is unknown, so no port counts them, and their end is no event of any port."""
    site = Site()
    site.open()
    for n in range(10_000):
        key = FlowKey("10.0.0.1", f"10.9.{n // 256}.{n % 256}", 33000, KEY.dport)
        site.syn(key, now=0.1, path=None)
    assert len(site.injector._addresses) == 10_001
    site.injector.prune()
    assert len(site.injector._addresses) == len(site.flows)
    site.windows.apply(site.flows.expire(50.0), 50.0)
    site.injector.prune()
    assert list(site.injector._addresses) == [KEY.connection]
