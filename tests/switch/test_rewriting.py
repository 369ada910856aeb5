"""Which windows are lowered, to which value; and that nothing else of the packet changes."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from fairq_ryu.model import WindowKind
from tests.switch import packets
from tests.switch.packets import DESTINATION, HOP_BY_HOP, NOP, QINQ, ROUTING, VLAN
from tests.switch.rig import Connection, Switch, lowered

RULE = 30_000
TIMESTAMPS = NOP * 2 + packets.timestamps()
V6 = {"client": "2001:db8::1", "server": "2001:db8::2"}
# An HBH and a DST header of PadN, a routing header of type 4 with no segments left.
PADN = b"\x01\x04\0\0\0\0"
EXTENSIONS = ((HOP_BY_HOP, PADN), (ROUTING, b"\x04\0" + b"\0" * 20), (DESTINATION, PADN))

SHAPES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "ipv4": ({}, {}),
    "ipv4 router alert": ({}, {"ip_options": b"\x94\x04\0\0"}),
    "ipv4 with 40 bytes of options": ({}, {"ip_options": b"\x01" * 40}),
    "ipv6": (V6, {}),
    "ipv6 with one extension header": (V6, {"extensions": EXTENSIONS[:1]}),
    "ipv6 with three extension headers": (V6, {"extensions": EXTENSIONS}),
    "ipv6 with six extension headers": (V6, {"extensions": EXTENSIONS[2:] * 6}),
    "one vlan tag": ({}, {"vlans": ((VLAN, 0xE00A),)}),
    "one 802.1ad tag": ({}, {"vlans": ((QINQ, 10),)}),
    "802.1ad over 802.1Q": ({}, {"vlans": ((QINQ, 10), (VLAN, 20))}),
    "two 802.1Q tags": ({}, {"vlans": ((VLAN, 10), (VLAN, 20))}),
    "two tags, ipv4 options": ({}, {"vlans": ((QINQ, 1), (VLAN, 2)), "ip_options": b"\x94\x04\0\0"}),
    "two tags, ipv6, extension headers": (
        V6,
        {"vlans": ((QINQ, 10), (VLAN, 20)), "extensions": EXTENSIONS},
    ),
}
TCP: dict[str, dict[str, Any]] = {
    "bare": {},
    "timestamps": {"options": TIMESTAMPS},
    "sack": {"options": TIMESTAMPS + NOP * 2 + packets.sack(1, 2, 3, 4)},
    "40 bytes of options": {"options": NOP * 40},
    "odd data": {"payload": b"abc", "flags": "PA"},
    "data and timestamps": {"options": TIMESTAMPS, "payload": b"d" * 1448},
    "fin": {"flags": "FA"},
    "urgent, ecn": {"flags": "UECPA", "urgent": 3, "payload": b"abcd"},
    "ethernet padding": {"trailer": b"\xa5" * 7},
}


@pytest.mark.parametrize("tcp", TCP)
@pytest.mark.parametrize("shape", SHAPES)
def test_acks_of_every_header_layout_are_rewritten(switch: Switch, shape: str, tcp: str) -> None:
    ends, round_it = SHAPES[shape]
    flow = Connection(switch, **ends, shape=round_it, server_scale=5).open()  # type: ignore[arg-type]
    flow.data()
    switch.rule(2, RULE)
    before = flow.from_server(window=60_000, **TCP[tcp])
    after = switch.leave(1, before)
    # The complete frame: the same segment, built from scratch with the lower window.
    assert after == before.but(window=RULE >> 5).frame()
    assert switch.datapath.counters(0) == (1, 1)


@pytest.mark.parametrize(
    "what",
    [
        {"vlans": ((VLAN, 1), (VLAN, 2), (VLAN, 3))},
        {"shape6": True, "extensions": EXTENSIONS[2:] * 7},
        {"shape6": True, "extensions": ((44, PADN),)},  # a fragment
        {"shape6": True, "extensions": ((51, PADN),)},  # authentication header: it signs the packet
        {"shape6": True, "extensions": ((59, PADN),)},
    ],
)
def test_packets_that_are_not_parsed_are_not_changed(switch: Switch, what: dict[str, Any]) -> None:
    ends = V6 if what.pop("shape6", False) else {}
    flow = Connection(switch, **ends).open()  # type: ignore[arg-type]
    switch.rule(2, RULE)
    before = flow.from_server(window=65535, **what).frame()
    assert switch.leave(1, before) == before
    assert switch.datapath.counters(0) == (0, 0)


def test_syn_is_never_rewritten(switch: Switch) -> None:
    flow = Connection(switch).open()
    for port in (1, 2):
        switch.rule(port, 3000)
        switch.rule(flow.data_key, 2000, slot=1)
        switch.rule(flow.ack_key, 2000, slot=2)
    before = flow.from_client(flags="S", window=65535, options=packets.syn_options(1460, 7)).frame()
    assert switch.leave(2, before) == before
    before = flow.from_client(flags="SEC", window=65535, seq=1000, ack=0).frame()
    assert switch.leave(2, before) == before


def test_syn_ack_is_rewritten_unscaled(switch: Switch) -> None:
    flow = Connection(switch)
    switch.rule(2, RULE)
    flow.syn()
    before = flow.syn_ack_segment(window=65160)
    assert switch.leave(1, before) == before.but(window=RULE).frame()
    # The same, repeated.
    assert switch.leave(1, before) == before.but(window=RULE).frame()
    assert flow.granted() == RULE >> 7


def test_data_with_ack_is_rewritten_both_ways(switch: Switch) -> None:
    flow = Connection(switch, client_scale=3, server_scale=6).open()
    switch.rule(1, RULE)
    switch.rule(2, 2 * RULE, slot=1)
    from_client = flow.from_client(payload=b"request", window=50_000)
    assert switch.leave(2, from_client) == from_client.but(window=RULE >> 3).frame()
    from_server = flow.from_server(payload=b"response", window=50_000)
    assert switch.leave(1, from_server) == from_server.but(window=2 * RULE >> 6).frame()
    assert switch.datapath.counters(0) == (1, 1) == switch.datapath.counters(1)


def test_segment_without_ack_is_not_rewritten(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.rule(2, 3000)
    before = flow.from_server(flags="P", payload=b"x", window=65535).frame()
    assert switch.leave(1, before) == before


@pytest.mark.parametrize("flags", ["R", "RA"])
def test_rst_is_not_rewritten(switch: Switch, flags: str) -> None:
    flow = Connection(switch).open()
    switch.rule(2, 3000)
    before = flow.from_server(flags=flags, window=65535).frame()
    assert switch.leave(1, before) == before


def test_rule_of_the_other_port_does_not_matter(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.rule(1, 3000)  # the port of the ACK, not that of its data
    switch.rule(3, 3000)
    assert flow.granted() == 65535


@pytest.mark.parametrize("advertised", [0, 1, 11, 12, 234, 235])
def test_windows_are_never_raised(switch: Switch, advertised: int) -> None:
    flow = Connection(switch).open()
    switch.rule(2, RULE)  # 234 steps
    assert flow.granted(advertised) == min(advertised, 234)
    switch.rule(2, 1)
    # The receiver itself advertised less than one MSS: its value is kept.
    assert flow.granted(advertised) == min(advertised, 12)
    switch.rule(2, 0xFFFFFFFF)
    assert flow.granted(advertised) == advertised


@pytest.mark.parametrize("scale", range(15))
@pytest.mark.parametrize("size", [1, 536, 1460, 8960, 65495])
def test_floor_is_one_mss_rounded_up_to_a_step(switch: Switch, scale: int, size: int) -> None:
    flow = Connection(switch, server_scale=scale, client_mss=size, server_mss=size).open()
    switch.rule(2, 1)
    granted = flow.granted()
    assert granted * 2**scale >= size
    assert (granted - 1) * 2**scale < size


@pytest.mark.parametrize("scale", [0, 7, 14, None])
def test_rule_of_0_pauses(switch: Switch, scale: int | None) -> None:
    flow = Connection(switch, server_scale=scale).open()
    switch.rule(2, 0)
    assert flow.granted() == 0
    assert flow.granted(1) == 0
    assert flow.granted(0) == 0
    assert switch.state(2).coarse == 0


def test_empty_pool_does_not_pause(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.pool(2, 0)
    assert flow.granted() == 12


@pytest.mark.parametrize(("size", "coarse"), [(16383, 1), (16384, 0), (1, 1), (0xFFFFFFFF, 0)])
def test_window_below_one_step_is_counted_as_coarse(switch: Switch, size: int, coarse: int) -> None:
    flow = Connection(switch, server_scale=14).open()
    switch.rule(2, size)
    flow.ack()
    assert switch.state(2).coarse == coarse


def test_flows_own_rule_beats_the_ports(switch: Switch) -> None:
    flow, other = Connection(switch).open(), Connection(switch).open()
    switch.rule(2, 20_000, slot=0)
    switch.rule(flow.ack_key, 40_000, slot=1)
    assert flow.granted() == 40_000 >> 7
    assert other.granted() == 20_000 >> 7
    switch.rule(flow.ack_key, 10_000, slot=1)
    assert flow.granted() == 10_000 >> 7
    assert switch.datapath.counters(0) == (1, 1)
    assert switch.datapath.counters(1) == (2, 2)
    # The rule of the opposite direction is another rule.
    switch.datapath.remove_rule(flow.ack_key)
    switch.rule(flow.data_key, 5000, slot=2)
    assert flow.granted() == 20_000 >> 7
    switch.datapath.remove_rule(flow.data_key)
    switch.datapath.remove_rule(2)
    assert flow.granted() == 65535


def test_own_rule_for_ipv6(switch: Switch) -> None:
    flow = Connection(switch, "fe80::2", "fe80::1").open()
    switch.rule(flow.ack_key, RULE)
    assert flow.granted() == RULE >> 7


def test_expired_lease_is_ignored(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.rule(2, 3000, lease=-1e-3)
    assert flow.granted() == 65535
    assert switch.datapath.counters(0) == (0, 0)
    switch.rule(2, RULE)
    switch.rule(flow.ack_key, 3000, lease=-1e-3)
    assert flow.granted() == RULE >> 7, "the flow's rule is gone, the port's stands"
    switch.rule(2, 3000, lease=-1e6)  # as far back as there is
    switch.rule(flow.ack_key, 3000, lease=-1e6)
    assert flow.granted() == 65535


def test_lease_runs_out_and_is_refreshed(switch: Switch) -> None:
    flow = Connection(switch).open()
    lease = 0.5
    for _ in range(2):
        given_at = time.monotonic()
        switch.rule(2, RULE, lease=lease)
        granted = flow.granted()
        if time.monotonic() - given_at < lease:  # not on a machine that was suspended here
            assert granted == RULE >> 7
        time.sleep(max(0.0, given_at + lease - time.monotonic()) + 0.01)
        assert flow.granted() == 65535
    switch.rule(2, RULE, lease=0.3)
    switch.rule(2, RULE, lease=3600)
    time.sleep(0.35)
    assert flow.granted() == RULE >> 7


def test_counters(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.rule(2, RULE, slot=3)
    for window in (65535, 100, 65535):
        flow.ack(window)
    assert switch.datapath.counters(3) == (3, 2)
    state = switch.state(2)
    assert (state.acks, state.rewritten, state.unknown_scale) == (3, 2, 0)
    found = switch.flow(flow.ack_key)
    assert found is not None and (found[0].rewritten, found[1].rewritten) == (2, 0)


@pytest.mark.parametrize("error", [1, 0x1234, 0x8000, 0xFFFE])
def test_wrong_checksum_stays_as_wrong(switch: Switch, error: int) -> None:
    flow = Connection(switch).open()
    switch.rule(2, RULE)
    before = flow.from_server(checksum_error=error).frame()
    after = switch.leave(1, before)
    assert packets.window(after) == RULE >> 7
    assert packets.residue(before) != 0
    assert packets.residue(after) == packets.residue(before)


tcp_options = st.lists(
    st.sampled_from([NOP, packets.timestamps(), packets.sack(7, 8), b"\xfd\x05abc"]), max_size=3
).map(lambda found: packets.padded(b"".join(found)))
scales = st.none() | st.integers(0, 255)
sizes = st.none() | st.integers(0, 65535)
rounds = st.fixed_dictionaries(
    {
        "vlans": st.lists(st.tuples(st.sampled_from([VLAN, QINQ]), st.integers(0, 65535)), max_size=2).map(
            tuple
        )
    }
)
ip4 = st.fixed_dictionaries({"ip_options": st.integers(0, 10).map(lambda words: b"\x01" * 4 * words)})
ip6 = st.fixed_dictionaries(
    {
        "extensions": st.lists(
            st.tuples(
                st.sampled_from([HOP_BY_HOP, ROUTING, DESTINATION]),
                st.integers(0, 4).flatmap(lambda n: st.binary(min_size=8 * n + 6, max_size=8 * n + 6)),
            ),
            max_size=6,
        ).map(tuple)
    }
)


@settings(
    max_examples=1500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    v6=st.booleans(),
    round_it=rounds,
    round4=ip4,
    round6=ip6,
    client_scale=scales,
    server_scale=scales,
    size=sizes,
    advertised=st.integers(0, 65535),
    rule=st.integers(0, 70_000) | st.integers(0, 0xFFFFFFFF),
    pool=st.booleans(),
    others=st.integers(0, 3),
    flags=st.sampled_from(["A", "PA", "FA", "UA", "EA", "CA", "FPUECA"]),
    options=tcp_options,
    payload=st.binary(max_size=40),
    checksum_error=st.just(0) | st.integers(0, 0xFFFE),
)
def test_the_rule_of_the_window_laws(
    loaded_switch: Switch,
    v6: bool,
    round_it: dict[str, Any],
    round4: dict[str, Any],
    round6: dict[str, Any],
    client_scale: int | None,
    server_scale: int | None,
    size: int | None,
    advertised: int,
    rule: int,
    pool: bool,
    others: int,
    flags: str,
    options: bytes,
    payload: bytes,
    checksum_error: int,
) -> None:
    switch = loaded_switch
    switch.reset()
    for _ in range(others):
        Connection(switch).open()
    flow = Connection(
        switch,
        **(V6 if v6 else {}),  # type: ignore[arg-type]
        client_scale=client_scale,
        server_scale=server_scale,
        client_mss=size,
        server_mss=size,
        shape=round_it | (round6 if v6 else round4),
    ).open()
    switch.rule(2, rule, WindowKind.POOL if pool else WindowKind.WINDOW)
    before = flow.from_server(
        window=advertised, flags=flags, options=options, payload=payload, checksum_error=checksum_error
    )
    after = switch.leave(1, before)

    scale = 0 if client_scale is None or server_scale is None else min(server_scale, 14)
    share = rule // (others + 1) if pool else rule
    wanted = lowered(advertised, share, scale, size or (1220 if v6 else 536), pauses=not pool)
    event("lowered" if wanted < advertised else "left alone")
    assert packets.window(after) == wanted
    assert wanted <= advertised
    assert packets.residue(after) == packets.residue(before.frame())
    assert packets.outside_window(after) == packets.outside_window(before.frame())
    if not checksum_error:
        assert packets.residue(after) == 0
        assert after == before.but(window=wanted).frame()
    state = switch.state(2)
    assert (state.acks, state.rewritten) == (1, int(wanted < advertised))
    assert state.coarse == int(share < 2**scale and (pool or rule > 0))
