"""The flow table: what SYN, FIN, RST and the switches' records mean for the ports."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.fabric.flows import (
    DEFAULT_MSS,
    SYN_TIMEOUT,
    FlowEvent,
    FlowState,
    FlowTable,
    SeenFlow,
)
from fairq_ryu.model import FlowKey, PortKey, TcpSegment

KEY = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)
# The client is behind A, the server behind B. Data of KEY leaves by B, that of the answer by A.
A, B, C = PortKey(1, 1), PortKey(1, 2), PortKey(1, 3)
FAR = PortKey(2, 9)
ISN, PEER_ISN = 100, 900
IDLE = 60.0


def segment(key: FlowKey, flags: str, seq: int = 0, ack: int = 0, mss: int = 0, wscale: int | None = None):
    return TcpSegment(key, seq, ack, "S" in flags, "A" in flags, "F" in flags, "R" in flags, mss, wscale)


class Ports:
    """The events replayed: the set of flows of each port. Nothing starts twice or ends unstarted."""

    def __init__(self) -> None:
        self.flows: dict[PortKey, set[FlowKey]] = {}

    def replay(self, events: list[FlowEvent]) -> list[tuple[bool, PortKey, FlowKey]]:
        for event in events:
            flows = self.flows.setdefault(event.port, set())
            assert (event.flow.key in flows) != event.started, event
            (flows.add if event.started else flows.remove)(event.flow.key)
        return [(event.started, event.port, event.flow.key) for event in events]

    @property
    def total(self) -> int:
        return sum(len(flows) for flows in self.flows.values())


class Net:
    """A flow table whose events are replayed; segments of KEY come in by A, of its reverse by B."""

    def __init__(self, capacity: int = 1000) -> None:
        self.table = FlowTable(IDLE, capacity)
        self.ports = Ports()

    def send(self, flags: str, key: FlowKey = KEY, now: float = 0.0, **numbers):
        there = key.src == KEY.src
        return self.ports.replay(
            self.table.segment(segment(key, flags, **numbers), A if there else B, B if there else A, now)
        )

    def open(self, now: float = 0.0, isn: int = ISN) -> None:
        self.send("S", seq=isn, now=now)
        self.send("SA", KEY.reversed, seq=PEER_ISN, ack=isn + 1, now=now)

    def reconcile(self, *seen: SeenFlow, now: float, dpid: int = 1):
        return self.ports.replay(self.table.reconcile(dpid, seen, now))

    @property
    def state(self) -> FlowState | None:
        connection = self.table.get(KEY)
        return connection.state if connection else None


def record(key: FlowKey = KEY, port: PortKey = B, **more) -> SeenFlow:
    values = {"closed": False, "idle": 0.0, "bytes": 0, "wscale": 7, "mss": 1460}
    return SeenFlow(key=key, port=port, **(values | more))


UP = [(True, A, KEY.reversed), (True, B, KEY)]
DOWN = {(False, A, KEY.reversed), (False, B, KEY)}


@pytest.fixture
def net() -> Net:
    return Net()


# A connection's life


def test_a_syn_starts_both_directions(net):
    assert net.send("S", seq=ISN) == UP
    assert net.state is FlowState.SYN_SEEN


def test_a_syn_that_sets_up_ecn_is_a_syn(net):
    # Its ECE and CWR are no concern of the table: what it is given is the same segment.
    assert net.send("S", seq=ISN, mss=1460, wscale=7) == UP


def test_the_syn_ack_establishes_it_and_counts_nothing_twice(net):
    net.send("S", seq=ISN)
    assert net.send("SA", KEY.reversed, seq=PEER_ISN, ack=ISN + 1) == []
    assert net.state is FlowState.ESTABLISHED
    assert net.ports.total == 2


def test_where_the_destination_is_not_known_the_syn_ack_tells(net):
    net.ports.replay(net.table.segment(segment(KEY, "S", ISN), A, None, 0.0))
    assert net.ports.flows == {A: {KEY.reversed}}
    assert net.send("SA", KEY.reversed, seq=PEER_ISN, ack=ISN + 1) == [(True, B, KEY)]


def test_repeated_segments_count_once(net):
    net.open()
    assert net.send("S", seq=ISN) == []
    assert net.send("SA", KEY.reversed, seq=PEER_ISN, ack=ISN + 1) == []
    assert net.send("FA") == [(False, B, KEY)]
    assert net.send("FA") == []
    assert net.send("SA", KEY.reversed, seq=PEER_ISN, ack=ISN + 1) == []
    assert net.ports.total == 1


def test_each_fin_ends_its_senders_direction(net):
    net.open()
    assert net.send("FA") == [(False, B, KEY)]
    assert net.state is FlowState.HALF_CLOSED
    assert net.send("FA", KEY.reversed) == [(False, A, KEY.reversed)]
    assert len(net.table) == 0
    assert net.ports.total == 0


def test_a_reset_ends_both_at_once(net):
    net.open()
    assert set(net.send("R", KEY.reversed)) == DOWN
    assert len(net.table) == 0


def test_a_syn_to_a_closed_port_is_ended_by_the_reset(net):
    net.send("S", seq=ISN)
    assert set(net.send("RA", KEY.reversed, ack=ISN + 1)) == DOWN
    assert net.ports.total == 0


def test_sequence_numbers_wrap(net):
    net.send("S", seq=2**32 - 1)
    net.send("SA", KEY.reversed, seq=PEER_ISN, ack=0)
    assert net.state is FlowState.ESTABLISHED


@pytest.mark.parametrize("flags", ["SA", "FA", "R", "RA", "A"])
def test_segments_of_no_connection_start_nothing(net, flags):
    assert net.send(flags) == []
    assert len(net.table) == 0


def test_a_fin_of_one_that_was_never_answered(net):
    net.send("S", seq=ISN)
    assert net.send("FA") == [(False, B, KEY)]
    assert net.send("R") == [(False, A, KEY.reversed)]


def test_a_policy_is_told_what_the_receiver_announced(net):
    events = net.table.segment(segment(KEY, "S", ISN, mss=1400, wscale=3), A, None, 0.0)
    assert [(e.flow.key, e.flow.mss, e.flow.step, e.flow.owner) for e in events] == [
        (KEY.reversed, 1400, 8, KEY.dst)
    ]
    answer = segment(KEY.reversed, "SA", PEER_ISN, ISN + 1, mss=8960, wscale=None)
    events = net.table.segment(answer, B, A, 0.0)
    assert [(e.flow.key, e.flow.mss, e.flow.step, e.flow.owner) for e in events] == [(KEY, 8960, 1, KEY.src)]


# SYNs that are not the first


def test_crossed_syns_are_one_connection(net):
    net.send("S", seq=ISN)
    assert net.send("S", KEY.reversed, seq=PEER_ISN) == []
    assert len(net.table) == 1
    assert net.send("SA", seq=ISN, ack=PEER_ISN + 1) == []
    assert net.send("SA", KEY.reversed, seq=PEER_ISN, ack=ISN + 1) == []
    assert net.state is FlowState.ESTABLISHED
    assert net.ports.total == 2
    assert net.table.get(KEY).directions[KEY].isn == ISN
    assert net.table.get(KEY).directions[KEY.reversed].isn == PEER_ISN


def test_another_syn_before_the_answer_takes_the_place_of_the_first(net):
    net.send("S", seq=ISN)
    net.send("S", seq=ISN + 5)
    assert net.ports.total == 2
    assert net.send("SA", KEY.reversed, ack=ISN + 1) == []  # answers the first: too late
    assert net.state is FlowState.SYN_SEEN
    net.send("SA", KEY.reversed, ack=ISN + 6)
    assert net.state is FlowState.ESTABLISHED


def test_a_stray_syn_leaves_a_live_connection_alone(net):
    net.open()
    assert net.send("S", seq=5) == []
    assert net.send("S", KEY.reversed, seq=5) == []
    assert net.state is FlowState.ESTABLISHED
    assert net.send("SA", KEY.reversed, ack=77) == []  # answers neither
    assert set(net.send("R")) == DOWN


def test_a_port_pair_used_again_is_a_new_connection(net):
    net.open()
    net.send("S", seq=5000, now=3.0, mss=1000)
    events = net.send("SA", KEY.reversed, seq=6000, ack=5001, now=3.0)
    assert set(events[:2]) == DOWN
    assert events[2:] == UP
    connection = net.table.get(KEY)
    assert (connection.since, connection.directions[KEY].isn, connection.directions[KEY].mss) == (
        3,
        5000,
        1000,
    )
    assert net.state is FlowState.ESTABLISHED


def test_a_half_closed_pair_used_again_counts_both_directions(net):
    net.open()
    net.send("FA")
    net.send("S", seq=5000)
    net.send("SA", KEY.reversed, seq=6000, ack=5001)
    assert net.ports.total == 2


def test_used_again_with_hosts_that_are_not_known_it_is_at_its_own_ports(net):
    net.open()
    net.ports.replay(net.table.segment(segment(KEY, "S", 5000), A, None, 3.0))
    net.ports.replay(net.table.segment(segment(KEY.reversed, "SA", 6000, 5001), B, None, 3.0))
    assert net.ports.flows == {A: {KEY.reversed}, B: {KEY}}


# Where hosts and ports are


def test_a_host_that_moves_takes_its_flows_along(net):
    net.open()
    events = net.table.segment(segment(KEY, "S", ISN, 0), C, B, 1.0)
    assert events == []  # sent again is not news, wherever from
    events = net.ports.replay(net.table.segment(segment(KEY.reversed, "SA", PEER_ISN, ISN + 1), C, A, 1.0))
    assert events == [(False, B, KEY), (True, C, KEY)]


def test_a_flow_crosses_several_switches(net):
    net.open()
    net.ports.replay(net.table.segment(segment(KEY.reversed, "SA", PEER_ISN, ISN + 1), FAR, None, 0.0))
    assert net.ports.flows == {A: {KEY.reversed}, B: {KEY}, FAR: {KEY}}
    net.send("R")
    assert net.ports.total == 0


def test_a_port_that_goes_ends_what_left_by_it(net):
    net.open()
    assert net.ports.replay(net.table.forget_port(B)) == [(False, B, KEY)]
    assert net.ports.replay(net.table.forget_port(B)) == []
    assert net.send("FA") == []
    assert net.send("FA", KEY.reversed) == [(False, A, KEY.reversed)]


def test_the_table_has_a_bound():
    net = Net(capacity=2)
    for n in range(4):
        net.send("S", KEY._replace(sport=n), seq=ISN)
    assert (len(net.table), net.table.refused) == (2, 2)
    net.reconcile(record(KEY._replace(sport=9)), now=0.5)
    assert (len(net.table), net.table.refused) == (2, 3)
    net.send("R", KEY._replace(sport=0))
    assert net.send("S", KEY._replace(sport=9), seq=ISN) != []
    assert {connection.forward.sport for connection in net.table} == {1, 9}


# What the switches' records say


def test_flows_older_than_the_controller_are_adopted(net):
    events = net.table.reconcile(
        1,
        [record(wscale=2, mss=1000), record(KEY.reversed, A, wscale=9, mss=1460, bytes=5)],
        50.0,
    )
    net.ports.replay(events)
    assert {(e.port, e.flow.key, e.flow.mss, e.flow.step) for e in events} == {
        (B, KEY, 1460, 512),  # what the receiver announced, whichever record came first
        (A, KEY.reversed, 1000, 4),
    }
    assert net.state is FlowState.ESTABLISHED
    assert net.table.get(KEY).directions[KEY.reversed].bytes == 5
    assert net.reconcile(record(), record(KEY.reversed, A), now=51.0) == []
    net.send("FA")
    net.send("FA", KEY.reversed)
    assert len(net.table) == 0


def test_an_adopted_flow_without_announcements_gets_the_defaults(net):
    (event,) = net.table.reconcile(1, [record(wscale=None, mss=0)], 0.0)
    assert (event.flow.mss, event.flow.step) == (DEFAULT_MSS, 1)


def test_flows_that_are_closed_or_silent_are_not_adopted(net):
    assert net.reconcile(record(closed=True), record(KEY.reversed, A, idle=IDLE + 1), now=0.0) == []
    assert len(net.table) == 0


def test_a_record_does_not_change_what_the_syn_said(net):
    net.send("S", seq=ISN, mss=1400, wscale=3)
    net.reconcile(record(wscale=9, mss=99), now=0.5)
    direction = net.table.get(KEY).directions[KEY]
    assert (direction.wscale, direction.mss) == (3, 1400)


def test_a_half_open_connection_expires(net):
    net.send("S", seq=ISN, now=0.0)
    net.send("S", seq=ISN, now=1.0)  # sent again: it waits on
    assert net.reconcile(now=1.0 + SYN_TIMEOUT) == []
    assert set(net.reconcile(now=1.1 + SYN_TIMEOUT)) == DOWN
    assert len(net.table) == 0


def test_a_silent_flow_expires(net):
    net.open(now=0.0)
    both = [record(idle=IDLE + 1), record(KEY.reversed, A, idle=IDLE + 1)]
    assert set(net.reconcile(*both, now=IDLE + 1)) == DOWN
    assert len(net.table) == 0


def test_a_flow_that_goes_on_stays(net):
    net.open(now=0.0)
    for now in range(1, 200):
        assert net.reconcile(record(idle=0.5), record(KEY.reversed, A, idle=0.5), now=float(now)) == []
    assert net.ports.total == 2


def test_a_flow_that_its_switch_has_forgotten_ends(net):
    net.open(now=0.0)
    assert net.reconcile(now=1.0) == []  # the copy may be ahead of the record
    assert net.reconcile(now=1.5, dpid=2) == []  # not that switch's to know
    assert net.reconcile(now=3.0, dpid=2) == []
    assert set(net.reconcile(now=3.0)) == DOWN


def test_a_fin_whose_copy_was_lost_is_told_by_the_record(net):
    net.open(now=0.0)
    # At first it may be of an old connection of these ports.
    assert net.reconcile(record(closed=True), record(KEY.reversed, A), now=1.0) == []
    assert net.reconcile(record(closed=True), record(KEY.reversed, A), now=3.0) == [(False, B, KEY)]
    assert net.state is FlowState.HALF_CLOSED
    assert net.reconcile(record(closed=True), record(KEY.reversed, A), now=4.0) == []
    both = [record(closed=True), record(KEY.reversed, A, closed=True)]
    assert net.reconcile(*both, now=5.0) == [(False, A, KEY.reversed)]
    assert len(net.table) == 0


# In general

HOSTS = {"10.0.0.1": A, "10.0.0.2": B, "fe80::1": C}
KEYS = [
    FlowKey(src, dst, sport, dport)
    for src, dst in [("10.0.0.1", "10.0.0.2"), ("10.0.0.1", "fe80::1")]
    for sport, dport in [(1, 2), (1, 1)]
]
DIRECTIONS = st.sampled_from(KEYS + [key.reversed for key in KEYS])
ANY_PORT = st.sampled_from([A, B, C, FAR])
SEGMENTS = st.builds(
    segment,
    DIRECTIONS,
    st.sampled_from(["S", "S", "SA", "SA", "FA", "R", "A"]),
    st.sampled_from([0, 1]),
    st.sampled_from([1, 2]),
    st.sampled_from([0, 1400]),
    st.sampled_from([None, 0, 7]),
)
RECORDS = st.builds(
    SeenFlow,
    DIRECTIONS,
    st.sampled_from([A, B, C]),
    st.booleans(),
    st.sampled_from([0.0, 0.0, IDLE + 1]),
    st.integers(0, 10),
    st.sampled_from([None, 7]),
    st.sampled_from([0, 1460]),
)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("segment"), SEGMENTS, ANY_PORT, st.none() | ANY_PORT),
        st.tuples(st.just("segment"), SEGMENTS, st.none(), st.none()),
        st.tuples(st.just("records"), st.lists(RECORDS, max_size=6)),
        st.tuples(st.just("far records"), st.just([])),
        st.tuples(st.just("port"), ANY_PORT),
        st.tuples(st.just("time"), st.sampled_from([0.1, 3.0, 11.0])),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(EVENTS, st.integers(1, 4))
def test_whatever_comes_the_ports_sets_are_consistent_and_empty_in_the_end(events, capacity):
    table, ports, now = FlowTable(IDLE, capacity), Ports(), 0.0
    for kind, subject, *places in events:
        if kind == "segment":
            in_port, out_port = places
            if in_port is None:  # where its hosts are
                in_port, out_port = HOSTS[subject.key.src], HOSTS[subject.key.dst]
            ports.replay(table.segment(subject, in_port, out_port, now))
        elif kind == "records":
            ports.replay(table.reconcile(1, subject, now))
        elif kind == "far records":
            ports.replay(table.reconcile(2, subject, now))
        elif kind == "port":
            ports.replay(table.forget_port(subject))
        else:
            now += subject
        placed = {
            (port, flow)
            for connection in table
            for flow, direction in connection.directions.items()
            for port in direction.ports
        }
        assert placed == {(port, flow) for port, flows in ports.flows.items() for flow in flows}
        assert len(table) <= capacity
    ports.replay(table.reconcile(1, [], now + 2 * IDLE))
    assert len(table) == 0
    assert ports.total == 0
