"""A flow under the law acdc: what RFC 8257 says, and bounds that no event leaves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.laws.acdc import AcdcLaw
from tests.support.host_laws import HostFlow, fq_law
from tests.support.law_traces import U30, parameters

MSS = 1460
FRAME = 1514
K = 20 * FRAME
ONE = 1 << 20
MOST = 1 << 30
U32 = st.integers(0, 2**32 - 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("sent"), U30, st.integers(0, 66_000), st.integers(0, 65_535), U30, st.booleans()),
        st.tuples(
            st.just("acked"),
            U32,
            U32,
            U32,
            U32,
            st.integers(1, 65_535),
            st.integers(0, 2**31),
            st.integers(0, 1),
        ),
        st.tuples(st.just("round"), st.integers(0, 1 << 20), st.booleans(), st.integers(0, 1)),
    ),
    max_size=60,
)


@pytest.fixture
def flow():
    return HostFlow(fq_law(AcdcLaw, target=K), "acdc_flow")


@settings(max_examples=400)
@given(parameters([AcdcLaw]), STEPS)
def test_no_event_leaves_the_bounds(values, steps):
    """Undefined behaviour, such as an overflow, would end the process. ``round``: a whole window of data
    leaves and is acknowledged, as it is on a network.
    """
    flow = HostFlow(fq_law(**values), "acdc_flow")
    seq = total = 0
    for kind, *numbers in steps:
        if kind == "sent":
            flow.data_sent(*numbers)
            continue
        if kind == "round":
            payload, above, echo = numbers
            seq, total = (seq + payload) % 2**32, (total + payload) % 2**32
            flow.data_sent(values["target"] if above else 0, 100, payload, MSS, False)
            numbers = [seq, seq, total, payload, MSS, MSS, echo]
        else:
            seq, total = numbers[0], numbers[2]
        before, state = flow.own.window, flow.own
        window = flow.acknowledged(*numbers)
        floor = min(numbers[5], MOST)
        assert max(floor, 1) <= window == state.window <= MOST
        assert state.alpha <= ONE and state.credit <= window
        assert window >= before // 2, "one answer at most halves"


class Sender:
    """A sender that always has its whole window under way, one window of data after another."""

    def __init__(self, flow, first: int = 0) -> None:
        self.flow, self.floor, self.mss = flow, 2 * MSS, MSS
        self.seq = self.total = first
        self.window = 0
        self.window = self.ack(0, 0)

    def ack(self, length: int, flight: int, echo: int = 0) -> int:
        self.total += length
        ack = self.total % 2**32
        self.window = self.flow.acknowledged(ack, self.seq % 2**32, ack, flight, self.mss, self.floor, echo)
        return self.window

    def round(self, marked: int = 0, lost: int = 0, echoed: int = 0, part: int = 1) -> int:
        """Send a window in segments, the first ``marked`` of which find a long queue, the first ``lost`` of
        which were sent before; all are acknowledged one by one, the first ``echoed`` with ECE. ``part``: the
        flow uses only the window divided by this.
        """
        count = max(1, self.window // part // self.mss)
        for number in range(count):
            backlog = K if number < marked else 0
            self.flow.data_sent(backlog, FRAME, self.mss, self.mss, number < lost)
            self.seq += self.mss
        for number in range(count):
            self.ack(self.mss, (count - number) * self.mss, int(number < echoed))
        return count

    @property
    def alpha(self) -> float:
        return self.flow.own.alpha / ONE


def test_alpha_follows_the_formula_of_rfc_8257(flow):
    """Section 3.3: alpha = alpha * (1 - g) + g * M, g = 1/16, once for each window of data."""
    sender = Sender(flow)
    expected, pattern = 1.0, [0, 3, 10, 0, 1, 2, 0, 0, 5, 1] * 8
    fractions = []
    for marked in pattern:
        # The first ACK of a window of data ends the observation of the last; all of it has left by then.
        count = sender.round(marked=marked)
        fractions.append(min(marked, count) / count)
        expected = expected * (1 - 1 / 16) + fractions[-1] / 16
        assert sender.alpha == pytest.approx(expected, abs=2 * 16 / ONE)
    assert 0 < max(fractions) <= 1 and min(fractions) == 0


@pytest.mark.parametrize("marked, mean", [(0, 0.0), (10_000, 1.0)])
def test_alpha_settles(flow, marked, mean):
    sender = Sender(flow)
    for _ in range(200):
        sender.round(marked=marked, part=1 if marked else 10_000)
    assert sender.alpha == pytest.approx(mean, abs=2 * 16 / ONE)


def test_slow_start_doubles_until_the_first_mark(flow):
    sender = Sender(flow)
    sizes = [sender.window]
    for _ in range(3):
        sender.round()
        sizes.append(sender.window)
    assert sizes == [10 * MSS, 20 * MSS, 40 * MSS, 80 * MSS]
    before = sender.window
    sender.flow.data_sent(K, FRAME, MSS, MSS, False)
    sender.seq += MSS
    sender.ack(MSS, before)
    # Alpha began at 1, and four windows of data have been observed, the last of them with the mark.
    alpha = (15 / 16) ** 4 + 1 / 16
    assert sender.window == pytest.approx(before * (1 - alpha / 2), abs=2)
    assert flow.own.threshold == sender.window


def test_a_window_is_reduced_once_in_a_window_of_data_by_half_of_alpha(flow):
    sender = Sender(flow)
    for _ in range(40):
        sender.round(part=10_000)  # alpha decays, and nothing grows
    before, reductions = sender.window, flow.state.reductions
    assert before == 10 * MSS
    sender.round(marked=10)
    assert flow.state.reductions == reductions + 1
    alpha = (15 / 16) ** 41 + 1 / 16
    assert sender.window == pytest.approx(before * (1 - alpha / 2), abs=2)


def test_without_marks_a_window_grows_by_one_segment_in_a_window_of_data(flow):
    sender = Sender(flow)
    sender.round(marked=1)
    first = sender.window
    sender.round()  # the end of the reduction
    grown = []
    for _ in range(10):
        before = sender.window
        sender.round()
        grown.append(sender.window - before)
    assert first == pytest.approx(5 * MSS, rel=0.1)
    assert set(grown) <= {0, MSS} and 8 <= sum(grown) // MSS <= 10


def test_a_window_that_is_not_used_is_not_raised(flow):
    sender = Sender(flow)
    for _ in range(5):
        sender.round(part=3)
    assert sender.window == 10 * MSS
    sender.round(marked=1)
    after = sender.window
    for _ in range(30):
        sender.round(part=3)
    assert sender.window <= after + MSS


def test_a_loss_halves_whatever_alpha_is_and_once(flow):
    sender = Sender(flow)
    for _ in range(60):
        sender.round(part=10_000)
    assert sender.alpha < 0.03
    sender.round(lost=3)
    assert sender.window == 5 * MSS


def test_a_loss_counts_after_marks_of_the_same_window(flow):
    sender = Sender(flow)
    for _ in range(60):
        sender.round(part=10_000)
    sender.round(marked=10, lost=10)
    assert flow.state.reductions == 61 - 60, "a loss and marks in one ACK are one reduction"
    sender.seq += 10 * MSS
    sender.flow.data_sent(K, FRAME, MSS, MSS, False)
    marked = sender.ack(MSS, 10 * MSS)
    sender.flow.data_sent(0, FRAME, MSS, MSS, True)
    assert sender.ack(MSS, 10 * MSS) == max(marked - marked // 2, 2 * MSS)


def test_no_window_is_below_the_floor(flow):
    sender = Sender(flow)
    for _ in range(20):
        sender.round(marked=10_000)
    assert sender.window == 2 * MSS
    sender.floor = MSS
    sender.round(marked=10_000)
    assert sender.window == MSS


def test_the_echo_of_others_counts_as_marks(flow):
    """The bottleneck that marks more decides; both are not added."""
    sender = Sender(flow)
    sender.round(echoed=10_000)
    assert sender.alpha == 1.0 and flow.state.reductions == 1
    sender.round()
    for _ in range(100):
        sender.round(part=10_000)
    low = sender.alpha
    before = sender.window // MSS
    sender.round(marked=1, echoed=3)
    expected = low * 15 / 16 + 1 / 16  # the first ACK, with the echo, ends the observation
    assert sender.alpha == pytest.approx(expected, abs=1e-3)
    sender.round()
    assert sender.alpha == pytest.approx(expected * 15 / 16 + 2 / before / 16, abs=1e-3)


def test_a_flow_that_was_there_before_the_law_keeps_what_it_has_under_way(flow):
    assert flow.acknowledged(1, 100_000, 1, 80_000, MSS, MSS) == 80_000


def test_numbers_wrap(flow):
    sender = Sender(flow, 2**32 - 25 * MSS)
    for _ in range(6):
        sender.round(part=3)
    assert sender.total == 2**32 - 7 * MSS
    for _ in range(6):
        sender.round(part=3)
    assert sender.alpha == pytest.approx((15 / 16) ** 12, abs=1e-4)


def test_of_several_segments_in_a_frame_those_beyond_the_threshold_are_marked(flow):
    """With segmentation offload a frame may be longer than the threshold."""
    flow.data_sent(0, 45 * MSS, 44 * MSS, MSS, False)
    assert flow.own.marks == 45 * MSS - K
    flow.data_sent(K - FRAME, FRAME, MSS, MSS, False)
    assert flow.own.marks == 45 * MSS - K, "not longer than the threshold"
    flow.data_sent(K - FRAME + 1, FRAME, MSS, MSS, False)
    assert flow.own.marks == 46 * MSS - K
