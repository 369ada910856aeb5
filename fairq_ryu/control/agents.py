"""A connected agent: its datapath, and what was asked of it and told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import congestion, oxm, queue_depth, segment_state
from fairq_ryu.channel import flow_records as records
from fairq_ryu.control.counters import ROUND_TRIPS, Histogram, Peak
from fairq_ryu.model import FlowKey, PortKey, Thresholds

_QUEUE_XID = 0xFA17
# Flow records of one port: this and the port's number. Ryu numbers its own messages from a random number on,
# but replies are told apart by their kind first.
_PROGRESS_XID = 0xFA170000
# A flow that has been silent for longer, milliseconds, is where it was when it was told of.
_NEWS_MS = 1000
# All ports of a switch are looked at no more seldom than this, seconds.
_ALL_PORTS_INTERVAL = 0.25
# An answer that does not come within this many seconds is no longer waited for.
_ANSWER_TIMEOUT = 1.0


class AgentLink:
    """One agent. Times in seconds."""

    def __init__(self, datapath: Any, govern_all: bool) -> None:
        self.datapath = datapath
        self.govern_all = govern_all  # ports whose queue does not say its size are governed, too
        self.dpid = oxm.bridge_dpid(datapath.id)
        self.depths: dict[int, queue_depth.QueueDepth] = {}
        self._untaken: dict[int, int] = {}  # longest queue of each port since it was taken, bytes
        self.wake = hub.Event()
        self._asked_at: float | None = None
        self._all_asked_at = 0.0
        self._records_asked_at = 0.0
        self._requests: dict[int, bytes] = {}
        self._parts: dict[int, list[records.FlowRecord]] = {}
        self._progress_asked: dict[int, float] = {}
        self._thresholds: dict[int, Thresholds] = {}
        self._no_drops = False
        # Counted for whoever watches the controller. A round trip is from a question for queues to the moment
        # when its answer is handled, seconds; flows unscaled are directions whose handshake it has not seen.
        self.round_trip = Histogram(ROUND_TRIPS)
        self.unanswered = 0
        self.rules_said = 0
        self.flows_unscaled: int | None = None
        self.peaks: dict[int, Peak] = {}

    # Queues

    def ask_queues(self, now: float) -> None:
        """Ask for queue depths, unless an answer is still to come. The request is always the same, and is
        packed once.
        """
        if self._asked_at is not None:
            if now - self._asked_at <= _ANSWER_TIMEOUT:
                return
            self.unanswered += 1
        self._asked_at = now
        port = self._port_to_ask(now)
        request = self._requests.get(port)
        if request is None:
            message = queue_depth.request(self.datapath, port)
            message.set_xid(_QUEUE_XID)
            message.serialize()
            request = self._requests[port] = bytes(message.buf)
        self.datapath.send(request)

    def queues_answered(self, now: float) -> None:
        """The whole answer has come."""
        if self._asked_at is not None:
            self.round_trip.observe(max(0.0, now - self._asked_at))
        self._asked_at = None

    def read(self, record: queue_depth.QueueDepth, now: float) -> queue_depth.QueueDepth | None:
        """A queue was read. Returns the reading before."""
        before = self.depths.get(record.port)
        self.depths[record.port] = record
        peak = self.peaks.get(record.port)
        if peak is None:
            peak = self.peaks[record.port] = Peak(now)
        peak.note(record.peak, now)
        if record.peak > self._untaken.get(record.port, 0):
            self._untaken[record.port] = record.peak
        return before

    def take_peak(self, number: int) -> int:
        """The longest queue of a port since this was asked last, bytes; 0 if none was read since."""
        return self._untaken.pop(number, 0)

    @property
    def governed(self) -> list[PortKey]:
        """The ports with a queue to govern."""
        return [PortKey(self.dpid, number) for number, record in self.depths.items() if self.governs(record)]

    def governs(self, record: queue_depth.QueueDepth | None) -> bool:
        """Is that a queue to govern? It may be if nothing is known of it yet."""
        return record is None or bool(record.limit) or self.govern_all

    def _port_to_ask(self, now: float) -> int:
        """The one port with a queue to govern, if there is just one; all ports otherwise, and now and
        then in any case, because queues come and go.
        """
        governed = self.governed
        if len(governed) == 1 and now - self._all_asked_at < _ALL_PORTS_INTERVAL:
            return governed[0].port
        self._all_asked_at = now
        return int(ofp.OFPP_ANY)

    def port_gone(self, number: int) -> None:
        """The agent does not watch that port any more."""
        self.depths.pop(number, None)
        self.peaks.pop(number, None)
        self._untaken.pop(number, None)
        self._thresholds.pop(number, None)
        self._progress_asked.pop(number, None)

    # Flow records

    def ask_records(self, interval: float, idle_ms: int, now: float) -> None:
        """Ask for all flow records, unless that was done within the ``interval``."""
        if now - self._records_asked_at >= interval:
            self._records_asked_at = now
            message = records.request(self.datapath, idle_ms)
            message.set_xid(_QUEUE_XID)
            self.datapath.send_msg(message)

    def ask_progress(self, port: int, interval: float, now: float) -> None:
        """Ask for the flow records of a port, unless that was done within the ``interval``: of the flows that
        there may be news of.
        """
        if now - self._progress_asked.get(port, float("-inf")) >= interval:
            self._progress_asked[port] = now
            message = records.request(self.datapath, _NEWS_MS, port)
            message.set_xid(_PROGRESS_XID + port)
            self.datapath.send_msg(message)

    def records(
        self, xid: int, part: Sequence[records.FlowRecord], more: bool
    ) -> tuple[int | None, list[records.FlowRecord]] | None:
        """A part of an answer. Returns all of it with its last part: the port that was asked for (None: all),
        and the records. None before that, and for what was not asked.
        """
        port = None if xid == _QUEUE_XID else xid - _PROGRESS_XID
        if port is not None and not 0 < port <= 0xFFFF:
            return None
        whole = self._parts.setdefault(xid, [])
        whole += part
        if more:
            return None
        del self._parts[xid]
        return port, whole

    # What it is told

    def drops_refused(self) -> None:
        """Its kernel does not tell of dropped packets: it is not asked for them again."""
        self._no_drops = True
        self._thresholds.clear()  # what was refused does not stand: with the next sample, all are told

    def tell_thresholds(self, port: int, wanted: Thresholds | None) -> None:
        """See that these thresholds stand (None: whatever stands)."""
        if wanted is not None and self._no_drops:
            wanted = wanted._replace(drops=False)
        if wanted is not None and self._thresholds.get(port) != wanted:
            self._thresholds[port] = wanted
            self.datapath.send_msg(congestion.set_thresholds(self.datapath, port, wanted))

    def ask_segments(self, keys: Sequence[FlowKey]) -> None:
        """Ask for the last segment of single directions."""
        self.datapath.send_msg(segment_state.request(self.datapath, keys))
