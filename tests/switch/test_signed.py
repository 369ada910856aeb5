"""Connections that are signed (TCP-MD5, TCP-AO): their segments leave as they came, and are counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.registry import window_laws
from fairq_ryu.model import WindowKind
from tests.switch import packets
from tests.switch.packets import NOP
from tests.switch.rig import Connection, Switch

LIMITS = QueueLimits("htb", 125_000, 25_000_000)
STAMPED = NOP * 2 + packets.timestamps()
SIGNATURES = {
    "TCP-MD5": NOP * 2 + bytes([19, 18]) + bytes(range(16)),
    "TCP-MD5 and timestamps": STAMPED + NOP * 2 + bytes([19, 18]) + bytes(range(16)),
    "timestamps later": bytes([19, 18]) + bytes(range(16)) + packets.timestamps(),
    "TCP-AO": bytes([29, 16, 1, 1]) + bytes(range(12)),
    "TCP-AO and timestamps": STAMPED + bytes([29, 16, 1, 1]) + bytes(range(12)),
}
SHAPES = {
    "IPv4": {},
    "IPv6": {"client": "fd00::1", "server": "fd00::2"},
    "VLAN": {"shape": {"vlans": ((packets.VLAN, 7),)}},
}


def law(switch: Switch, kind: type[LawSpec]) -> None:
    """Both directions are governed by it."""
    expires = time.monotonic_ns() + 3600 * 10**9
    for port in (1, 2):
        switch.datapath.install_law(port, port, parameters(kind(), LIMITS), expires)
        switch.rule(port, port, WindowKind.LAW)


def ports(kind: WindowKind, size: int) -> Callable[[Switch], None]:
    return lambda switch: [switch.rule(port, size, kind) for port in (1, 2)] and None


RULES: dict[str, Callable[[Switch], None]] = {
    "window": ports(WindowKind.WINDOW, 1460),
    "pause": ports(WindowKind.WINDOW, 0),
    "pool": ports(WindowKind.POOL, 3000),
    **{each.name: lambda switch, each=each: law(switch, each) for each in window_laws().values()},  # type: ignore[misc]
}


@pytest.fixture(autouse=True)
def no_law(switch: Switch) -> Iterator[None]:
    yield
    for port in (1, 2):
        switch.datapath.remove_law(port)


def unchanged(switch: Switch, port: int, frame: bytes) -> None:
    assert switch.leave(port, frame) == frame


def converse(flow: Connection, signature: bytes, handshake: bool = True) -> int:
    """Handshake and data both ways with ECN, all signed, and all unchanged; the number of data segments of a
    direction, which are ACKs of the other.
    """
    switch = flow.switch
    offers = packets.padded(packets.mss(1460) + packets.wscale(7) + signature)
    signed = packets.padded(signature)
    data = b"d" * 1000
    if handshake:
        syn = flow.from_client(seq=flow.client_isn, ack=0, flags="SEC", options=offers)
        unchanged(switch, 2, syn.frame())
        unchanged(switch, 1, flow.from_server(seq=flow.server_isn, flags="SAE", options=offers).frame())
    for turn in range(3):
        for flags in ("A", "AE"):
            at = 1 + 1000 * turn
            both = {"options": signed, "flags": flags}
            there = flow.from_client(seq=flow.client_isn + at, ack=flow.server_isn + at, payload=data, **both)
            back = flow.from_server(
                seq=flow.server_isn + at, ack=flow.client_isn + at + 1000, payload=data, **both
            )
            unchanged(switch, 2, there.frame())
            unchanged(switch, 1, back.frame())
    return 6


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("signature", SIGNATURES)
def test_nothing_is_altered(switch: Switch, signature: str, rule: str, shape: str) -> None:
    RULES[rule](switch)
    flow = Connection(switch, **SHAPES[shape])  # type: ignore[arg-type]
    acks = converse(flow, SIGNATURES[signature])
    for port, handshakes in ((1, 0), (2, 1)):
        state = switch.state(port)
        assert (state.rewritten, state.would_lower, state.unknown_scale) == (0, 0, 0)
        assert state.acks == state.signed_acks == acks + handshakes
        assert switch.active(port) == 0, "it takes no share of a pool"


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_connection_that_is_older_than_the_agent(switch: Switch, signature: str) -> None:
    RULES["window"](switch)
    flow = Connection(switch)
    acks = converse(flow, SIGNATURES[signature], handshake=False)
    for port in (1, 2):
        state = switch.state(port)
        # The first segment of a direction that is not known yet meets no rule.
        assert state.signed_acks == state.acks and acks - 1 <= state.acks <= acks
    for key in (flow.data_key, flow.ack_key):
        assert switch.datapath.segment_state(key).is_signed


def test_a_flow_rule_does_not_apply_either(switch: Switch) -> None:
    flow = Connection(switch)
    switch.rule(flow.ack_key, 0)
    acks = converse(flow, SIGNATURES["TCP-MD5"])
    assert switch.state(2).signed_acks == acks + 1 and switch.state(2).rewritten == 0


def test_a_syn_ack_that_answers_nothing_known(switch: Switch) -> None:
    """The window of a SYN-ACK is lowered even if it is not believed, unless it is signed."""
    RULES["window"](switch)
    flow = Connection(switch).open()
    flow.ack()
    options = packets.syn_options(1460, 7, SIGNATURES["TCP-MD5"])
    late = flow.syn_ack_segment(seq=777, ack=4, options=options)
    unchanged(switch, 1, late.frame())
    assert switch.state(2).signed_acks == 1


def test_a_forged_signature_frees_no_connection(switch: Switch) -> None:
    """A connection is signed from its SYN on or never, so this segment is left alone, and no other."""
    RULES["window"](switch)
    flow = Connection(switch).open()
    forged = flow.from_server(options=packets.padded(SIGNATURES["TCP-AO"])).frame()
    unchanged(switch, 1, forged)
    assert not switch.datapath.segment_state(flow.ack_key).is_signed
    assert flow.granted() < 65535
    assert switch.state(2).signed_acks == 1 and switch.state(2).rewritten == 2, "the SYN-ACK, too"


def test_other_options_are_no_signature(switch: Switch) -> None:
    RULES["window"](switch)
    flow = Connection(switch).open()
    for options in (
        STAMPED + NOP * 2 + packets.sack(1, 2, 3, 4),
        NOP * 2 + packets.sack(1, 2),
        packets.padded(bytes([253, 4, 19, 29])),
        packets.padded(b"\0\0\0\0" + bytes([19, 18]) + bytes(16)),
        packets.padded(bytes([19, 1, 0, 0])),
    ):
        assert flow.granted(options=options) < 65535, options
    assert switch.state(2).signed_acks == 0
