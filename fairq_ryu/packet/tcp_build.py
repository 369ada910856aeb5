"""TCP segments that the controller sends in a receiver's name: window updates and duplicate ACKs.

Every number in them is one that the receiver itself has sent last. They acknowledge what it has acknowledged
and nothing more, carry no data, no SACK blocks and no flag but ACK, echo its own timestamps (RFC 7323 section
3), and never offer a larger window than the receiver has offered. If one of these numbers is not known, no
segment is created; a :class:`Refusal` is returned, which the caller counts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from fairq_ryu.model import FlowKey, SegmentState
from fairq_ryu.packet import addresses, build, tcp_options
from fairq_ryu.packet.headers import ACK, mac_bytes
from fairq_ryu.packet.parse import Frame

# The third duplicate starts fast retransmit (RFC 5681 section 3.2).
DUPLICATES = 3


class Refusal(StrEnum):
    """Why no segment was created."""

    NOT_FOUND = "the switch does not know the flow"
    ENDED = "the receiver has sent FIN or RST"
    TIMESTAMPS = "it is not known whether the connection has timestamps"
    ADDRESSES = "the known addresses are those of another connection"
    CLOSED_WINDOW = "the receiver itself has closed its window"
    WINDOW = "the window is larger than the receiver's"
    NUMBERS = "the switch's numbers are not possible"
    SIGNED = "the connection signs its segments"


class Addressing(NamedTuple):
    """The link layer of a connection in one direction: MAC addresses as text, VLAN tags as TCI."""

    key: FlowKey
    src: str
    dst: str
    tags: tuple[int, ...] = ()

    @property
    def reversed(self) -> Addressing:
        """The other direction."""
        return Addressing(self.key.reversed, self.dst, self.src, self.tags)


def addressing(frame: Frame) -> Addressing | None:
    """The addressing of a copied TCP frame; None if it is not a TCP frame.

    The segments reach the sender of the frame if they are sent at the port where it was copied: behind that
    port, switches may have changed its tags.
    """
    return None if frame.tcp is None else Addressing(frame.tcp.key, frame.src, frame.dst, frame.tags)


def window_update(known: Addressing, state: SegmentState) -> bytes | Refusal:
    """An ACK that repeats the receiver's window as it was sent. The switch lowers it like all ACKs, to the
    window of the rule that is installed then. ``known`` may be of either direction.
    """
    if state.found and state.window == 0:
        return Refusal.CLOSED_WINDOW
    return _segment(known, state, state.window)


def duplicates(known: Addressing, state: SegmentState) -> list[bytes] | Refusal:
    """Three ACKs that are duplicates to the sender (RFC 5681 section 2).

    They have the window of the last ACK as it was passed on: with a larger one, the first of them would be a
    window update, which does not count. (A smaller one, if the rule has changed since, counts on Linux.)
    """
    segment = _segment(known, state, state.passed)
    return segment if isinstance(segment, Refusal) else [segment] * DUPLICATES


def _refusal(known: Addressing, state: SegmentState, window: int) -> Refusal | None:
    if not state.found:
        return Refusal.NOT_FOUND
    if state.rst or state.fin:
        return Refusal.ENDED
    if state.is_signed:
        return Refusal.SIGNED
    if state.has_timestamps is None:
        return Refusal.TIMESTAMPS
    if known.key not in (state.key, state.key.reversed):
        return Refusal.ADDRESSES
    numbers = (state.seq_next, state.ack, state.tsval, state.tsecr)
    if any(not 0 <= number < 1 << 32 for number in numbers) or not 0 <= state.window < 1 << 16:
        return Refusal.NUMBERS
    if state.has_timestamps and state.tsval == state.tsecr == 0:
        # Every segment but the first SYN of a connection with timestamps echoes one, and clocks run.
        return Refusal.NUMBERS
    if not 0 <= window <= state.window:
        return Refusal.WINDOW
    return None


def _segment(known: Addressing, state: SegmentState, window: int) -> bytes | Refusal:
    refusal = _refusal(known, state, window)
    if refusal is not None:
        return refusal
    key = state.key
    link = known if known.key == key else known.reversed
    ends = addresses.packed(key.src), addresses.packed(key.dst)
    options = tcp_options.timestamps(state.tsval, state.tsecr) if state.has_timestamps else b""
    ports = key.sport, key.dport
    segment = build.tcp(b"".join(ends), ports, state.seq_next, state.ack, ACK, window, options)
    return build.tcp_frame((mac_bytes(link.src), mac_bytes(link.dst)), ends, segment, link.tags)
