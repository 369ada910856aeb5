"""Messages about queues that the agent sends by itself: congestion notices, and dropped packets.

A controller asks for them by SET_THRESHOLDS, port by port; then all controllers get them. Times are in ns of
the monotonic clock, as arguments.

    threshold event ---> NoticeSchedule --(due)--> state of the queue --(changed)--> all controllers
    dropped packet ----> TCP with data, SYN or FIN? ----> TokenBucket -----------> controllers that read

Bounded: one entry for each port; at most one notice for each port in a gap; a limited rate of packets.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.channel import congestion, dropped_packet
from fairq_ryu.channel.dropped_packet import DroppedPacket
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.model import Congestion, Thresholds
from fairq_ryu.packet.parse import can_be_lost

log = logging.getLogger(__name__)

_NS = 1_000_000_000
# A token bucket holds this fraction of a second's rate.
_BURST = 0.1
NO_THRESHOLDS = Thresholds(0, 0)
GAP = 0.002
"""Seconds between two notices of a port: a queue that flaps is no more than 500 messages a second."""
DROP_RATE = 20_000
"""Dropped packets a second that are sent to controllers: as many as an engine of recovery acts on."""


class Sender(Protocol):
    """Sends messages to controllers."""

    def send_to_all(self, data: bytes) -> None:
        """Send a message to every controller."""

    def send_to_ready(self, data: bytes) -> bool:
        """Send a message to the controllers that are not slaves and read fast enough. False if there was
        none.
        """


class NoticeSchedule:
    """When a congestion notice of a port is sent. Times in ns of one clock.

    A queue that flaps must not flood the channel, but its last state must be sent. So at most one notice for
    each port is sent within ``gap_ns``, and a change within that time is sent at its end.
    """

    def __init__(self, gap_ns: int) -> None:
        """``gap_ns``: minimum time between two notices of a port."""
        self.gap_ns = gap_ns
        self._changed: dict[int, bool] = {}
        self._sent: dict[int, Congestion] = {}
        self._sent_ns: dict[int, int] = {}

    def mark(self, ports: Iterable[int], repeat: bool = False) -> None:
        """The state of these ports may have changed. ``repeat``: CNG is sent even if it was sent before,
        because a controller may have missed it.
        """
        for port in ports:
            self._changed[port] = self._changed.get(port, False) or repeat

    def due(self, now_ns: int) -> list[int]:
        """The ports whose state is to be read, and passed to :meth:`take`, now."""
        return [port for port in self._changed if self._ready_ns(port) <= now_ns]

    def take(self, port: int, state: Congestion, now_ns: int) -> bool:
        """Whether to send a notice for a due port in this state. If True, it is recorded as sent."""
        repeat = self._changed.pop(port, False)
        if state is self._sent.get(port, Congestion.NOM) and not (repeat and state is Congestion.CNG):
            return False
        self._sent[port] = state
        self._sent_ns[port] = now_ns
        return True

    @property
    def next_ns(self) -> int | None:
        """When a port is due next; None if none waits."""
        return min(map(self._ready_ns, self._changed), default=None)

    def _ready_ns(self, port: int) -> int:
        last = self._sent_ns.get(port)
        return 0 if last is None else last + self.gap_ns

    def forget(self, port: int) -> None:
        """No controller wants notices of this port any more."""
        for table in (self._changed, self._sent, self._sent_ns):
            table.pop(port, None)


class TokenBucket:
    """At most ``rate`` tokens per second, and a tenth of that at once. Times in ns of one clock."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._capacity = max(1.0, rate * _BURST)
        self._tokens, self._filled_ns = self._capacity, 0

    def take(self, now_ns: int) -> bool:
        """Take a token; False if there is none."""
        if now_ns > self._filled_ns:
            added = (now_ns - self._filled_ns) * self._rate / _NS
            self._tokens = min(self._capacity, self._tokens + added)
            self._filled_ns = now_ns
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


@dataclass(slots=True)
class DropCounts:
    """Dropped packets: ``sent`` to controllers; ``ignored`` as of no interest to them; ``suppressed`` by the
    rate or because no controller reads fast enough.
    """

    sent: int = 0
    ignored: int = 0
    suppressed: int = 0


