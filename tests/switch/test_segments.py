"""The state that the program keeps of the last segments: sequence numbers, timestamps, progress, round-trip
time.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.channel import flow_records
from fairq_ryu.model import SegmentState
from fairq_ryu.packet import tcp_build
from tests.switch import packets
from tests.switch.packets import NOP, padded, timestamps
from tests.switch.rig import Connection, Switch

C = layout.CONSTANTS
TS = NOP * 2 + timestamps(100, 200)
WRAP = 2**32


def both(switch: Switch, flow: Connection) -> tuple[Any, Any]:
    """``fq_dir`` of the client and of the server."""
    found = switch.flow(flow.data_key)
    assert found is not None
    return found


def record(switch: Switch, key: flow_records.FlowKey) -> flow_records.FlowRecord:
    parts = switch.datapath.flow_records(0, list(switch.ports.values()))
    (found,) = [r for part in parts for r in flow_records.decode_reply(part) if r.key == key]
    return found


def timed(switch: Switch, **more: Any) -> Connection:
    """A connection that negotiated timestamps, with its handshake complete except for the last ACK."""
    flow = Connection(switch, **more)
    options = packets.mss(1460) + packets.sack_permitted() + timestamps(7, 0) + NOP + packets.wscale(7)
    flow.syn(options=options)
    flow.syn_ack(options=options[:6] + timestamps(8, 7) + NOP + packets.wscale(7), window=64000)
    return flow


def final_ack(flow: Connection, **what: Any) -> None:
    flow.switch.leave(flow.server_port, flow.from_client(**what))


# Sequence numbers


@pytest.mark.parametrize("isn", [5000, WRAP - 1, WRAP - 1500, 2**31 - 500])
def test_the_next_sequence_number_is_kept(switch: Switch, isn: int) -> None:
    flow = Connection(switch, client_isn=isn).open()
    start = (isn + 1) % WRAP
    assert both(switch, flow)[0].seq_next == start
    flow.data(1000)
    assert both(switch, flow)[0].seq_next == (start + 1000) % WRAP
    flow.data(1000, seq=(start + 1000) % WRAP)
    flow.data(1000)  # a retransmission: nothing is reset
    assert both(switch, flow)[0].seq_next == (start + 2000) % WRAP
    final_ack(flow, seq=(start + 2000) % WRAP, flags="FA")
    assert both(switch, flow)[0].seq_next == (start + 2001) % WRAP


def test_numbers_outside_of_the_window_replace_the_state_when_both_sides_use_them(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.data(10)
    flow.data(10, seq=2**31 + 77)
    assert both(switch, flow)[0].seq_next == flow.client_isn + 11
    flow.ack(ack=2**31 + 87)
    assert both(switch, flow)[0].seq_next == 2**31 + 87
    flow.data(10)
    assert both(switch, flow)[0].seq_next == 2**31 + 87
    flow.ack(ack=flow.client_isn + 11)
    assert both(switch, flow)[0].seq_next == flow.client_isn + 11


def test_a_stray_syn_and_a_reset_move_nothing(switch: Switch) -> None:
    flow = timed(switch)
    flow.data(100, options=TS)
    flow.ack(ack=flow.client_isn + 101, options=TS)
    fields = ("seq_next", "ack", "window", "tsval", "tsecr", "acked", "rtt_ns")

    def state() -> list[int]:
        return [getattr(d, name) for d in both(switch, flow) for name in fields]

    known = state()
    switch.leave(1, flow.from_server(flags="S", seq=777, options=packets.syn_options(9000, 1)))
    switch.leave(2, flow.from_client(flags="S", seq=888, options=packets.syn_options(9000, 1)))
    switch.leave(2, flow.from_client(flags="RA", seq=888_888, ack=999))
    assert state() == known


# Acknowledgements


@pytest.mark.parametrize("isn", [5000, WRAP - 1, WRAP - 1500, 2**31 - 500])
def test_progress(switch: Switch, isn: int) -> None:
    flow = Connection(switch, client_isn=isn).open()
    start = (isn + 1) % WRAP
    assert both(switch, flow)[1].ack == start
    for n in range(3):
        flow.data(1000, seq=(start + 1000 * n) % WRAP)
    for ack, progress in ((0, 0), (1000, 1000), (1000, 1000), (500, 1000), (3000, 3000), (2000, 3000)):
        flow.ack(ack=(start + ack) % WRAP, window=100 + ack)
        server = both(switch, flow)[1]
        assert (server.acked, server.ack) == (progress, (start + progress) % WRAP)
    assert server.window == 100 + 3000, "an overtaken ACK says nothing new of the window"
    assert record(switch, flow.data_key).acked == 3000
    assert record(switch, flow.ack_key).acked == 0


def test_a_fin_is_no_payload(switch: Switch) -> None:
    flow = Connection(switch).open()
    start = flow.client_isn + 1
    flow.data(1000)
    final_ack(flow, seq=start + 1000, flags="FA")
    flow.ack(ack=start + 1000)
    assert both(switch, flow)[1].acked == 1000
    flow.ack(ack=start + 1001)
    flow.ack(ack=start + 1001)
    assert both(switch, flow)[1].acked == 1000


def test_an_ack_of_data_that_was_never_sent_is_ignored(switch: Switch) -> None:
    flow = Connection(switch).open()
    start = flow.client_isn + 1
    flow.data(1000)
    for forged in (1001, 50_000, 2**30, 2**31 - 1):
        flow.ack(ack=(start + forged) % WRAP, window=9)
        server = both(switch, flow)[1]
        assert (server.ack, server.acked, server.window) == (start, 0, 65535 >> 7)
    flow.ack(ack=start + 1000)
    assert both(switch, flow)[1].ack == start + 1000


def test_progress_starts_again_with_the_port_s_next_connection(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.data(1000)
    flow.ack(ack=flow.client_isn + 1001)
    again = Connection(switch, sport=flow.sport, client_isn=99_000, server_isn=7).open()
    assert both(switch, again)[1].acked == 1000, "the end of the first was not seen: it may be in use"
    final_ack(again)
    client, server = both(switch, again)
    assert (client.acked, server.acked, server.ack, client.seq_next) == (0, 0, 99_001, 99_001)


def test_progress_of_a_flow_older_than_the_agent(switch: Switch) -> None:
    flow = Connection(switch)
    flow.data(1000, seq=70_000)
    flow.ack(ack=70_500)
    flow.ack(ack=71_000)
    assert both(switch, flow)[1].acked == 500, "from the first ACK that was seen"


def test_the_window_is_the_receivers_own(switch: Switch) -> None:
    flow = Connection(switch, server_scale=7).open()
    switch.rule(2, 12_800)
    assert flow.granted(60_000) == 100
    assert both(switch, flow)[1].window == 60_000


def test_the_window_of_a_syn_ack_in_steps_of_the_scale(switch: Switch) -> None:
    for scale, window in ((7, 64000 >> 7), (None, 64000)):
        flow = Connection(switch, server_scale=scale)
        flow.syn()
        flow.syn_ack(window=64000)
        assert both(switch, flow)[1].window == window


# Timestamps


def has_timestamps(direction: Any) -> bool | None:
    if direction.flags & C["FQ_TS"]:
        return True
    return None if direction.flags & C["FQ_TS_DUE"] else False


def test_timestamps_of_a_handshake(switch: Switch) -> None:
    flow = timed(switch)
    client, server = both(switch, flow)
    assert has_timestamps(server) is True
    assert (server.tsval, server.tsecr) == (8, 7)
    assert has_timestamps(client) is None, "it has acknowledged nothing yet"


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"vlans": ((packets.VLAN, 5),)},
        {"ip_options": NOP * 4},
        {"payload": b"x" * 100},
        {"flags": "FA"},
    ],
)
@pytest.mark.parametrize(
    ("options", "known"),
    [
        (TS, True),
        (timestamps(100, 200) + NOP * 2, True),
        (TS + NOP * 2 + packets.sack(1, 2), True),
        (NOP * 2 + packets.sack(1, 2) + NOP * 2 + timestamps(100, 200), True),
        (NOP + timestamps(100, 200) + NOP, True),
        (padded(b"\x08\x09abcdefghijkl"), None),
        (b"", None),
        (NOP * 4, None),
        (NOP * 40, None),
    ],
)
def test_timestamps_are_kept_only_if_negotiated(
    switch: Switch, options: bytes, known: bool | None, shape: dict[str, Any]
) -> None:
    # All segments of a connection are in one VLAN.
    flow = timed(switch, shape={name: value for name, value in shape.items() if name == "vlans"})
    flow.ack(options=options, **shape)
    server = both(switch, flow)[1]
    assert has_timestamps(server) is known
    if known:
        assert (server.tsval, server.tsecr) == (100, 200)
    flow.ack(options=NOP * 2 + timestamps(101, 201), **shape)
    server = both(switch, flow)[1]
    assert has_timestamps(server) is True and (server.tsval, server.tsecr) == (101, 201)


def test_ipv6(switch: Switch) -> None:
    flow = timed(switch, client="fe80::1", server="fe80::2")
    flow.ack(options=TS, extensions=((packets.DESTINATION, b"\0" * 6),))
    server = both(switch, flow)[1]
    assert (server.tsval, server.tsecr, has_timestamps(server)) == (100, 200, True)


def test_timestamps_that_were_not_negotiated(switch: Switch) -> None:
    flow = Connection(switch).open()
    assert has_timestamps(both(switch, flow)[1]) is False
    flow.ack(options=TS)
    assert has_timestamps(both(switch, flow)[1]) is False


@pytest.mark.parametrize("options", [TS, b"", NOP * 2 + packets.sack(1, 2)])
def test_timestamps_of_a_flow_older_than_the_agent(switch: Switch, options: bytes) -> None:
    flow = Connection(switch)
    flow.data(1000)
    flow.ack(options=options)
    wanted = {TS: True, b"": False}.get(options, None if len(options) >= 12 else False)
    assert has_timestamps(both(switch, flow)[1]) is wanted


# Round-trip time


def test_both_parts_of_the_round_trip_are_measured(switch: Switch) -> None:
    flow = Connection(switch)
    began = time.monotonic_ns()
    flow.syn()
    time.sleep(0.02)
    flow.syn_ack()
    assert record(switch, flow.ack_key).rtt_us == 0
    time.sleep(0.03)
    final_ack(flow)
    ended = time.monotonic_ns()
    client, server = both(switch, flow)
    assert server.rtt_ns >= 20_000_000 and client.rtt_ns >= 30_000_000
    assert server.rtt_ns + client.rtt_ns <= ended - began
    known = (client.rtt_ns + server.rtt_ns) // 1000
    assert record(switch, flow.ack_key).rtt_us == record(switch, flow.data_key).rtt_us == known
    final_ack(flow)
    flow.data()
    assert both(switch, flow)[0].rtt_ns == client.rtt_ns, "the first sample stays"


@pytest.mark.parametrize("order", ["SSAK", "SASAK", "SAAK", "SSAAK", "SAD", "SASK", "SAKA"])
def test_no_rtt_sample_from_retransmitted_segments(switch: Switch, order: str) -> None:
    """Karn: S and A are SYN and SYN-ACK, K the last ACK, D an ACK of data (the last ACK was lost)."""
    flow = Connection(switch)
    for step in order:
        if step == "S":
            flow.syn()
        elif step == "A":
            flow.syn_ack()
        elif step == "K":
            final_ack(flow)
        else:
            switch.leave(1, flow.from_server(payload=b"d" * 100))
            final_ack(flow, ack=flow.server_isn + 101)
    known = bool(record(switch, flow.data_key).rtt_us)
    assert known is (order in ("SASK", "SAKA"))


def test_a_new_connection_has_a_new_round_trip(switch: Switch) -> None:
    flow = Connection(switch).open()
    final_ack(flow)
    again = Connection(switch, sport=flow.sport, client_isn=99_000, server_isn=7)
    first = record(switch, flow.data_key).rtt_us
    again.syn()
    time.sleep(first / 1e6 + 0.01)
    again.syn_ack()
    assert record(switch, again.data_key).rtt_us == first
    final_ack(again)
    assert record(switch, again.data_key).rtt_us >= first + 10_000


# Established or half open


def test_half_open_until_the_last_segment_of_the_handshake(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.syn_ack()
    assert not record(switch, flow.data_key).flags & flow_records.ESTABLISHED
    final_ack(flow, ack=flow.server_isn + 5000)  # acknowledges what was never sent
    assert not record(switch, flow.data_key).flags & flow_records.ESTABLISHED
    final_ack(flow)
    for key in (flow.data_key, flow.ack_key):
        assert record(switch, key).flags & flow_records.ESTABLISHED


def test_records_of_one_port(switch: Switch) -> None:
    flow = Connection(switch).open()
    parts = switch.datapath.flow_records(0, [switch.ports[2]])
    assert [r.key for part in parts for r in flow_records.decode_reply(part)] == [flow.data_key]


# As sent over the channel


def test_the_segment_state_of_the_channel(switch: Switch) -> None:
    flow = timed(switch)
    final_ack(flow, options=TS)
    flow.data(1000, options=TS)
    switch.rule(2, 12_800)
    flow.ack(ack=flow.client_isn + 1001, window=50_000, payload=b"x" * 10, options=TS)
    known = switch.datapath.segment_state(flow.ack_key)
    assert known == SegmentState(
        key=flow.ack_key,
        found=True,
        port=1,
        seq_next=flow.server_isn + 11,
        ack=flow.client_isn + 1001,
        window=50_000,
        wscale=7,
        tsval=100,
        tsecr=200,
        has_timestamps=True,
        idle_ms=known.idle_ms,
        passed=100,  # 12,800 >> 7
    )
    other = switch.datapath.segment_state(flow.data_key)
    assert (other.port, other.seq_next, other.ack) == (2, flow.client_isn + 1001, flow.server_isn + 1)
    flow.ack(flags="FA", seq=flow.server_isn + 11, ack=flow.client_isn + 1001)
    known = switch.datapath.segment_state(flow.ack_key)
    assert (known.fin, known.rst, known.has_timestamps) == (True, False, None)
    final_ack(flow, flags="R", seq=flow.client_isn + 1001)
    assert switch.datapath.segment_state(flow.data_key).rst


def test_duplicates_have_the_window_that_was_passed_on_also_when_the_rule_has_changed(switch: Switch) -> None:
    """A sender takes an ACK with a larger window for a window update, and does not count it."""
    flow = Connection(switch).open()  # scale 7
    flow.data(1000)
    switch.rule(2, 12_800)
    assert flow.granted(50_000, ack=flow.client_isn + 1001) == 100
    switch.rule(2, 51_200)
    state = switch.datapath.segment_state(flow.ack_key)
    assert (state.window, state.passed) == (50_000, 100)
    found = tcp_build.duplicates(
        tcp_build.Addressing(flow.ack_key, "02:00:00:00:00:01", "02:00:00:00:00:02"), state
    )
    assert isinstance(found, list) and len(found) == 3
    assert [packets.window(switch.leave(1, frame)) for frame in found] == [100] * 3
    assert flow.granted(50_000, ack=flow.client_isn + 1001) == 400


def test_the_window_that_was_passed_on_is_that_of_the_last_ack(switch: Switch) -> None:
    flow = Connection(switch).open()

    def passed() -> int:
        return switch.datapath.segment_state(flow.ack_key).passed

    flow.data(2000)
    flow.ack(500, ack=flow.client_isn + 1001)
    assert passed() == 500  # no rule
    switch.rule(2, 12_800)
    flow.ack(500, ack=flow.client_isn + 2001)
    assert passed() == 100
    switch.rule(2, 25_600)
    assert flow.granted(500, ack=flow.client_isn + 1001) == 200  # it comes late
    assert passed() == 100
    flow.ack(150, ack=flow.client_isn + 2001)
    assert passed() == 150  # less than the rule


def test_the_window_of_a_syn_ack_is_recorded_as_later_ones_would_have_it(switch: Switch) -> None:
    flow = Connection(switch)
    flow.syn()
    switch.rule(2, 12_800)
    assert packets.window(flow.syn_ack(window=64_000)) == 12_800
    state = switch.datapath.segment_state(flow.ack_key)
    assert (state.window, state.passed) == (500, 100)


def test_a_state_without_enough_for_an_ack_is_not_found(switch: Switch) -> None:
    flow = Connection(switch, server_scale=None)
    assert not switch.datapath.segment_state(flow.ack_key).found
    flow.syn()
    flow.syn_ack()
    assert not switch.datapath.segment_state(flow.data_key).found, "it has acknowledged nothing"
    assert switch.datapath.segment_state(flow.ack_key).wscale == 0
    older = Connection(switch)
    older.data()
    older.ack()
    known = switch.datapath.segment_state(older.ack_key)
    assert known.found and known.wscale is None
