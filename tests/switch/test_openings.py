"""Handshakes that are not the plain one: Fast Open, SYN cookies, ports used again, simultaneous opens."""

from __future__ import annotations

from typing import Any

import pytest

from fairq_ryu.agent import layout
from tests.switch import packets
from tests.switch.packets import NOP
from tests.switch.rig import Connection, Switch, lowered

C = layout.CONSTANTS
RULE = 40_000
COOKIE = b"\x22\x0a" + b"cookie!!" + NOP * 2


def directions(switch: Switch, flow: Connection) -> tuple[Any, Any]:
    found = switch.flow(flow.data_key)
    assert found is not None
    return found


# Fast Open (RFC 7413)


@pytest.mark.parametrize("accepted", [500, 0])
def test_fast_open(switch: Switch, accepted: int) -> None:
    flow = Connection(switch, client_scale=3, server_scale=9)
    switch.rule(2, RULE)
    flow.syn(payload=b"d" * 500, options=packets.syn_options(1460, 3, COOKIE))
    before = flow.syn_ack_segment(ack=flow.client_isn + 1 + accepted, window=65_000)
    assert switch.leave(1, before) == before.but(window=RULE).frame()
    assert switch.state(1).handshakes == 1
    # The server may send before the last segment of the handshake has come.
    switch.leave(1, flow.from_server(payload=b"d" * 1000, ack=flow.client_isn + 1 + accepted))
    flow.data(0, seq=flow.client_isn + 501, ack=flow.server_isn + 1001)
    if not accepted:
        flow.data(500)
    assert flow.granted(seq=flow.server_isn + 1001, ack=flow.client_isn + 501) == RULE >> 9
    client, server = directions(switch, flow)
    assert (client.seq_next, server.seq_next) == (flow.client_isn + 501, flow.server_isn + 1001)
    assert (server.acked, client.acked) == (500, 1000)
    assert (switch.active(1), switch.active(2)) == (1, 1)
    assert switch.state(2).unknown_scale == 0


def test_fast_open_with_a_plain_syn_sent_again(switch: Switch) -> None:
    """The SYN-ACK was lost; Linux repeats its SYN without data, and the server has the data by then."""
    flow = Connection(switch)
    flow.syn(payload=b"d" * 500, options=packets.syn_options(1460, 7, COOKIE))
    flow.syn()
    flow.syn_ack(ack=flow.client_isn + 501)
    flow.data(0, seq=flow.client_isn + 501)
    switch.rule(2, RULE)
    assert flow.granted(ack=flow.client_isn + 501) == RULE >> 7


def test_fast_open_acknowledges_no_more_than_the_syn_carried(switch: Switch) -> None:
    flow = Connection(switch)
    flow.syn(payload=b"d" * 500, options=packets.syn_options(1460, 7, COOKIE))
    for wrong in (0, 502, 70_000, 2**31):
        flow.syn_ack(ack=flow.client_isn + wrong)
    assert not directions(switch, flow)[1].flags & C["FQ_KNOWN"]
    flow.syn_ack(ack=flow.client_isn + 501)
    assert directions(switch, flow)[1].flags & C["FQ_KNOWN"]


# The floor


@pytest.mark.parametrize(
    ("client_mss", "server_mss"), [(1460, 8960), (8960, 1460), (1460, None), (None, 1460)]
)
def test_the_floor_is_the_smaller_mss(switch: Switch, client_mss: int | None, server_mss: int | None) -> None:
    flow = Connection(switch, client_mss=client_mss, server_mss=server_mss, server_scale=0).open()
    switch.rule(2, 1)
    # Without the option the other side may send 536 bytes; what it can send itself is not known then.
    assert flow.granted() == min(client_mss or 1460, server_mss or 536)


def test_the_floor_with_a_scale_is_rounded_up(switch: Switch) -> None:
    flow = Connection(switch, client_mss=1400, server_mss=8960, server_scale=9).open()
    switch.rule(2, 1)
    assert flow.granted() == lowered(65535, 1, 9, 1400) == 3


# The same ports again


def used_again(switch: Switch, flow: Connection, **settings: Any) -> Connection:
    return Connection(
        switch,
        sport=flow.sport,
        client_isn=900_000_000,
        server_isn=1_700_000_000,
        **({"server_scale": 2, "server_mss": 900} | settings),
    )


