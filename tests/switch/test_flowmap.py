"""The flow map read in bulk: records as the channel's codec decodes them, and the sweep."""

import ctypes
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.flow_map import KEY_WIDTH, RECORD, FlowMap
from fairq_ryu.channel import flow_records
from tests.switch.rig import Connection, Switch

pytestmark = pytest.mark.root


def records(switch: Switch, idle_ms: int = 0) -> dict[flow_records.FlowKey, flow_records.FlowRecord]:
    parts = switch.datapath.flow_records(idle_ms, list(switch.ports.values()))
    return {record.key: record for part in parts for record in flow_records.decode_reply(part)}


@given(
    st.tuples(
        *(st.integers(0, 2**bits - 1) for bits in (16, 16, 32, 16, 16, 32, 64, 64, 64, 64, 32)),
        st.sampled_from([4, 6]),
    )
)
def test_numpy_packs_what_the_codec_packs(fields: tuple[int, ...]) -> None:
    sport, dport, port, flags, mss, idle, size, packets, rewritten, acked, rtt, version = fields
    src, dst = ("10.1.2.3", "10.255.0.1") if version == 4 else ("fe80::1:2", "2001:db8::ffff")
    key = flow_records.FlowKey(src, dst, sport, dport)
    record = flow_records.FlowRecord(key, port, flags, 7, mss, idle, size, packets, rewritten, acked, rtt)
    row = np.frombuffer(flow_records.encode_reply([record]), RECORD)[0]
    assert RECORD.itemsize == flow_records.RECORD_SIZE
    assert (row["sport"], row["dport"], row["version"], row["wscale"]) == (sport, dport, version, 7)
    assert (row["mss"], row["port"], row["flags"], row["idle_ms"]) == (mss, port, flags, idle)
    assert (row["bytes"], row["packets"], row["rewritten"]) == (size, packets, rewritten)
    assert (row["acked"], row["rtt_us"]) == (acked, rtt)


@pytest.mark.parametrize(("client", "server"), [("10.0.0.1", "10.0.0.2"), ("fe80::9", "fe80::2")])
def test_both_directions_are_reported(switch: Switch, client: str, server: str) -> None:
    flow = Connection(switch, client, server, client_scale=3, server_scale=11).open()
    flow.data(1000)
    found = records(switch)
    data, acks = found[flow.data_key], found[flow.data_key.reversed]
    assert (data.port, data.bytes, data.packets, data.wscale) == (2, 1000, 1, 3)
    assert data.flags == flow_records.KNOWN | flow_records.ESTABLISHED
    assert (acks.port, acks.bytes, acks.wscale) == (1, 0, 11)
    assert data.idle_ms < 1000


def test_silent_flows_are_not_reported_and_are_removed_by_the_sweep(switch: Switch) -> None:
    Connection(switch).open()
    time.sleep(0.05)
    assert records(switch, 20) == {} and len(records(switch, 5000)) == 2
    assert switch.datapath.host.sweep(10**12, 10**12)[0] == 1
    assert switch.datapath.host.sweep(10**6, 10**12)[0] == 0


@pytest.mark.parametrize("woken_by", ["data", "ack", "fin"])
def test_an_established_flow_keeps_its_scale_when_it_is_silent(switch: Switch, woken_by: str) -> None:
    established, unfinished, older = (Connection(switch) for _ in range(3))
    established.open().data(0)
    unfinished.open()
    older.data()
    time.sleep(0.01)
    assert switch.datapath.host.sweep(10**6, 10**6)[0] == 0
    switch.rule(2, 40_000)
    if woken_by == "data":
        established.data()
        assert records(switch)[established.data_key].bytes == 1000
    elif woken_by == "fin":
        switch.leave(2, established.from_client(flags="FA"))
    assert established.granted() == 40_000 >> 7
    assert unfinished.granted() == older.granted() == 65535
    if woken_by == "fin":
        return
    # One that has ended is not kept.
    seq = established.client_isn + (1001 if woken_by == "data" else 1)
    switch.leave(2, established.from_client(flags="R", seq=seq))
    time.sleep(0.01)
    assert switch.datapath.host.sweep(10**12, 10**6)[0] <= 1
    assert established.granted() == 65535


def test_forged_segments_do_not_wake_a_silent_flow_for_long(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.data(0)
    time.sleep(0.01)
    for _ in range(3):
        assert switch.datapath.host.sweep(10**6, 10**6)[0] == 0
        switch.leave(2, flow.from_client(flags="RA", seq=777_777_777))
        switch.leave(2, flow.from_client(flags="A", seq=777_777_777, payload=b"x"))
    switch.rule(2, 40_000)
    assert flow.granted() == 40_000 >> 7


def test_many_silent_flows(switch: Switch) -> None:
    """Each sweep moves a limited number, because it holds up the channel."""
    flows = switch.datapath.window.flows
    flags = layout.CONSTANTS["FQ_KNOWN"] | layout.CONSTANTS["FQ_ACK"]
    state = layout.fq_flow()
    for direction in state.dir:
        direction.flags = flags
    for n in range(1200):
        flows.set(layout.fq_flow_key(lo_port=n, hi_port=1, family=4), state)
    left = [switch.datapath.host.sweep(1, 1)[0] for _ in range(3)]
    assert left == [700, 200, 0]
    assert len(list(switch.datapath.window.silent.keys())) == 1200


def test_closed_flows_are_removed_sooner(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.ack(flags="R")
    time.sleep(0.01)
    assert switch.datapath.host.sweep(10**12, 10**6)[0] == 0


def test_many_flows_in_few_calls(switch: Switch) -> None:
    flows = switch.datapath.window.flows
    for n in range(5000):
        key = layout.fq_flow_key(lo_port=n, hi_port=1, family=4)
        flows.set(key, layout.fq_flow())
    keys, values = FlowMap(flows, flows).rows()
    assert len(keys) == len(values) == 5000
    assert len({key["lo_port"] for key in keys}) == 5000
    assert keys.itemsize == ctypes.sizeof(layout.fq_flow_key)
    assert switch.datapath.host.sweep(1, 1)[0] == 0


def test_entries_are_removed_together_whether_all_are_there_or_not(switch: Switch) -> None:
    """As when the map has evicted some meanwhile."""
    for port in range(33000, 33006):
        Connection(switch, sport=port).open()
    flows = switch.datapath.host.window.flows
    keys, _ = flows.batches()
    names = [keys[at : at + KEY_WIDTH] for at in range(0, len(keys), KEY_WIDTH)]
    absent = bytes(KEY_WIDTH)
    assert flows.delete_all(b"".join((absent, *names[:2], absent, absent, names[2], names[0], absent))) == 3
    assert flows.batches()[0] == b"".join(names[3:])
    assert flows.delete_all(b"") == 0
    assert flows.delete_all(b"".join(names)) == 3
    assert flows.batches()[0] == b""
