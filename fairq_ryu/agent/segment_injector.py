"""Segments that the agent sends in a connection's name: window updates, duplicate ACKs, and reinjected
segments.

    WAKE ----------> the flow map: the receiver's last segment --> tcp_build --> the port where its ACKs leave
    a lost segment --> with the newest timestamp of its sender ------------> the port that has dropped it

An ACK leaves by the port by which the receiver's own ACKs leave, and is lowered there as they are. What
:mod:`~fairq_ryu.packet.tcp_build` promises holds: nothing is acknowledged that the receiver has not
acknowledged, and no window is larger than the receiver's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.turns import Opening
from fairq_ryu.channel.segment_counts import NOT_SENT, OBSERVED, OVER, UNKNOWN_ADDRESSES
from fairq_ryu.model import SegmentState
from fairq_ryu.packet import tags, tcp_build, tcp_timestamps
from fairq_ryu.packet.parse import parse

_HALF = 1 << 31


class SegmentInjector:
    """``counts``: flows whose senders were woken, segments for which duplicates were sent, segments that were
    reinjected; and what was not sent, with the reason (:mod:`fairq_ryu.channel.segment_counts`).
    """

    def __init__(self, ports: BridgePrograms) -> None:
        self._ports = ports
        self.counts: Counter[str] = Counter()

    def wake(self, flows: Iterable[tcp_build.Addressing]) -> None:
        """Send a window update to each sender, in this order. The keys are the directions of the ACKs."""
        for known in flows:
            self.wake_one(known)

    def wake_one(self, known: tcp_build.Addressing) -> Opening:
        """Send a window update to a sender. The key is the direction of the ACKs."""
        observed = self._ports.observed
        if observed and self._ports.segment_state(known.key.reversed).port in observed:
            self.counts[f"wake: {OBSERVED}"] += 1
            return Opening.GONE
        state = self._ports.segment_state(known.key)
        update = tcp_build.window_update(self._at_port(known, state), state)
        if isinstance(update, tcp_build.Refusal):
            self._send("wake", state.port, update)
            return Opening.GONE
        return Opening.TOLD if self._send("wake", state.port, [update]) else Opening.UNSENT

    def send_duplicates(self, known: tcp_build.Addressing | None, state: SegmentState) -> None:
        """Send three duplicates of the receiver's last ACK."""
        if known is None:
            self.counts[f"dupack: {UNKNOWN_ADDRESSES}"] += 1
        else:
            found = tcp_build.duplicates(self._at_port(known, state), state)
            self._send("dupack", state.port, found)

    def _at_port(self, known: tcp_build.Addressing, state: SegmentState) -> tcp_build.Addressing:
        """The addressing at the port by which the segment leaves: its tags are those of another port."""
        untagged = self._ports.untagged_vlan(state.port)
        return known._replace(tags=tags.at_port(known.tags, known.key.vlan, untagged))

    def reinject(self, port: int, frame: bytes, tsecr: int | None) -> None:
        """Send a frame out of the port that has dropped it. ``tsecr``: the timestamp that its receiver echoed
        last (None: not known).

        The frame gets the newest timestamp: its own, this one, or that of the sender's last segment. That
        segment may still be in the queue, in front of this frame; a receiver that has got it discards an
        older timestamp.
        """
        read = parse(frame, self._ports.untagged_vlan(port))
        if read is not None and read.tcp is not None:
            state = self._ports.segment_state(read.tcp.key)
            if _is_over(state, read.tcp.seq):
                self.counts[f"reinject: {OVER}"] += 1
                return
            if state.found and state.has_timestamps:
                tsecr = state.tsval if tsecr is None else _newest(tsecr, state.tsval)
        if tsecr is not None:
            frame = tcp_timestamps.renewed(frame, tsecr)
        self._send("reinject", port, [frame])

    def _send(self, kind: str, port: int, segments: list[bytes] | tcp_build.Refusal) -> bool:
        """Returns whether all were sent."""
        sent = not isinstance(segments, tcp_build.Refusal) and all(
            self._ports.send_frame(port, segment) for segment in segments
        )
        reason = segments if isinstance(segments, tcp_build.Refusal) else NOT_SENT
        self.counts[kind if sent else f"{kind}: {reason}"] += 1
        return sent


def _newest(one: int, other: int) -> int:
    """The later of two timestamps, modulo 2 ** 32 (RFC 7323, section 5.2)."""
    return other if (other - one) & 0xFFFFFFFF < _HALF else one


def _is_over(state: SegmentState, seq: int) -> bool:
    """Whether the connection of a lost segment was reset, or its ports are used for another connection: the
    flow map has seen the segment, so its sequence number cannot be after the last one.
    """
    return state.found and (state.rst or (state.seq_next - seq) & 0xFFFFFFFF >= _HALF)
