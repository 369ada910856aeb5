"""The arithmetic of coupled flows, as C that is compiled for the host."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from fairq_ryu.experiments.hostcc import layout
from tests.support import host_controls

MS = 10**6
RTT_US = 100_000
RTT = RTT_US * 1000
INFINITE = 0x7FFF_FFFF
ONE = 1 << 16


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return host_controls.build(tmp_path_factory.mktemp("coupling"))


@dataclass
class Flow:
    """What the kernel has of a connection; sequence numbers count segments."""

    state: Any
    cwnd: int
    una: int = 0
    next: int = 0


@dataclass
class Group:
    """A group and the calls of the kernel that its flows get."""

    library: Any
    cubic: bool = False
    now: int = 10**9
    state: Any = field(default_factory=layout.fq_cc_group)

    def call(self, name: str, *arguments: Any) -> int:
        return self.call_alone(name, self.state, *arguments)

    def call_alone(self, name: str, *arguments: Any) -> int:
        return int(getattr(self.library, f"cc_host_ctrl_{name}")(*arguments))

    @property
    def window(self) -> float:
        return float(self.state.window / ONE)

    @property
    def all(self) -> int:
        return int(self.state.sums[0].all + self.state.sums[1].all)

    def set_window(self, segments: int) -> None:
        self.state.window = self.state.threshold = segments * ONE

    def flow(self, priority: int = 100, cwnd: int = 10, rtt_us: int = RTT_US, sent: int = 0) -> Flow:
        """A flow that registers; ``sent``: it has so much under way already."""
        flow = Flow(host_controls.ctrl_flow(priority=priority), cwnd, next=sent)
        numbers = flow.una, flow.next
        flow.cwnd = self.call("register", flow.state, cwnd, INFINITE, *numbers, rtt_us, self.now)
        return flow

    def sends(self, flow: Flow) -> int:
        """The flow sends after a silence, or for the first time."""
        return self.call("sends", flow.state, flow.cwnd, RTT_US, self.now)

    def told(self, flow: Flow, want: int = 0) -> int:
        """The flow is seen to send, limited by its application to ``want`` unless that is 0."""
        return self.call("seen", flow.state, want, flow.cwnd, RTT_US, self.now)

    def ack(self, flow: Flow, acked: int = 1, limited: bool = True, want: int = 0) -> None:
        """An ACK for data, as the operations answer it."""
        flow.una += acked
        flow.next = max(flow.next, flow.una + flow.cwnd)
        self.told(flow, want)
        self.call("acked", flow.state, flow.una, flow.next, acked)
        if limited and self.call("fills", flow.state, flow.cwnd):
            self.call("grow", acked, self.cubic, RTT_US, self.now)
        flow.cwnd = self.call("window", flow.state, flow.cwnd, 10)

    def round(self, *flows: Flow, segments: int = 1) -> None:
        """A round trip: every segment of the flows is acknowledged, each ACK so many."""
        for flow in flows:
            for _ in range(flow.cwnd // segments):
                self.ack(flow, segments)
        self.now += RTT

    def lose(self, flow: Flow) -> int:
        return self.call("lost", flow.state, flow.cwnd, flow.una, flow.next, self.cubic)

    def settle(self, *flows: Flow) -> None:
        for _ in range(30):
            self.round(*flows)


@pytest.fixture
def group(library: Any) -> Group:
    return Group(library)


def test_a_lone_flow_is_reno_s(group: Group) -> None:
    """Slow start doubles; a loss halves; then a segment a round trip."""
    flow = group.flow()
    seen = []
    for _ in range(4):
        seen.append(flow.cwnd)
        group.round(flow)
    assert seen == [10, 20, 40, 80]
    assert group.lose(flow) == 1 and group.window == 80
    flow.cwnd, flow.una = 80, flow.next
    for _ in range(10):
        group.round(flow)
    assert flow.cwnd in (89, 90)


@pytest.mark.parametrize("number", [2, 4, 7])
def test_a_group_grows_as_one_flow(group: Group, number: int) -> None:
    flows = [group.flow() for _ in range(number)]
    group.set_window(70)
    group.settle(*flows)
    begun = group.window
    for _ in range(20):
        group.round(*flows)
    assert group.window - begun == pytest.approx(20, abs=1)
    # The parts of a segment are rounded so that the windows add up.
    assert abs(sum(flow.cwnd for flow in flows) - group.window) < 2
    assert max(flow.cwnd for flow in flows) - min(flow.cwnd for flow in flows) <= 1


@pytest.mark.parametrize("number", [1, 2, 4, 8])
def test_a_group_in_slow_start_doubles(group: Group, number: int) -> None:
    """However many flows it has, and in whatever order their ACKs come."""
    flows = [group.flow() for _ in range(number)]
    group.state.window = 32 * ONE
    for flow in flows:
        group.sends(flow)
    for flow in flows:
        flow.cwnd = flow.state.told = group.told(flow)
    for _ in range(3):
        before, left = group.window, [flow.cwnd for flow in flows]
        while any(left):  # one ACK of each in turn
            for place, flow in enumerate(flows):
                if left[place]:
                    left[place] -= 1
                    group.ack(flow)
        group.now += RTT
        assert 1.85 * before < group.window <= 2 * before


def test_shares_follow_priorities(group: Group) -> None:
    flows = [group.flow(priority) for priority in (100, 300, 600)]
    group.set_window(100)
    for _ in range(3):
        shares = [group.told(flow) for flow in flows]
    assert [abs(share - fair) <= 1 for share, fair in zip(shares, (10, 30, 60), strict=True)] == [True] * 3


def test_a_share_is_at_least_one_segment(group: Group) -> None:
    flows = [group.flow() for _ in range(8)]
    group.set_window(2)
    assert {group.told(flow) for flow in flows} == {1}


def test_a_newcomer_takes_its_share_at_once_and_is_paced(group: Group) -> None:
    old = group.flow()
    group.set_window(80)
    group.settle(old)
    window = group.window
    new = group.flow()
    assert abs(new.cwnd - window / 2) <= 1 and new.state.paced == 1
    # The group is not larger by it, and the other one hears of it with its next ACK, once it sends.
    assert group.window == window
    group.sends(new)
    group.ack(old)
    assert abs(old.cwnd - window / 2) <= 1
    # Until the data after its first ACK is acknowledged.
    flags = []
    for una, following in ((1, 40), (39, 60), (40, 61), (41, 62)):
        flags.append(group.call("acked", new.state, una, following, 1))
    assert flags == [0, 0, 1, 0]


def test_a_newcomer_without_a_measured_round_trip_begins_with_no_more_than_its_window(group: Group) -> None:
    old = group.flow()
    group.set_window(80)
    group.told(old)
    new = group.flow(rtt_us=0)
    assert (new.cwnd, new.state.paced) == (10, 0)


def test_a_window_rises_by_two_segments_for_each_ack_of_the_group(group: Group) -> None:
    one, other = group.flow(), group.flow()
    group.set_window(100)
    group.settle(one, other)
    one.cwnd = 5  # as after a silence
    one.state.credit = group.state.credit
    group.ack(one)
    assert one.cwnd == 7
    for _ in range(3):
        group.ack(other)
    group.ack(one)
    assert one.cwnd == 7 + 2 * 4
    for _ in range(50):
        group.ack(other)
    group.ack(one)
    assert one.cwnd == 15 + 10, "never more than an initial window at once"


def test_a_flow_below_its_share_does_not_make_the_group_grow(group: Group) -> None:
    one, other = group.flow(), group.flow()
    group.set_window(100)
    group.settle(one, other)
    one.cwnd = 5
    before = group.window
    group.ack(one)
    assert group.window == before


def test_one_cut_for_each_loss_event_of_the_group(group: Group) -> None:
    flows = [group.flow() for _ in range(4)]
    group.set_window(100)
    group.settle(*flows)
    before = group.window
    assert [group.lose(flow) for flow in flows] == [1, 0, 0, 0]
    assert group.window == pytest.approx(before / 2, rel=0.001) and group.state.cuts == 1
    # What they have sent before is not of a new event, however late its loss is seen.
    for flow in flows[1:]:
        sent = flow.next
        group.ack(flow)
        assert flow.una < sent and group.lose(flow) == 0
        flow.una = flow.next
        group.ack(flow)
    assert group.lose(flows[2]) == 1
    assert group.state.cuts == 2


def test_a_flow_that_comes_after_a_cut_can_cut(group: Group) -> None:
    old = group.flow()
    group.set_window(100)
    group.lose(old)
    assert group.lose(group.flow()) == 1


def test_sequence_numbers_wrap(group: Group) -> None:
    flow = group.flow()
    flow.state.una = flow.state.high = flow.una = flow.next = (1 << 32) - 3
    for _ in range(4):
        flow.una = (flow.una + 2) % (1 << 32)
        group.call("acked", flow.state, flow.una, (flow.una + 10) % (1 << 32), 2)
    flow.next = flow.una + 10
    assert group.lose(flow) == 1
    assert group.lose(flow) == 0


def test_a_group_of_which_one_flow_sends_is_cut_from_the_window_of_that_flow(group: Group) -> None:
    """As Reno's: it was below its share, after a timeout."""
    flow = group.flow()
    group.set_window(100)
    flow.cwnd = 40
    assert group.lose(flow) == 1 and group.window == 20


