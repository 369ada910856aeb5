"""What the program learns from handshakes and data: paths, scales, MSS; and what it must not learn."""

from __future__ import annotations

import ctypes
import socket

import pytest

from fairq_ryu.agent import layout
from tests.switch import packets
from tests.switch.packets import NOP, mss, padded, wscale
from tests.switch.rig import Connection, Switch, lowered

RULE = 40_000
KNOWN, WS = layout.CONSTANTS["FQ_KNOWN"], layout.CONSTANTS["FQ_WS"]


def index(switch: Switch, port: int) -> int:
    return switch.ports[port].ifindex


def test_handshake_teaches_path_scale_and_mss(switch: Switch) -> None:
    flow = Connection(switch, client_scale=3, server_scale=9, client_mss=1400, server_mss=8960)
    flow.syn()
    found = switch.flow(flow.data_key)
    assert found is not None
    client, server = found
    assert client.out.ifindex == index(switch, 2) and server.out.ifindex == 0
    assert not client.flags & KNOWN
    flow.syn_ack()
    found = switch.flow(flow.data_key)
    assert found is not None
    client, server = found
    assert (client.out.ifindex, server.out.ifindex) == (index(switch, 2), index(switch, 1))
    assert (client.wscale, server.wscale) == (3, 9)
    assert (client.mss, server.mss) == (1400, 8960)
    assert client.flags & KNOWN and client.flags & WS and server.flags & KNOWN and server.flags & WS
    assert switch.state(1).handshakes == 1


