"""One largest scale for the network, set where handshakes leave the bridge; packet in and packet out."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.model import FlowKey
from fairq_ryu.packet.tcp_build import Addressing, window_update
from tests.switch import packets
from tests.switch.packets import NOP, VLAN
from tests.switch.rig import PATIENT, Connection, Switch, loaded, lowered

C = layout.CONSTANTS
S = 7
LIMITS = replace(PATIENT, unify_scale=S, unify_grace=0)
SHAPES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "ipv4": ({}, {}),
    "ipv6": ({"client": "2001:db8::1", "server": "2001:db8::2"}, {}),
    "vlan": ({}, {"vlans": ((VLAN, 10),)}),
}


@pytest.fixture(scope="module")
def unifying(own_namespace: None) -> Iterator[Switch]:
    with loaded(LIMITS) as switch:
        yield switch


@pytest.fixture
def switch(unifying: Switch) -> Switch:
    unifying.reset()
    return unifying


def with_scale(scale: int | None) -> bytes:
    return packets.syn_options(1460, scale, packets.sack_permitted())


def wire(scale: int) -> int:
    return min(scale, S)


def converted(window: int, scale: int) -> int:
    return min(65_535, window << scale >> wire(scale))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("client", range(15))
def test_handshakes_and_windows_of_each_scale(switch: Switch, shape: str, client: int) -> None:
    ends, round_it = SHAPES[shape]
    for server in range(15):
        flow = Connection(switch, client_scale=client, server_scale=server, shape=round_it, **ends)  # type: ignore[arg-type]
        for _ in range(2):  # once more, when it is retransmitted
            assert (
                flow.syn()
                == flow.from_client(seq=1000, ack=0, flags="S", options=with_scale(wire(client))).frame()
            )
        for _ in range(2):
            expected = flow.syn_ack_segment(options=with_scale(wire(server))).frame()
            assert flow.syn_ack() == expected
        for window in (0, 1, 511, 40_000, 65_535):
            before = flow.from_server(window=window, options=NOP * 2 + packets.timestamps())
            after = before.but(window=converted(window, server))
            assert switch.leave(1, before) == after.frame()
            assert after.window << wire(server) <= window << server, "never larger"
            before = flow.from_client(window=window, payload=b"odd")
            assert switch.leave(2, before) == before.but(window=converted(window, client)).frame()
        found = switch.flow(flow.ack_key)
        assert found is not None and (found[0].wscale, found[1].wscale) == (wire(server), wire(client))


def test_rules_lower_in_the_steps_of_the_network(switch: Switch) -> None:
    flow = Connection(switch, server_scale=9).open()
    flow.data()
    switch.rule(2, 30_001)
    before = flow.from_server(window=60_000)
    assert switch.leave(1, before) == before.but(window=lowered(65_535, 30_001, S, 1460)).frame()
    small = flow.from_server(window=10)
    assert switch.leave(1, small) == small.but(window=40).frame()


@pytest.mark.parametrize("missing", ["client", "server"])
def test_without_the_option_on_one_side_windows_stay(switch: Switch, missing: str) -> None:
    flow = Connection(switch, **{"client_scale": 9, "server_scale": 9} | {f"{missing}_scale": None}).open()  # type: ignore[arg-type]
    assert flow.granted(1000) == 1000
    before = flow.from_client(window=1000).frame()
    assert switch.leave(2, before) == before


def test_an_answer_whose_syn_was_not_seen_stays(switch: Switch) -> None:
    """The SYN has taken another path, and so may the answer's other segments."""
    flow = Connection(switch, server_scale=9)
    assert flow.syn_ack() == flow.syn_ack_segment().frame()


def test_signed_connections_stay(switch: Switch) -> None:
    options = packets.padded(packets.wscale(9) + b"\x13\x12" + b"s" * 16)
    flow = Connection(switch)
    before = flow.from_client(seq=1000, ack=0, flags="S", options=options).frame()
    assert switch.leave(2, before) == before


def test_a_handshake_that_may_have_begun_before_the_agent_stays(switch: Switch) -> None:
    window = switch.datapath.window
    window._unify_ns = time.monotonic_ns() + 60 * 10**9
    window._write_config()
    try:
        flow = Connection(switch, client_scale=9, server_scale=9)
        assert flow.syn() == flow.from_client(seq=1000, ack=0, flags="S", options=with_scale(9)).frame()
    finally:
        window._unify_ns = 0
        window._write_config()
    # The SYN that is sent again does as the first did.
    assert flow.syn() == flow.from_client(seq=1000, ack=0, flags="S", options=with_scale(9)).frame()
    flow.syn_ack()
    before = flow.from_client(window=1000).frame()
    assert switch.leave(2, before) == before


def test_handshakes_that_leave_by_an_observed_port_keep_their_scales(switch: Switch) -> None:
    """A mode that changes later changes nothing for connections that are open."""
    switch.datapath.observe(2, True)
    flow = Connection(switch, client_scale=9, server_scale=9)
    syn = flow.from_client(seq=1000, ack=0, flags="S", options=with_scale(9)).frame()
    assert flow.syn() == syn
    assert flow.syn_ack() == flow.syn_ack_segment(options=with_scale(S)).frame()
    for observed in ({2}, set(), {1, 2}):
        for port in (1, 2):
            switch.datapath.observe(port, port in observed)
        assert flow.syn() == syn
        assert packets.window(switch.leave(2, flow.from_client(window=1000))) == 1000
        assert packets.window(switch.leave(1, flow.from_server(window=1000))) == 4000


def test_forged_segments_are_not_converted_and_copies_of_others_neither(switch: Switch) -> None:
    """Of other connections with these ports, and those that leave by a second port: a mirror, or a way back
    through this machine.
    """
    flow = Connection(switch, server_scale=9).open()
    flow.data()
    flow.ack()
    for where, what in ((1, {"ack": 3_000_000_000}), (3, {})):
        before = flow.from_server(window=1000, **what).frame()
        assert switch.leave(where, before) == before


def test_a_segment_that_passes_twice_is_converted_once(switch: Switch) -> None:
    flow = Connection(switch, client_scale=9, server_scale=9)
    first = flow.syn()
    assert switch.leave(3, first) == first
    flow.syn_ack()
    flow.ack()
    once = switch.leave(1, flow.from_server(window=1000))
    assert packets.window(once) == 4000
    assert switch.leave(3, once) == once


def test_what_the_agent_sends_itself_is_not_converted(switch: Switch) -> None:
    """It is made of the flow map, whose windows are in the scale of the network."""
    flow = Connection(switch, server_scale=9).open()
    flow.data()
    flow.ack(1000)
    state = switch.datapath.segment_state(flow.ack_key)
    assert (state.window, state.wscale) == (4000, S)
    known = FlowKey(flow.server, flow.client, flow.dport, flow.sport)
    frame = window_update(Addressing(known, "02:00:00:00:00:01", "02:00:00:00:00:02"), state)
    assert isinstance(frame, bytes)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as host:
        host.bind(("p1h", 0x0800))
        host.settimeout(10)
        assert switch.datapath.send_frame(1, frame)
        assert packets.window(host.recv(2048)) == 4000
    assert packets.window(flow.ack(1000)) == 4000, "the next one of the host is"