def test_a_cut_is_taken_back_by_the_flow_that_has_made_it(group: Group) -> None:
    one, other = group.flow(), group.flow()
    group.set_window(100)
    group.settle(one, other)
    before, share = group.window, one.cwnd
    group.lose(one)
    assert group.call("undo", other.state, 1) < share - 10
    assert abs(group.call("undo", one.state, 1) - share) <= 1 and group.window == before
    group.set_window(50)
    assert group.call("undo", one.state, 1) <= 26, "once"


def test_what_a_flow_does_not_want_is_the_others_(group: Group) -> None:
    """RFC 8699's desired rate."""
    quiet, one, other = (group.flow() for _ in range(3))
    group.set_window(100)
    for _ in range(3):
        told = [group.told(quiet, want=16), group.told(one), group.told(other)]
    assert told[0] == 20 and all(41 <= share <= 43 for share in told[1:])
    # One that wants more than its part counts as the others.
    for _ in range(3):
        told = [group.told(quiet, want=90), group.told(one), group.told(other)]
    assert all(32 <= share <= 34 for share in told)


def test_a_limited_flow_does_not_use_all_of_what_it_is_told(group: Group) -> None:
    """As long as it has the same, and a little more, under way: else its part would change at each ACK."""
    quiet, busy = group.flow(), group.flow()
    group.set_window(100)
    group.told(busy)
    quiet.cwnd = 25
    seen = []
    for flight in (10, 11, 12, 10, 11, 12):
        want = group.call_alone("want", flight, quiet.cwnd, False)
        group.ack(quiet, limited=False, want=want)
        seen.append((want, group.told(busy) >= 75))
    assert [each[0] for each in seen] == [20, 22, 24, 20, 22, 24] and all(each[1] for each in seen)
    # The kernel has seen it full, or nearly.
    assert group.call_alone("want", 5, 20, True) == 0 == group.call_alone("want", 11, 20, False)


