"""What the agent tells of queues unasked: congestion, and the packets that were refused.

Controllers say by SET_THRESHOLDS what they want to hear of which port; all of them hear it. Times are in ns
of the monotonic clock, as arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fairq_ryu.agent.notices import Notices
from fairq_ryu.agent.programs.drops import Allowance, DropCounts
from fairq_ryu.channel import congestion, dropped_packet
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.channel.dropped_packet import DroppedPacket
from fairq_ryu.channel.flowmod import OpenFlowError
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.model import Thresholds
from fairq_ryu.packet.parse import can_be_lost

_NS = 1_000_000_000
NOTHING = Thresholds(0, 0)


class Queues(Protocol):
    """The queues that are watched (:class:`fairq_ryu.agent.programs.bridge.BridgePrograms`, or a fake)."""

    @property
    def reports_drops(self) -> bool:
        """Can dropped packets be told of?"""

    def has_port(self, port: int) -> bool:
        """Is this a port of the bridge?"""

    def set_thresholds(self, ofport: int, thresholds: Thresholds | None) -> None:
        """When a port is congested; None: it is not watched."""

    def congestion(self, ofport: int) -> CongestionNotice:
        """The state of a port now."""


class Listeners(Protocol):
    """Who is told: the controllers' channels."""

    def tell_all(self, data: bytes) -> None:
        """Send a message to every controller."""

    def tell_ready(self, data: bytes) -> bool:
        """Send one to the controllers that are no slaves and read fast enough. False if there was none."""


class QueueWatch:
    """Thresholds in force, and what came of them."""

    def __init__(self, queues: Queues, listeners: Listeners, gap: float, drop_rate: float) -> None:
        """At most one congestion message a port in ``gap`` seconds, and ``drop_rate`` packets a second."""
        self._queues, self._listeners = queues, listeners
        self._notices = Notices(int(gap * _NS))
        self._allowance = Allowance(drop_rate)
        self.thresholds: dict[int, Thresholds] = {}
        self.counts = DropCounts()
        self.notices_sent = 0

    def set(self, request: congestion.SetThresholds, now_ns: int) -> None:
        """Do what a SET_THRESHOLDS says; a port that is congested by the new thresholds is told of at once.

        Raises :class:`OpenFlowError` or what the kernel says, and changes nothing if it cannot be done.
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
            raise _refusal(congestion.ERROR_NO_DROPS, "this kernel does not tell of drops")
        self._put(port, Thresholds(cng, nom, drops))
        if cng:
            self._notices.ring([port], whatever=True)
            self.tell(now_ns)
        else:
            self._notices.forget(port)

    def _put(self, port: int, wanted: Thresholds) -> None:
        before = self.thresholds.get(port)
        try:
            self._queues.set_thresholds(port, None if wanted == NOTHING else wanted)
        except Exception:
            self._queues.set_thresholds(port, before)
            raise
        if wanted == NOTHING:
            self.thresholds.pop(port, None)
        else:
            self.thresholds[port] = wanted

    def forget_port(self, port: int) -> None:
        """The port has gone; its thresholds went with it."""
        self.thresholds.pop(port, None)
        self._notices.forget(port)

    def clear(self) -> None:
        """Nobody listens any more."""
        for port in list(self.thresholds):
            self._put(port, NOTHING)
            self._notices.forget(port)

    def crossed(self, ports: Iterable[int]) -> None:
        """The queues of these ports have crossed thresholds. Call :meth:`tell` afterwards."""
        self._notices.ring(port for port in ports if port in self.thresholds)

    def tell(self, now_ns: int) -> None:
        """Tell what is due."""
        for port in self._notices.due(now_ns):
            notice = self._queues.congestion(port)
            if self._notices.tell(port, notice.state, now_ns):
                self.notices_sent += 1
                self._listeners.tell_all(congestion.notice_message(notice))

    @property
    def next_ns(self) -> int | None:
        """When :meth:`tell` is to be called next; None: when something happens."""
        return self._notices.next_ns

    def dropped(self, packets: Iterable[tuple[int, bytes, int]], now_ns: int) -> None:
        """Packets that queues refused: port, frame or its beginning, its length in bytes."""
        counts = self.counts
        for port, frame, length in packets:
            if not self.thresholds.get(port, NOTHING).drops or not can_be_lost(frame):
                counts.passed_over += 1
            elif self._allowance.take(now_ns) and self._listeners.tell_ready(
                dropped_packet.encode(DroppedPacket(port, frame, length))
            ):
                counts.told += 1
            else:
                counts.held_back += 1


def _refusal(code: int, text: str) -> OpenFlowError:
    """OpenFlow has no code for it, so it is one of ours."""
    return OpenFlowError(ofp.OFPET_EXPERIMENTER, code, text)
