"""The flow table under random events: the counts of ports follow from its events, and are empty in
the end.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fairq_ryu.fabric.flows.table import SYN_TIMEOUT, FlowState, FlowTable, SeenFlow
from fairq_ryu.model import FlowKey, FlowPath, PortKey
from tests.support.flownet import IDLE, Ports, placed, reconcile, segment

# Few values of each kind, so that they coincide: hosts by the port where they should be, and addresses that
# sort in either order. One host has a connection to itself.
HOSTS = {"10.0.0.1": PortKey(1, 1), "10.0.0.2": PortKey(2, 1), "fe80::1": PortKey(1, 2)}
FLOWS = [
    FlowKey(src, dst, sport, dport)
    for src, dst in [("10.0.0.1", "10.0.0.2"), ("10.0.0.1", "fe80::1"), ("10.0.0.1", "10.0.0.1")]
    for sport, dport in [(1, 2), (1, 1)]
]
DIRECTIONS = st.sampled_from(FLOWS + [flow.reversed for flow in FLOWS])
PORTS = st.builds(PortKey, st.integers(1, 3), st.integers(1, 3))
HOPS = st.lists(PORTS, max_size=3).map(tuple)
PATHS = st.builds(FlowPath, HOPS, HOPS)
# Sequence numbers that often acknowledge each other, and wrap.
NUMBERS = st.sampled_from([0, 1, 2, 5, 2**31, 2**32 - 1])
RECORDS = st.builds(
    SeenFlow,
    DIRECTIONS,
    PORTS,
    st.booleans(),
    st.sampled_from([0.0, 0.0, 0.4, 1.0, 3.0, IDLE - 1, IDLE + 1]),
    st.integers(0, 10),
    st.sampled_from([None, 7]),
    st.sampled_from([0, 1460]),
)


class AnyTraffic(RuleBasedStateMachine):
    """Random segments, records, paths and times, plausible or not."""

    @initialize(capacity=st.integers(1, 6))
    def start(self, capacity: int) -> None:
        self.capacity = capacity
        self.table = FlowTable(IDLE, capacity)
        self.ports = Ports()
        self.now = 0.0

    @rule(
        flow=DIRECTIONS,
        flags=st.sampled_from(["S", "S", "SA", "SA", "FA", "FA", "R", "RA", "A", "SF", "SR"]),
        seq=NUMBERS,
        ack=NUMBERS,
        home=st.booleans(),
        in_port=PORTS,
        path=st.none() | PATHS,
    )
    def segment(self, flow, flags, seq, ack, home, in_port, path):
        if home:  # the normal case: the path leads back to the sender's port
            in_port = HOSTS[flow.src]
            path = FlowPath((PortKey(3, 1), HOSTS[flow.dst]), (PortKey(3, 2), in_port))
        self.ports.replay(self.table.segment(segment(flow, flags, seq, ack), in_port, path, self.now))

    @rule(flow=DIRECTIONS, isn=NUMBERS, closes=st.booleans())
    def handshake(self, flow, isn, closes):
        numbers = {"S": (flow, isn, 0), "SA": (flow.reversed, 7, (isn + 1) % 2**32)}
        if closes:
            numbers["FA"] = (flow, (isn + 1) % 2**32, 8)
        for flags, (sent, seq, ack) in numbers.items():
            self.ports.replay(
                self.table.segment(segment(sent, flags, seq, ack), HOSTS[sent.src], None, self.now)
            )

    @rule(flow=DIRECTIONS, path=PATHS)
    def repath(self, flow, path):
        self.ports.replay(self.table.repath(flow, path, self.now))

    @rule(records=st.lists(RECORDS, max_size=6))
    def reconcile(self, records):
        for dpid in (1, 2, 3):
            seen = [each for each in records if each.port.dpid == dpid]
            if seen:
                self.ports.replay(reconcile(self.table, dpid, seen, self.now))

    @rule(dpid=st.integers(1, 4))
    def a_switch_that_knows_nothing(self, dpid):
        self.ports.replay(reconcile(self.table, dpid, [], self.now))

    @rule(port=PORTS)
    def forget_port(self, port):
        self.ports.replay(self.table.forget_port(port))
        assert not any(place == port for place, _ in self.ports.counted)

    @rule(dpid=st.integers(1, 4))
    def forget_switch(self, dpid):
        self.ports.replay(self.table.forget_switch(dpid))
        assert not any(port.dpid == dpid for port, _ in self.ports.counted)

    @rule(flow=DIRECTIONS)
    def removed(self, flow):
        self.ports.replay(self.table.removed(flow, self.now))

    @rule(seconds=st.sampled_from([0.1, 0.6, 1.0, 2.5, SYN_TIMEOUT + 1, IDLE + 1]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def expire(self):
        self.ports.replay(self.table.expire(self.now))

    @invariant()
    def what_is_counted_is_what_the_table_says(self):
        assert placed(self.table) == self.ports.counted

    @invariant()
    def a_direction_leaves_a_switch_by_one_port(self):
        switches = [(port.dpid, flow) for port, flow in self.ports.counted]
        assert len(switches) == len(set(switches))

    @invariant()
    def entries_are_what_they_say(self):
        entries = list(self.table)
        assert len(entries) == len(self.table) <= self.capacity
        assert self.table.open == sum(entry.state is not FlowState.CLOSED for entry in entries)
        assert self.table.states == {
            state: sum(entry.state is state for entry in entries) for state in FlowState
        }
        for entry in entries:
            both = entry.directions[entry.forward], entry.directions[entry.forward.reversed]
            assert all(self.table.get(flow) is entry for flow in entry.directions)
            ended = [direction.closed for direction in both]
            assert all(not direction.ports for direction in both if direction.closed)
            assert {
                FlowState.CLOSED: all(ended),
                FlowState.HALF_CLOSED: sum(ended) == 1,
            }.get(entry.state, not any(ended))

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        self.ports.replay(self.table.expire(self.now + 2 * IDLE))
        assert self.ports.counted == set()
        assert (len(self.table), self.table.open, list(self.table)) == (0, 0, [])


TestAnyTraffic = AnyTraffic.TestCase
TestAnyTraffic.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