def test_who_has_sent_nothing_yet_takes_little(group: Group) -> None:
    """It may only receive."""
    busy = group.flow()
    group.set_window(100)
    group.settle(busy)
    idle = group.flow()
    group.ack(busy)
    assert busy.cwnd >= group.window - 11
    assert abs(group.sends(idle) - group.window / 2) <= 1
    group.ack(busy)
    assert abs(busy.cwnd - group.window / 2) <= 1


def test_who_registers_late_has_its_share_at_once(group: Group) -> None:
    """The kernel has left out its beginning, or its group was removed."""
    busy = group.flow()
    group.set_window(100)
    group.told(busy)
    late = group.flow(cwnd=40, sent=40)
    assert late.cwnd == 50 and group.call("window", late.state, late.cwnd, 10) == 50


def test_a_flow_of_small_messages_keeps_an_initial_window(group: Group) -> None:
    """So that a large one among them leaves at once; what it does not want is still the others'."""
    flow = group.flow()
    for _ in range(20):
        group.ack(flow, limited=False, want=2)
    assert flow.cwnd == 10
    busy = group.flow()
    group.set_window(100)
    assert (group.told(flow, want=2), group.told(busy)) == (10, 98)
    group.set_window(8)
    assert group.told(flow, want=2) == 4, "at most its share"