class CongestionMonitor:
    """The thresholds in force, and the messages that follow from them."""

    def __init__(
        self, queues: BridgePrograms, sender: Sender, gap: float = GAP, drop_rate: float = DROP_RATE
    ) -> None:
        """``gap``: minimum time between two notices of a port, s; ``drop_rate``: maximum packets per s."""
        self._queues, self._sender = queues, sender
        self._schedule = NoticeSchedule(int(gap * _NS))
        self._bucket = TokenBucket(drop_rate)
        self.thresholds: dict[int, Thresholds] = {}
        self._watched: set[int] = set()  # ports whose drops the agent itself needs
        self.drops = DropCounts()
        self.notices_sent = 0

    def set_thresholds(self, request: congestion.SetThresholds, now_ns: int) -> None:
        """Process a SET_THRESHOLDS. A notice of a port that is congested by the new thresholds is sent at
        once.

        Raises :class:`OpenFlowError` or the kernel's error, and changes nothing then.
        """
        port, cng, nom, flags = request
        if not self._queues.has_port(port):
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_PORT, f"no port {port} here")
        if nom >= cng and (cng or nom):
            raise _refusal(congestion.ERROR_ORDER, f"NOM at {nom} is not below CNG at {cng}")
        if flags & ~congestion.REPORT_DROPS:
            raise _refusal(congestion.ERROR_FLAGS, f"flags {flags:#x}")
        drops = bool(flags & congestion.REPORT_DROPS)
        if drops and not self._queues.reports_drops:
            raise _refusal(congestion.ERROR_NO_DROPS, "this kernel does not report drops")
        self._apply(port, Thresholds(cng, nom, drops))
        if cng:
            self._schedule.mark([port], repeat=True)
            self.send_due(now_ns)
        else:
            self._schedule.forget(port)

    def _apply(self, port: int, wanted: Thresholds) -> None:
        before = self.thresholds.get(port, NO_THRESHOLDS)
        try:
            self._install(port, wanted)
        except Exception:
            self._install(port, before)
            raise
        if wanted == NO_THRESHOLDS:
            self.thresholds.pop(port, None)
        else:
            self.thresholds[port] = wanted

    def _install(self, port: int, wanted: Thresholds) -> None:
        wanted = wanted._replace(drops=wanted.drops or port in self._watched)
        self._queues.set_thresholds(port, None if wanted == NO_THRESHOLDS else wanted)

    def watch_drops(self, port: int, wanted: bool) -> None:
        """The agent itself needs the dropped packets of a port, or no longer. Raises the kernel's error, and
        changes nothing then.
        """
        before = self._watched.copy()
        self._watched = before | {port} if wanted else before - {port}
        try:
            self._install(port, self.thresholds.get(port, NO_THRESHOLDS))
        except Exception:
            self._watched = before
            raise

    def forget_port(self, port: int) -> None:
        """The port has gone, and its thresholds with it."""
        self.thresholds.pop(port, None)
        self._watched.discard(port)
        self._schedule.forget(port)

    def clear(self) -> None:
        """The last controller has left: remove all thresholds. What the kernel refuses ends nothing: without
        a controller, nobody hears of a threshold that is left.
        """
        for port in list(self.thresholds):
            try:
                self._install(port, NO_THRESHOLDS)
            except (BpfError, OSError) as error:
                log.warning("port %d: its thresholds cannot be removed: %s", port, error)
            self.thresholds.pop(port, None)
            self._schedule.forget(port)

    def mark_crossed(self, ports: Iterable[int]) -> None:
        """The queues of these ports have crossed thresholds. Call :meth:`send_due` afterwards."""
        self._schedule.mark(port for port in ports if port in self.thresholds)

    def send_due(self, now_ns: int) -> None:
        """Send the notices that are due."""
        for port in self._schedule.due(now_ns):
            notice = self._queues.congestion(port)
            if self._schedule.take(port, notice.state, now_ns):
                self.notices_sent += 1
                self._sender.send_to_all(congestion.notice_message(notice))

    @property
    def next_ns(self) -> int | None:
        """When :meth:`send_due` is to be called next; None: after the next event."""
        return self._schedule.next_ns

    def report_drops(self, packets: Iterable[tuple[int, bytes, int]], now_ns: int) -> None:
        """Send dropped packets to controllers: port, frame or its beginning, length of the whole frame in
        bytes. Those that only the agent itself needs are not counted.
        """
        for port, frame, length in packets:
            reported = self.thresholds.get(port, NO_THRESHOLDS).drops
            if not reported and port in self._watched:
                continue
            if not reported or not can_be_lost(frame):
                self.drops.ignored += 1
            elif self._bucket.take(now_ns) and self._sender.send_to_ready(
                dropped_packet.encode(DroppedPacket(port, frame, length))
            ):
                self.drops.sent += 1
            else:
                self.drops.suppressed += 1


def _refusal(code: int, text: str) -> OpenFlowError:
    """An error with a code of ours, because OpenFlow has none for it."""
    return OpenFlowError(ofp.OFPET_EXPERIMENTER, code, text)