def test_a_new_connection_whose_predecessor_ended_unseen(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.data(0)
    flow.data(1000)
    switch.rule(2, RULE)
    again = used_again(switch, flow)
    again.syn()
    # It is the first window that decides the first burst: lowered, though nothing is believed yet.
    before = again.syn_ack_segment(window=65_000)
    assert switch.leave(1, before) == before.but(window=RULE).frame()
    assert directions(switch, flow)[1].wscale == 7
    again.data(0)
    assert again.granted() == RULE >> 2
    switch.rule(2, 1)
    assert again.granted() == 900 // 4
    assert (switch.active(1), switch.active(2)) == (1, 1)
    assert switch.state(1).handshakes + switch.state(2).handshakes == 2
    again.data(1000)
    client, server = directions(switch, again)
    assert (client.packets, client.bytes, server.acked) == (1, 1000, 0)


def test_a_new_connection_after_two_fins(switch: Switch) -> None:
    """TIME-WAIT is used again (RFC 6191): known from its SYN-ACK on."""
    flow = Connection(switch).open()
    switch.leave(2, flow.from_client(flags="FA"))
    flow.ack(flags="FA", ack=flow.client_isn + 2)
    switch.leave(2, flow.from_client(seq=flow.client_isn + 2, ack=flow.server_isn + 2))
    # The late SYN of the connection that has ended changes nothing.
    flow.syn()
    again = used_again(switch, flow).open()
    switch.rule(2, RULE)
    assert again.granted() == RULE >> 2
    assert switch.active(2) == 1


def test_the_third_connection_of_the_same_ports(switch: Switch) -> None:
    flow = Connection(switch).open()
    again = used_again(switch, flow).open()
    again.data(100)
    switch.leave(2, again.from_client(flags="R", seq=again.client_isn + 101))
    third = Connection(switch, sport=flow.sport, client_isn=77, server_isn=88, server_scale=5).open()
    third.data(100)
    switch.rule(2, RULE)
    assert third.granted() == RULE >> 5


def test_a_second_syn_before_any_answer(switch: Switch) -> None:
    """The first was lost behind the switch, and its sender has given up: the second one is answered."""
    flow = Connection(switch)
    flow.syn()
    again = used_again(switch, flow).open()
    switch.rule(2, RULE)
    assert again.granted() == RULE >> 2
    assert (switch.active(1), switch.active(2), switch.state(1).handshakes) == (1, 1, 1)
    again.data(1000)
    assert directions(switch, again)[0].bytes == 1000


def test_a_half_open_connection_of_a_dead_client(switch: Switch) -> None:
    """RFC 9293 3.5.1: the server answers with a challenge, the client resets it, and tries again."""
    flow = Connection(switch).open()
    flow.data(1000)
    flow.ack(ack=flow.client_isn + 1001)
    again = used_again(switch, flow)
    again.syn()
    flow.ack(ack=flow.client_isn + 1001)
    switch.leave(2, flow.from_client(flags="R", seq=flow.client_isn + 1001))
    again.syn()
    again.syn_ack()
    switch.rule(2, RULE)
    assert again.granted() == RULE >> 2


def test_syn_cookies_may_change_the_servers_number(switch: Switch) -> None:
    """The first SYN-ACK was lost behind the switch; the server has kept nothing, and takes another number."""
    flow = Connection(switch, server_scale=7)
    flow.syn()
    flow.syn_ack()
    flow.syn()
    second = Connection(
        switch, sport=flow.sport, client_isn=flow.client_isn, server_isn=123_456, server_scale=2
    )
    second.syn_ack()
    second.data(0)
    # Too late: the handshake is complete.
    flow.syn_ack()
    switch.rule(2, RULE)
    assert second.granted() == RULE >> 2
    assert switch.active(2) == 1


@pytest.mark.parametrize("order", ["12ab", "12ba", "1a2b"])
def test_simultaneous_open(switch: Switch, order: str) -> None:
    """RFC 9293 3.5: both SYNs cross; each side answers the other's. 1, a: the client's."""
    flow = Connection(switch, client_scale=3, server_scale=6)
    both = packets.syn_options(1460, 6)
    for step in order:
        if step == "1":
            flow.syn()
        elif step == "2":
            switch.leave(1, flow.from_server(flags="S", seq=flow.server_isn, ack=0, options=both))
        elif step == "a":
            options = packets.syn_options(1460, 3)
            segment = flow.from_client(flags="SA", seq=flow.client_isn, options=options)
            switch.leave(2, segment if order != "1a2b" else segment.but(flags="S", ack=0))
        else:
            flow.syn_ack()
    flow.data(1000)
    switch.rule(2, RULE)
    assert flow.granted(ack=flow.client_isn + 1001) == RULE >> 6
    assert (switch.active(1), switch.active(2)) == (1, 1)


@pytest.mark.parametrize("step", [20_000, 100_000, 2_000_000])
def test_a_new_connection_with_numbers_in_the_window_of_the_old_one(switch: Switch, step: int) -> None:
    """Hosts derive initial numbers from addresses, ports and the time: 64 ns are one (RFC 6528, Linux)."""
    flow = Connection(switch).open()
    flow.data(0)
    flow.ack(payload=b"d" * 1000)
    flow.data(1000, ack=flow.server_isn + 1001)
    flow.ack(seq=flow.server_isn + 1001, ack=flow.client_isn + 1001)
    switch.rule(2, RULE)
    again = Connection(
        switch, sport=flow.sport, client_isn=1000 + step, server_isn=5000 + step // 100, server_scale=2
    )
    again.open()
    again.data(0)
    assert again.granted() == RULE >> 2
    again.data(1000)
    assert again.granted(ack=again.client_isn + 1001) == RULE >> 2
    # What is late of the old one changes nothing.
    flow.ack(seq=flow.server_isn + 1001, ack=flow.client_isn + 1001)
    assert again.granted(ack=again.client_isn + 1001) == RULE >> 2