def test_both_directions_are_one_entry(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.data()
    flow.ack(payload=b"x")
    assert len(list(switch.datapath.window.flows.keys())) == 1
    assert switch.flow(flow.ack_key) is not None


@pytest.mark.parametrize(
    ("client", "server"),
    [
        ("10.0.0.1", "10.0.0.2"),
        ("10.0.0.2", "10.0.0.1"),
        ("1.0.0.9", "9.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("fe80::1", "fe80::2"),
        ("2::", "1::"),
        ("1::2", "1::1"),
        ("::1", "::1"),
    ],
)
@pytest.mark.parametrize("ports", [(1000, 2000), (2000, 1000), (0x0102, 0x0201)])
def test_any_order_of_ends(switch: Switch, client: str, server: str, ports: tuple[int, int]) -> None:
    flow = Connection(switch, client, server, server_scale=4, sport=ports[0], dport=ports[1]).open()
    flow.data()
    switch.rule(2, RULE)
    assert flow.granted() == RULE >> 4


def test_data_is_counted_where_it_leaves(switch: Switch) -> None:
    flow = Connection(switch).open()
    for size in (1, 999, 1448):
        flow.data(size)
    flow.data(0)
    found = switch.flow(flow.data_key)
    assert found is not None
    assert (found[0].packets, found[0].bytes) == (3, 2448)
    assert found[1].packets == 0


def test_ethernet_padding_is_not_payload(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.data(0, trailer=b"\0" * 6)
    found = switch.flow(flow.data_key)
    assert found is not None and found[0].packets == 0


def test_flow_that_moves_to_another_port(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.rule(3, RULE)
    assert flow.granted() == 65535
    flow.server_port = 3
    flow.data()
    assert flow.granted(ack=flow.client_isn + 1001) == RULE >> 7


@pytest.mark.parametrize("scale", [*range(15), 15, 31, 200, 255])
def test_scale_of_the_acks_sender(switch: Switch, scale: int) -> None:
    flow = Connection(switch, client_scale=2, server_scale=scale).open()
    switch.rule(2, RULE)
    # RFC 7323, 2.3: more than 14 counts as 14.
    assert flow.granted() == lowered(65535, RULE, min(scale, 14), 1460)


@pytest.mark.parametrize(("client_scale", "server_scale"), [(None, 7), (7, None), (None, None)])
def test_no_scaling_unless_both_offer_it(
    switch: Switch, client_scale: int | None, server_scale: int | None
) -> None:
    flow = Connection(switch, client_scale=client_scale, server_scale=server_scale).open()
    switch.rule(2, RULE)
    assert flow.granted() == RULE
    # The other direction as well: the server's data, the client's ACK.
    switch.rule(1, RULE)
    before = flow.from_client(window=65535).frame()
    assert packets.window(switch.leave(2, before)) == RULE


@pytest.mark.parametrize(
    ("options", "scale", "size"),
    [
        (mss(1200) + NOP + wscale(5), 5, 1200),
        (wscale(5) + mss(1200), 5, 1200),
        (NOP * 33 + wscale(5) + mss(1200), 5, 1200),
        (packets.sack_permitted() + packets.timestamps() + NOP + wscale(5) + mss(1200), 5, 1200),
        (b"\xfe\x08abcdef" + wscale(5) + mss(1200), 5, 1200),  # an unknown option
        # fast open, with a similar content
        (b"\x22\x0a" + b"\3\3\x0e" * 2 + b"ab" + wscale(5) + mss(1200), 5, 1200),
        (mss(1200) + b"\0" + wscale(5), None, 1200),  # behind the end of options
        (mss(1200) + b"\3\4\5\0", None, 1200),  # wrong length of a known option
        (mss(1200) + b"\3\2", None, 1200),
        (b"\2\3\1" + wscale(5), 5, 536),
        (b"", None, 536),
        (NOP * 40, None, 536),
        (NOP * 37 + wscale(5), 5, 536),
        (NOP * 38 + b"\3\3", None, 536),  # truncated by the end of the header
        (NOP * 39 + b"\3", None, 536),
        (mss(1200) + b"\x05\0" + wscale(5), None, 1200),  # length 0: must not loop
        (mss(1200) + b"\x05\1" + wscale(5), None, 1200),  # length 1
        (mss(1200) + b"\x05\xff" + wscale(5), None, 1200),  # length beyond the header
        (b"\2\x28" + b"\0" * 38, None, 536),
    ],
)
def test_options_of_a_syn(switch: Switch, options: bytes, scale: int | None, size: int) -> None:
    flow = Connection(switch)
    flow.syn()
    before = flow.syn_ack_segment(options=padded(options)).frame()
    assert switch.leave(1, before) == before
    switch.rule(2, RULE)
    assert flow.granted() == lowered(65535, RULE, scale or 0, size)
    switch.rule(2, 1)
    assert flow.granted() == lowered(65535, 1, scale or 0, size)


def test_mss_is_1220_by_default_with_ipv6(switch: Switch) -> None:
    flow = Connection(switch, "fe80::1", "fe80::2", server_scale=None, server_mss=None).open()
    switch.rule(2, 1)
    assert flow.granted() == 1220


def test_flow_older_than_the_agent_is_not_changed_and_is_counted(switch: Switch) -> None:
    flow = Connection(switch)
    flow.data()
    switch.rule(2, 3000)
    before = flow.from_server(window=65535).frame()
    assert switch.leave(1, before) == before
    assert switch.leave(1, before) == before
    state = switch.state(2)
    assert (state.acks, state.unknown_scale, state.rewritten) == (2, 2, 0)
    assert switch.datapath.counters(0) == (2, 0)
    assert switch.active(2) == 0, "it takes no share of a pool that cannot reach it"


@pytest.mark.parametrize("seen", ["syn", "syn_ack"])
def test_half_a_handshake_teaches_no_scale(switch: Switch, seen: str) -> None:
    flow = Connection(switch)
    getattr(flow, seen)()
    flow.data()
    switch.rule(2, 3000)
    before = flow.from_server(window=65535).frame()
    assert switch.leave(1, before) == before
    assert switch.state(2).unknown_scale == 1


def test_bare_acks_and_ends_of_unknown_flows_make_no_entry(switch: Switch) -> None:
    flow = Connection(switch)
    flow.ack()
    flow.ack(flags="FA")
    flow.ack(flags="R")
    assert list(switch.datapath.window.flows.keys()) == []


def test_stray_syn_on_a_live_connection_changes_no_scale(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.rule(2, RULE)
    for options in (packets.syn_options(9000, 1), b""):
        switch.leave(1, flow.from_server(flags="S", seq=777, options=options))
        switch.leave(2, flow.from_client(flags="S", seq=888, options=options))
    # RFC 5961: the answer is a plain ACK.
    assert flow.granted() == RULE >> 7
    assert switch.state(1).handshakes == 1


def test_stale_syn_ack_is_ignored(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.data(0)
    switch.rule(2, RULE)
    flow.syn(seq=2**31)  # the port is reused
    for wrong in (0, flow.client_isn + 1, 2**31, 2**31 + 2):
        flow.syn_ack(ack=wrong, options=packets.syn_options(9000, 0), seq=4)
        assert flow.granted() == RULE >> 7
    assert switch.state(1).handshakes == 1


def test_syn_ack_without_syn_on_a_live_connection_is_ignored(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.rule(2, RULE)
    flow.syn_ack(options=packets.syn_options(9000, 0))
    assert flow.granted() == RULE >> 7


@pytest.mark.parametrize("end", ["", "F", "R"])
def test_port_used_again_takes_the_new_scale(switch: Switch, end: str) -> None:
    flow = Connection(switch).open()
    flow.data()
    if end:
        switch.leave(2, flow.from_client(flags=end + "A"))
        flow.ack(flags=end + "A")
    again = Connection(
        switch, sport=flow.sport, server_scale=2, client_isn=99_000, server_isn=7, server_mss=900
    )
    again.open()
    again.data()
    switch.rule(2, RULE)
    assert again.granted() == RULE >> 2
    switch.rule(2, 1)
    assert again.granted() == 900 // 4
    assert switch.active(2) == 1
    found = switch.flow(again.data_key)
    assert found is not None and found[0].bytes == 1000, "counts start again"
    assert switch.state(1).handshakes == 2


def test_isn_at_the_end_of_the_number_space(switch: Switch) -> None:
    flow = Connection(switch, client_isn=2**32 - 1)
    flow.open()
    switch.rule(2, RULE)
    assert flow.granted() == RULE >> 7


def test_repeated_handshake_counts_once(switch: Switch) -> None:
    flow = Connection(switch)
    flow.syn()
    flow.syn()
    for _ in range(3):
        flow.syn_ack()
    assert (switch.state(1).handshakes, switch.active(1), switch.active(2)) == (1, 1, 1)
    # The first SYN-ACK was lost behind the switch: both are sent again.
    flow.syn()
    flow.syn_ack()
    assert (switch.state(1).handshakes, switch.active(1), switch.active(2)) == (1, 1, 1)
    switch.rule(2, RULE)
    assert flow.granted() == RULE >> 7


def test_interface_that_is_no_port_is_ignored(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.rule(2, 3000)
    other = socket.if_nametoindex("p1h")
    before = flow.from_server(window=65535).frame()
    result = switch.program.run(before, other)
    assert (result.verdict, result.packet) == (-1, before)
    assert switch.datapath.window._port_slots.get(ctypes.c_uint32(other)) is None
