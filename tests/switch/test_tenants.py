"""Tenants in the kernel: whose a flow is, what its ACKs get, and what is counted for whom."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator
from ctypes import c_uint32
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.far_ports import with_far_queues
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.tenant_maps import TenantMaps
from fairq_ryu.channel.flow_priorities import FlowPriority
from fairq_ryu.channel.tenants import LEFT_OUT, SetTenants, TenantState
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.model import WindowKind
from fairq_ryu.tenants import Priorities
from tests.switch.rig import PATIENT, Connection, Switch
from tests.switch.test_laws import PORT, install

MSS = 1460
POOL = 120 * MSS
BLUE, RED = 1, 2
FAIRQ, LAS = FairQLaw(tenants=1, floor_segments=1), LasLaw(tenants=1, floor_segments=1)
HOSTS = {"10.0.1.0/24": BLUE, "10.0.2.0/24": RED, "10.0.1.200/32": RED, "fd00:1::/32": BLUE}
_number = iter(range(1, 10**6))


def tenants(
    switch: Switch,
    weights: dict[int, int],
    lease: int = 600_000,
    priorities: Priorities | None = None,
    hosts: dict[str, int] = HOSTS,
) -> None:
    owners = {ipaddress.ip_network(text): each for text, each in hosts.items() if each in weights}
    table = SetTenants(next(_number), lease, weights, owners, priorities or Priorities())
    switch.datapath.set_tenants(table, time.monotonic_ns())


@pytest.fixture(autouse=True)
def no_law(switch: Switch) -> Iterator[None]:
    tenants(switch, {BLUE: 1, RED: 1})
    yield
    switch.datapath.remove_law(PORT)
    switch.datapath.window._tenants.clear(slot(switch))


def slot(switch: Switch) -> int:
    return switch.datapath.window.slots[switch.ports[PORT].ifindex]


def flow(switch: Switch, host: str, **what: Any) -> Connection:
    """A connection whose client, at this address, sends data."""
    server = "fd00:9::1" if ":" in host else "10.0.9.1"
    return Connection(switch, client=host, server=server, server_scale=0, **what).open()


def shared(switch: Switch, at: int | None = None) -> None:
    """The tenants of the port, or of what is in this slot, are worked out again with the next ACK."""
    maps, here = switch.datapath.window._tenants, c_uint32(slot(switch) if at is None else at)
    found = maps.port_tenants.get(here)
    found.worked_ns = 0
    maps.port_tenants.set(here, found)


def granted(switch: Switch, *flows: Connection, at: int | None = None) -> list[int]:
    """The windows of flows in segments, when all of them are known; ``at``: the slot of their queue."""
    for each in flows:
        each.granted()
    shared(switch, at)
    return [each.granted() // MSS for each in flows]


def states(switch: Switch) -> dict[int, TenantState]:
    found = {state.tenant: state for state in switch.datapath.tenant_states(PORT)}
    left_out = found.pop(LEFT_OUT, None)
    assert left_out is not None if found else left_out is None or left_out.acks
    return found


def test_a_tenant_has_its_part_however_many_flows_it_opens(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 4)
    one = flow(switch, "10.0.2.1")
    assert granted(switch, one) == [30]
    many = [flow(switch, f"10.0.1.{i}") for i in range(1, 6)]
    assert granted(switch, one, *many) == [15, *[3] * 5]


def test_without_tenants_the_same_flows_have_equal_windows(switch: Switch) -> None:
    install(switch, FairQLaw(floor_segments=1), pool=POOL // 4)
    one, *many = [flow(switch, host) for host in ("10.0.2.1", *(f"10.0.1.{i}" for i in range(1, 6)))]
    assert [each.granted() // MSS for each in (one, *many)] == [5] * 6
    assert states(switch) == {}


def test_from_the_first_ack_on(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 5)
    one = flow(switch, "10.0.2.1")
    other = flow(switch, "10.0.1.1")
    assert granted(switch, one, other) == [12, 12]
    for i in range(2, 5):
        new = flow(switch, f"10.0.1.{i}")
        assert new.granted() // MSS == 12 // i
        assert one.granted() // MSS == 12


@pytest.mark.parametrize("options", [b"", bytes([1, 1, 19, 18, *range(16)])], ids=["unknown", "signed"])
def test_flows_that_cannot_be_governed_take_no_share(switch: Switch, options: bytes) -> None:
    """Their handshakes were not seen; those that are signed tell it."""
    install(switch, FAIRQ, pool=POOL // 4)
    one = flow(switch, "10.0.1.1")
    assert granted(switch, one) == [30]
    for i in range(2, 7):
        older = Connection(switch, client=f"10.0.1.{i}", server="10.0.9.1", server_scale=0)
        for _ in range(2):
            older.data(options=options)
            older.ack(options=options)
    assert granted(switch, one) == [30]
    assert {tenant: state.flows for tenant, state in states(switch).items()} == {BLUE: 1}


def test_weights(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 2)
    tenants(switch, {BLUE: 2, RED: 1})
    assert granted(switch, flow(switch, "10.0.1.1"), flow(switch, "10.0.2.1")) == [40, 20]
    assert {tenant: state.part_q16 for tenant, state in states(switch).items()} == {
        BLUE: (2 << 16) // 3,
        RED: (1 << 16) // 3,
    }


def test_a_change_of_the_table_applies_to_flows_that_are_open(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 4)
    flows = [flow(switch, "10.0.1.1"), flow(switch, "10.0.2.1")]
    assert granted(switch, *flows) == [15, 15]
    tenants(switch, {BLUE: 1, RED: 2})
    assert granted(switch, *flows) == [10, 20]
    tenants(switch, {BLUE: 1})  # the other's hosts are among the others
    assert granted(switch, *flows) == [15, 15]
    assert set(states(switch)) == {0, BLUE}


def test_a_tenant_that_gets_the_number_of_another_has_its_own_counts(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 4)
    first, kept, other = (flow(switch, host) for host in ("10.0.2.1", "10.0.1.1", "10.0.7.1"))
    for _ in range(9):
        assert granted(switch, first, kept, other) == [10] * 3
    assert states(switch)[RED].acks > 9
    acks = states(switch)[BLUE].acks
    # Renewed, and with a larger network that has the same hosts: they are still the same tenants.
    tenants(switch, {BLUE: 1, RED: 1})
    tenants(switch, {BLUE: 1, RED: 1}, hosts={"10.0.0.0/23": BLUE, "10.0.2.0/24": RED})
    assert states(switch)[RED].acks > 9 and states(switch)[BLUE].acks == acks
    tenants(switch, {BLUE: 1, RED: 1}, hosts={"10.0.1.0/24": BLUE, "10.0.7.0/24": RED})
    assert set(states(switch)) == {0, BLUE}
    other.granted()
    assert (states(switch)[RED].acks, states(switch)[BLUE].acks) == (1, acks)


def test_the_longest_prefix_decides_and_others_are_one_tenant(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 2)
    hosts = ("10.0.1.1", "10.0.1.200", "10.0.7.1", "10.0.8.1", "fd00:1::5")
    assert granted(switch, *(flow(switch, host) for host in hosts)) == [10, 20, 10, 10, 10]
    assert {tenant: state.flows for tenant, state in states(switch).items()} == {0: 2, BLUE: 2, RED: 1}


def test_when_the_lease_has_ended_flows_have_equal_windows(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 4)
    flows = [flow(switch, host) for host in ("10.0.2.1", *(f"10.0.1.{i}" for i in range(1, 6)))]
    assert granted(switch, *flows)[0] == 15
    tenants(switch, {BLUE: 1, RED: 1}, lease=0)
    assert [each.granted() // MSS for each in flows] == [5] * 6
    assert switch.datapath.window.tenants_in_force == 0


def test_a_flow_that_ends_leaves_the_rest_to_its_tenant(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 3)
    one, first, second = (flow(switch, host) for host in ("10.0.2.1", "10.0.1.1", "10.0.1.2"))
    assert granted(switch, one, first, second) == [20, 10, 10]
    second.data(0, flags="R")
    assert granted(switch, one, first) == [20, 20]
    first.data(0, flags="R")
    assert granted(switch, one) == [40]


def test_what_a_quiet_flow_leaves_goes_to_its_tenant_first(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 2)
    one, greedy, other = (flow(switch, host) for host in ("10.0.2.1", "10.0.1.1", "10.0.1.2"))
    granted(switch, one, greedy, other)
    entry = switch.datapath.window.flows.get(_key(other))
    for direction in entry.dir:  # it has not used its window for long
        direction.out.sharing_epoch = direction.out.tenant_epoch = 0
    switch.datapath.window.flows.set(_key(other), entry)
    here = layout.fq_tenant_key(slot=slot(switch), tenant=BLUE)
    counts = switch.datapath.window._tenants._ports.get(here)
    for buckets, amount in ((counts.flows, 1), (counts.shares, 100)):
        at = max(range(len(buckets)), key=lambda i: buckets[i])
        buckets[at] -= amount
    switch.datapath.window._tenants._ports.set(here, counts)
    other.data(3 * 1024)
    other.granted()
    assert granted(switch, one)[0] == 30
    assert greedy.granted() == pytest.approx(30 * MSS - 3 * 1024, abs=MSS)


def _key(each: Connection) -> Any:
    return flow_key(each.data_key)


def test_priorities_by_port_and_by_dscp(switch: Switch) -> None:
    install(switch, FAIRQ, pool=44 * MSS)
    tenants(switch, {BLUE: 1, RED: 1}, priorities=Priorities({443: 200}, {46: 400}))
    high, low = flow(switch, "10.0.1.1", dport=443), flow(switch, "10.0.1.2")
    assert granted(switch, high, low) == [29, 15], "one segment each, and of the rest two thirds and a third"
    marked = flow(switch, "10.0.2.1", shape={"tos": 46 << 2})
    plain = flow(switch, "10.0.2.2")
    marked6 = flow(switch, "fd00:1::5", shape={"tos": 46 << 2})
    for each in (marked, plain, marked6):
        each.data()
    assert granted(switch, marked, plain) == [17, 5]
    tenants(switch, {BLUE: 1, RED: 1}, priorities=Priorities({443: 200}, {46: 300}))
    # 22 / 3 segments on average: 7.3, 4.2 and 10.5.
    found = granted(switch, high, low, marked6)
    assert found[0] in (7, 8) and found[1] in (4, 5) and found[2] in (10, 11)


@pytest.mark.parametrize(("host", "other"), [("10.0.1.1", "10.0.1.2"), ("fd00:1::5", "fd00:1::6")])
def test_an_announced_priority_comes_before_that_of_a_port(switch: Switch, host: str, other: str) -> None:
    install(switch, FAIRQ, pool=62 * MSS)
    tenants(switch, {BLUE: 1, RED: 1}, priorities=Priorities({443: 200}))
    high, low = flow(switch, host, dport=443), flow(switch, other)
    assert granted(switch, high, low) == [41, 21]
    switch.datapath.set_priorities([FlowPriority(high.data_key, 100)])
    assert granted(switch, high, low) == [31, 31]
    switch.datapath.set_priorities([FlowPriority(low.data_key, 200)])
    assert granted(switch, high, low) == [21, 41]
    # That of the other direction is another one.
    switch.datapath.set_priorities([FlowPriority(each.data_key, None) for each in (high, low)])
    switch.datapath.set_priorities([FlowPriority(low.ack_key, 900)])
    assert granted(switch, high, low) == [41, 21]
    # A controller that begins takes all away that another one may have set.
    switch.datapath.set_priorities([FlowPriority(low.data_key, 200), FlowPriority(high.data_key, 100)])
    assert granted(switch, high, low) == [21, 41]
    switch.datapath.set_priorities([])
    assert granted(switch, high, low) == [41, 21]


def test_the_next_connection_of_the_same_ports_has_its_priority(switch: Switch) -> None:
    install(switch, FAIRQ, pool=62 * MSS)
    tenants(switch, {BLUE: 1, RED: 1}, priorities=Priorities({443: 200}))
    high, low = flow(switch, "10.0.1.1", dport=443), flow(switch, "10.0.1.2")
    assert granted(switch, high, low) == [41, 21]
    high.data(0, flags="R")
    again = flow(switch, "10.0.1.1", dport=443, sport=high.sport, client_isn=high.client_isn + 100_000)
    assert granted(switch, again, low) == [41, 21]


def test_whose_turn_a_handshake_takes(switch: Switch) -> None:
    def owner(host: str) -> tuple[int, int]:
        address = ipaddress.ip_address(host)
        ifindex = switch.ports[PORT].ifindex
        return switch.datapath.window.tenant_of(ifindex, address.version, address.packed.rjust(16, b"\0"))

    install(switch, FAIRQ, pool=POOL)
    tenants(switch, {BLUE: 2, RED: 3})
    hosts = ("10.0.1.1", "10.0.1.200", "10.0.2.9", "10.0.7.1", "fd00:1::5", "fd00:2::5")
    assert [owner(host) for host in hosts] == [(BLUE, 2), (RED, 3), (RED, 3), (0, 1), (BLUE, 2), (0, 1)]
    tenants(switch, {0: 5, BLUE: 2})
    assert [owner(host) for host in hosts[1:3]] == [(BLUE, 2), (0, 5)]
    install(switch, FairQLaw(), pool=POOL)
    assert owner("10.0.1.1") == (0, 1), "the law does not share by tenant"
    install(switch, FAIRQ, pool=POOL)
    tenants(switch, {BLUE: 2}, lease=0)
    assert owner("10.0.1.1") == (0, 1), "the lease has ended"


def test_a_far_queue_is_shared_by_tenant_as_a_port_is(switch: Switch) -> None:
    """The senders are behind the port to the switch above, by which ACKs leave."""
    data, above = switch.datapath, switch.ports[1]
    _, far = with_far_queues([above], {above.name: FarQueue(above.name, rate=12_500, buffer=125_000)})
    data.add_port(far)
    law = parameters(FAIRQ, data.limits_of(far.ofport))
    data.install_law(far.ofport, far.ofport, law, time.monotonic_ns() + 3600 * 10**9)
    switch.rule(far.ofport, far.ofport, WindowKind.LAW)
    here = data.window.slots[far.ifindex]
    try:
        state = data.law_state(far.ofport)
        state.pool, state.segment = POOL // 4 << 8, MSS
        data.window.law_states.set(c_uint32(here), state)
        one, *many = (flow(switch, host) for host in ("10.0.2.1", *(f"10.0.1.{i}" for i in range(1, 6))))
        assert granted(switch, one, *many, at=here) == [15, *[3] * 5]
        assert [each[2:5] for each in data.tenant_states(far.ofport)[-1:]] == [(LEFT_OUT, 0, 0)]
        assert {each.tenant: each.flows for each in data.tenant_states(far.ofport)[:-1]} == {BLUE: 5, RED: 1}
        tenants(switch, {BLUE: 2, RED: 1})
        assert granted(switch, one, *many, at=here) == [10, *[4] * 5]
        tenants(switch, {BLUE: 1, RED: 1}, lease=0)
        assert [each.granted() // MSS for each in (one, *many)] == [5] * 6
        assert data.tenant_states(PORT) == [], "the port has no law"
    finally:
        data.remove_law(far.ofport)
        data.remove_port(far.ofport)
        data.window._tenants.clear(here)


def test_las_shares_out_the_part_of_a_tenant(switch: Switch) -> None:
    install(switch, LAS, pool=POOL // 2)
    one, young, old = (flow(switch, host) for host in ("10.0.2.1", "10.0.1.1", "10.0.1.2"))
    granted(switch, one, young, old)
    entry = switch.datapath.window.flows.get(_key(old))
    for direction in entry.dir:
        direction.bytes = 10**6
    switch.datapath.window.flows.set(_key(old), entry)
    assert granted(switch, one, young, old)[0] == 30
    assert young.granted() > 6 * old.granted()


def test_acknowledged_bytes_are_counted_for_the_tenant(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 2)
    one, other = flow(switch, "10.0.1.1"), flow(switch, "10.0.2.1")
    for each, size in ((one, 1000), (other, 300)):
        each.granted()
        each.data(size)
        each.ack(ack=each.client_isn + 1 + size)
    assert {tenant: state.bytes for tenant, state in states(switch).items()} == {BLUE: 1000, RED: 300}


def test_what_was_acknowledged_without_tenants_is_not_credited_later(switch: Switch) -> None:
    install(switch, FairQLaw(floor_segments=1), pool=POOL // 2)
    one = flow(switch, "10.0.1.1")
    send(one)
    install(switch, FAIRQ, pool=POOL // 2)
    one.data(1000, seq=one.client_isn + 1 + 12 * MSS)
    one.ack(ack=one.client_isn + 1 + 12 * MSS + 1000)
    assert states(switch)[BLUE].bytes == 1000


def test_a_fin_that_is_known_late_takes_no_credit_back(switch: Switch) -> None:
    """It was lost before the switch: what follows it was acknowledged as if it was data."""
    install(switch, FAIRQ, pool=POOL // 2)
    one = flow(switch, "10.0.1.1")
    one.granted()
    one.data()
    behind = one.client_isn + 1 + 1000 + 1
    one.data(0, seq=behind)
    one.ack(ack=behind)
    before = states(switch)[BLUE].bytes
    one.data(0, seq=behind - 1, flags="FA")
    for _ in range(2):
        one.ack(ack=behind)
    assert states(switch)[BLUE].bytes == before == 1001


def test_a_pause_of_the_table_is_no_time_under_way(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 2)
    one = flow(switch, "10.0.1.1")
    one.granted()
    one.data()
    flows = switch.datapath.window.flows
    entry = flows.get(_key(one))
    for direction in entry.dir:
        direction.under_way_us = (direction.under_way_us - 2**31) % 2**32
    flows.set(_key(one), entry)
    one.ack(ack=one.client_isn + 1 + 1000)
    here = layout.fq_tenant_key(slot=slot(switch), tenant=BLUE)
    found = switch.datapath.window._tenants._ports.get(here)
    assert (found.under_way, found.moved) == (1000 << 20, 1000)


def test_an_agent_looks_up_what_it_takes_over_again(switch: Switch) -> None:
    """Flows stay in the maps when an agent is killed. The next one may number tenants in another way."""
    install(switch, FAIRQ, pool=POOL // 4)
    window = switch.datapath.window
    loaded = window._object
    window._tenants = TenantMaps(loaded, window.bucket_ns)
    tenants(switch, {BLUE: 1, RED: 1})
    one = flow(switch, "10.0.1.1")
    assert granted(switch, one) == [30] and set(states(switch)) == {BLUE}
    window._tenants.clear(slot(switch))
    time.sleep(0.01)
    window._tenants = TenantMaps(loaded, window.bucket_ns)
    tenants(switch, {BLUE: 1, RED: 1}, hosts={"10.0.1.0/24": RED})
    assert granted(switch, one) == [30] and set(states(switch)) == {RED}


def test_flows_that_an_agent_has_kept_have_no_tenant_yet(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 4)
    one = flow(switch, "10.0.1.1")
    one.data()
    one.ack()
    window = switch.datapath.window
    keys, flows = window.lasting_flows()
    assert {each.owner & 0xFF for each in window.flows.get(_key(one)).dir} == {0, BLUE}
    window.flows.delete(_key(one))
    assert window.enter_flows(keys, flows, {switch.ports[PORT].ifindex}) == 1
    for each in window.flows.get(_key(one)).dir:
        assert each.owner == each.out.tenant_epoch == each.far.tenant_epoch == 0


def send(each: Connection, wait: float = 0.0, again: bool = False) -> None:
    """Twelve segments, acknowledged ``wait`` seconds later; ``again``: the last leaves twice."""
    sent = [{"payload": MSS, "seq": each.client_isn + 1 + i * MSS} for i in range(12)]
    each.granted()
    for what in sent:
        each.data(**what)
    time.sleep(wait)
    if again:
        each.data(**sent[-1])
    each.ack(ack=each.client_isn + 1 + 12 * MSS)


def twice(switch: Switch, *flows: Connection) -> list[int]:
    """Windows, when the times of all tenants are known, and then what these weigh."""
    granted(switch, *flows)
    return granted(switch, *flows)


def test_a_tenant_whose_bytes_are_under_way_for_longer_has_larger_windows(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 2)
    one, late = flow(switch, "10.0.1.1"), flow(switch, "10.0.2.1")
    send(one)
    send(late, wait=0.3)
    assert twice(switch, one, late) == [20, 40]


def test_waiting_for_a_retransmission_makes_no_window_larger(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 2)
    late, lost = flow(switch, "10.0.1.1"), flow(switch, "10.0.2.1")
    send(lost, wait=0.3, again=True)
    send(late, wait=0.3)
    assert twice(switch, late, lost) == [40, 20]


def test_a_sender_that_completes_its_handshake_late_has_no_larger_windows(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL // 2)
    late, slow = flow(switch, "10.0.1.1"), flow(switch, "10.0.2.1")
    time.sleep(0.5)
    slow.data(0)  # the ACK that completes the handshake
    send(slow)
    send(late, wait=0.3)
    assert twice(switch, late, slow) == [40, 20]


def test_a_broken_floor_is_counted(switch: Switch) -> None:
    install(switch, FAIRQ, pool=4 * MSS)
    one = flow(switch, "10.0.2.1")
    for i in range(1, 91):  # more than the buffer holds
        each = flow(switch, f"10.0.1.{i}")
        assert each.granted() >= MSS
    shared(switch)
    assert one.granted() >= MSS and each.granted() == MSS
    found = states(switch)
    assert found[RED].floored == 0 < found[BLUE].floored


def test_a_port_that_goes_leaves_no_tenants(switch: Switch) -> None:
    install(switch, FAIRQ, pool=POOL)
    granted(switch, flow(switch, "10.0.1.1"))
    window = switch.datapath.window
    assert states(switch)
    window._tenants.clear(slot(switch))
    assert states(switch) == {} and list(window._tenants._ports.keys()) == []


@pytest.mark.parametrize("idle_s", [0, 61])
def test_tenants_without_flows_for_a_minute_make_room_for_others(switch: Switch, idle_s: int) -> None:
    host, maps, now = switch.datapath.host, switch.datapath.window._tenants, time.monotonic_ns()
    host.sweep(10**12, 10**12)
    before = maps.left_out
    others = [layout.fq_tenant_key(slot=1 << 20, tenant=n) for n in range(PATIENT.tenant_ports)]
    for each in others:
        maps._ports.set(each, layout.fq_tenant_port(last_ns=now - idle_s * 10**9))
    try:
        install(switch, FAIRQ, pool=POOL // 4)
        flows = [flow(switch, host) for host in ("10.0.2.1", *(f"10.0.1.{i}" for i in range(1, 6)))]
        assert [each.granted() // MSS for each in flows] == [5] * 6 and states(switch) == {}
        maps._sweep_ns = 0
        host.sweep(10**12, 10**12)
        assert maps.left_out - before == 18, "of each flow a handshake, its SYN-ACK and an ACK"
        (state,) = switch.datapath.tenant_states(PORT)
        assert (state.tenant, state.acks) == (LEFT_OUT, 18)
        makes_room = idle_s > 60
        assert granted(switch, *flows) == ([15, *[3] * 5] if makes_room else [5] * 6)
        assert maps._ports.get(others[0]) is None if makes_room else maps._ports.get(others[0])
    finally:
        for each in others:
            maps._ports.delete(each)
