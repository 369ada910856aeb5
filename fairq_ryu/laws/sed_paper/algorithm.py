"""SED's Equations 1 to 4, Algorithm 1 and Algorithm 2, on one port.

Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks" (Tsinghua Science and
Technology 21(5), 2016), section 3. The text that we have has lost both listings. Section 3.4 describes
Algorithm 1, and section 3.6 Algorithm 2 with the numbers of most of its lines (2-4, 6-8, 10-12, 13-17,
26-28). The statements stand here in that order, and their names are those of the text. Which statement has
which number within such a range is our reading of it, and so are lines 1, 5 and 9.

What the text leaves open, and what we chose:

- ``RTT_avg`` is "the average RTT of all N flows". How the controller learns it is not said; the experiments
  have one value (Table 1). It is a parameter.
- Lines 2-4: "we drop the flow if the deadline is missed". The controller cannot end a connection of others:
  the window of a dropped flow is 0 from then on, also in NOM. It is dropped when Algorithm 2 runs, and no
  sooner.
- Lines 6-8 come before the flows with deadlines: "assign a base rate for non-deadline flows first" (section
  3.2). Each gets it, even if Twin is used up.
- A flow needs a size *and* a deadline to be a deadline flow. When all its bytes are acknowledged, it is a
  non-deadline flow: line 11 would stop it.
- Lines 13-17: what is compared is the rest of Twin. The text does not say that the windows of flows with
  earlier deadlines are subtracted, but "as many of the deadline flows as possible" get theirs, and Eq. 2 is
  the sum.
- Lines 18-25 are not described.
- When a sender whose window was 0 gets one again, it must be told. The paper does not say how; the agent of
  the switch sends it a window update.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from fairq_ryu.model import Announcement, FlowInfo, FlowKey, FlowProgress
from fairq_ryu.policies.parts.deadline_table import GifEntry, GifTable


def total_window(k: float, c: float, rtt_avg: float) -> float:
    """Twin: the windows of all flows with which the queue is K bytes long. C in bytes per second.

    Eq. 1: Q(t) = sum of W_i(t) - C * RTT_avg.  Eq. 2: Twin = sum of W_i(t).  With Q(t) = K follows Eq. 3.
    """
    return k + c * rtt_avg  # Eq. 3


def alloc_window(s: float, d: float, rtt_avg: float) -> float:
    """The window with which ``s`` remaining bytes are sent in ``d`` remaining seconds."""
    return s / d * rtt_avg  # Eq. 4


def window_allocation(
    gif: Iterable[GifEntry], twin: float, rtt_avg: float, base_segments: int, now: float
) -> tuple[dict[FlowKey, float], set[FlowKey]]:
    """Algorithm 2: the windows of all flows in the GIF table, which is ordered by deadlines, and the flows
    that are dropped.
    """
    windows: dict[FlowKey, float] = {}
    dropped = set()
    deadline_flows, non_deadline_flows = [], []
    for flow in gif:  # 1
        if flow.missed(now):  # 2
            dropped.add(flow.flow.key)  # 3: drop the flow
        # 4: end if
        elif flow.urgent(now):  # 5
            deadline_flows.append(flow)
        else:  # 6: if the flow is a non-deadline flow then
            non_deadline_flows.append(flow)
            base = base_segments * flow.flow.mss
            windows[flow.flow.key] = base  # 7
            twin -= base
        # 8: end if
    for flow in deadline_flows:  # 9
        # 10: if the flow is a deadline flow then
        assert flow.deadline is not None and flow.remaining is not None
        window = alloc_window(flow.remaining, flow.deadline - now, rtt_avg)  # 11
        # 12: end if
        if window > twin:  # 13
            windows[flow.flow.key] = 0  # 14
        else:  # 15
            windows[flow.flow.key] = window  # 16
            twin -= window
        # 17: end if
    # 18-25: not described
    if twin > 0:  # 26
        for flow in non_deadline_flows:
            windows[flow.flow.key] += twin / len(non_deadline_flows)  # 27
    # 28: end if
    return windows, dropped


class State(Enum):
    """Fig. 3: CNG while K <= Q(t) <= Q_max, otherwise NOM."""

    NOM = "normal"
    CNG = "congestion"


class Algorithm1:
    """Congestion control at the SDN controller (section 3.4), with the GIF table (3.5). Times in seconds.

    ``windows``: the flow-table entries, bytes; none in NOM. ``dropped``: flows that lines 2-4 of Algorithm 2
    have dropped. ``twin`` is to be set before the first event.
    """

    def __init__(self, rtt_avg: float, base_segments: int) -> None:
        self.rtt_avg, self.base_segments = rtt_avg, base_segments
        self.twin = 0.0
        self.state = State.NOM
        self.gif = GifTable()
        self.windows: dict[FlowKey, float] = {}
        self.dropped: set[FlowKey] = set()

    def congestion_trigger(self, now: float) -> None:
        """Section 3.4: "when receiving a congestion trigger message, we use a window allocation algorithm to
        meet the flow deadlines and push new flow-table entries to the switch."
        """
        self.state = State.CNG
        self._allocate(now)

    def congestion_recovery(self) -> None:
        """Upon a congestion recovery message, "the previous flow-table entries are deleted"."""
        self.state = State.NOM
        self.windows = {}

    def connection_created(self, flow: FlowInfo, now: float) -> None:
        """In CNG, "when a new TCP connection is created or terminated, the window allocation algorithm will
        be recalled to assign new windows to each flow."
        """
        self.dropped.discard(flow.key)
        self.gif.add(flow, now)
        self._recall(now)

    def connection_terminated(self, flow: FlowKey, now: float) -> None:
        """Likewise; the controller "releases the resources, including deleting GIF entries" (3.5)."""
        self.dropped.discard(flow)
        self.gif.remove(flow)
        self._recall(now)

    def announced(self, flow: FlowKey, announcement: Announcement | None, now: float) -> None:
        """Section 3.2: "applications expose their size and deadline information when initiating a deadline
        flow". It may come after the SYN, and again later on the same connection; that windows are allocated
        anew then is ours.
        """
        self.dropped.discard(flow)
        self.gif.announce(flow, announcement, now)
        self._recall(now)

    def progressed(self, flow: FlowKey, progress: FlowProgress, now: float) -> None:
        """Section 3.5: the remaining flow size (RSize), "periodically". No window changes by that."""
        self.gif.progressed(flow, progress, now)

    def _recall(self, now: float) -> None:
        if self.state is State.CNG:
            self._allocate(now)

    def _allocate(self, now: float) -> None:
        flows = [entry for entry in self.gif.ordered(now) if entry.flow.key not in self.dropped]
        self.windows, dropped = window_allocation(flows, self.twin, self.rtt_avg, self.base_segments, now)
        self.dropped |= dropped