def test_many_quiet_flows_do_not_hold_one_that_is_busy(group: Group) -> None:
    quiet = [group.flow() for _ in range(16)]
    busy = group.flow()
    group.set_window(100)
    for _ in range(2):
        for flow in quiet:
            group.told(flow, want=2)
        share = group.told(busy)
    assert 67 <= share <= 69


def test_a_silent_flow_drops_out_by_itself_and_comes_back(group: Group) -> None:
    one, other = group.flow(), group.flow()
    group.set_window(100)
    group.settle(one, other)
    for _ in range(8):
        group.round(one)
    assert group.all == 100 and one.cwnd > 95
    assert abs(group.told(other) - group.window / 2) <= 1 and group.all == 200


def test_after_a_silence_of_all_only_who_sends_counts(group: Group) -> None:
    one, other = group.flow(), group.flow()
    group.set_window(100)
    group.settle(one, other)
    window = group.window
    group.now += 800 * MS
    assert group.told(one) == int(window) and group.all == 100
    assert abs(group.told(other) - window / 2) <= 1


def test_who_leaves_leaves_its_part(group: Group) -> None:
    one, other = group.flow(), group.flow()
    group.set_window(100)
    group.settle(one, other)
    group.call("leave", other.state)
    assert (group.state.flows, group.all, other.state.born_ns) == (1, 100, 0)
    group.call("leave", other.state)
    assert group.state.flows == 1, "once"
    cwnd, one.state.credit = one.cwnd, group.state.credit
    group.ack(one)
    assert one.cwnd == cwnd + 2
    group.settle(one)
    assert one.cwnd > 100


def test_a_flow_of_a_group_that_was_removed_does_not_change_its_successor(group: Group) -> None:
    flow = group.flow()
    successor = Group(group.library, now=group.now + 1)
    successor.flow()
    successor.call("leave", flow.state)
    assert (successor.state.flows, successor.all) == (1, 100)


def test_the_next_connection_starts_from_the_window_of_the_last(group: Group) -> None:
    flow = group.flow()
    group.set_window(80)
    group.settle(flow)
    window = group.window
    group.call("leave", flow.state)
    group.now += 800 * MS
    assert group.flow().cwnd == int(window)


def test_after_a_long_silence_the_group_starts_again_up_to_three_quarters(group: Group) -> None:
    flow = group.flow()
    group.set_window(80)
    group.told(flow)
    group.call("leave", flow.state)
    group.state.threshold = 40 * ONE
    group.now += 1_100 * MS
    new = group.flow()
    assert (new.cwnd, group.window, group.state.threshold) == (10, 10, 60 * ONE)
    for _ in range(3):
        group.round(new)
    assert new.cwnd in (60, 61)


def test_cubic_s_cut_and_its_way_back(library: Any) -> None:
    """RFC 9438: to 0.7 W, and after K = cbrt(0.3 W / 0.4) seconds at W again."""
    group = Group(library, cubic=True)
    flows = [group.flow(), group.flow()]
    group.set_window(1000)
    group.round(*flows, segments=10)
    before = group.window
    assert group.lose(flows[0]) == 1
    assert group.window == pytest.approx(before * 717 / 1024, rel=0.001)
    for flow in flows:
        flow.una = flow.next
    rounds = round((before * (1 - 717 / 1024) / 0.4) ** (1 / 3) * 10)
    way = []
    for _ in range(2 * rounds):
        group.round(*flows, segments=10)
        way.append(group.window)
    # Steep, flat about W, and steep again.
    assert way[rounds - 1] == pytest.approx(before, rel=0.02)
    assert way[rounds // 2] > before * 0.93 and way[-1] > before * 1.1


def way_back(library: Any, pause: int = 0, unused: int = 0, now: int = 10**9) -> list[float]:
    """The window in the 50 round trips after a cut from 143 segments. Each tenth is followed by so many round
    trips in which the window is not used up, and then by a silence, ns.
    """
    group = Group(library, cubic=True, now=now)
    flow = group.flow()
    group.set_window(143)
    flow.cwnd = 143
    group.lose(flow)
    flow.una = flow.next
    way = []
    for number in range(50):
        group.round(flow)
        if number % 10 == 9:
            for _ in range(unused):
                group.ack(flow, limited=False)
                group.now += RTT
            group.now += pause
        way.append(group.window)
    return way


def test_cubic_s_curve_waits_while_nobody_sends(library: Any) -> None:
    """For up to 1 s, after which the group starts again."""
    without = way_back(library)
    assert 101 < without[0] < without[9] < 143
    for pause in (3 * RTT, 500 * MS, 800 * MS):
        assert way_back(library, pause) == without


def test_cubic_s_curve_waits_while_nobody_uses_the_window(library: Any) -> None:
    assert way_back(library, unused=60) == way_back(library)


def test_cubic_s_curve_waits_where_its_clock_wraps(library: Any) -> None:
    assert way_back(library, 800 * MS, now=(MS << 32) - 1450 * MS) == way_back(library)


def test_cubic_s_curve_goes_on_between_acks(library: Any) -> None:
    """A window that is acknowledged at once has no ACK for a round trip, or a little more."""
    ways = []
    for late in (0, 50 * MS):
        group = Group(library, cubic=True)
        flow = group.flow()
        group.set_window(143)
        group.lose(flow)
        flow.una = flow.next
        for _ in range(30):
            group.round(flow, segments=flow.cwnd)
            group.now += late
        ways.append(group.state.cubic.began)
    assert ways[0] == ways[1] == 1000


def test_cubic_s_curve_does_not_run_back(library: Any) -> None:
    """Another processor has read the clock later, and come first."""
    group = Group(library, cubic=True)
    group.set_window(100)
    group.call("grow", 1, True, 0, group.now)
    window = group.window
    group.call("grow", 1, True, 0, group.now - MS)
    assert group.window - window <= 1 / 20


def test_cubic_is_never_slower_than_reno_with_its_cut(library: Any) -> None:
    group = Group(library, cubic=True)
    flow = group.flow()
    group.set_window(40)
    group.round(flow)
    group.lose(flow)
    flow.una = flow.next
    begun = group.window
    for _ in range(20):
        group.round(flow)
    assert group.window - begun >= 20 * 3 * (1024 - 717) / (1024 + 717) - 2


@pytest.mark.parametrize("segments", [1, 2, 10, 1000, 1 << 20])
def test_cubic_s_time_is_a_cube_root(library: Any, segments: int) -> None:
    exact = (segments / 0.4) ** (1 / 3) * 1000
    assert abs(library.cc_host_cubic_time(segments) - exact) <= 2


def test_nothing_overflows(library: Any) -> None:
    """The checks of clang end the process if it does."""
    for cubic in (False, True):
        group = Group(library, cubic, now=1)
        flow = group.flow(1000, (1 << 24) - 1)
        other = group.flow(1)
        for _ in range(40):
            group.ack(flow, (1 << 24) - 1)
            group.now += 1 << 40
            group.told(other, want=(1 << 32) - 1)
        group.lose(flow)
        group.ack(flow, 1)
        assert 0 < group.window <= 1 << 24
