"""TCP segments that the controller sends in a receiver's name: window updates and duplicate ACKs.

Honest by construction: every number in them is one that the receiver itself has sent last. They acknowledge
what it has acknowledged and nothing more, carry no data, no SACK blocks and no flag but ACK, echo its own
timestamps (RFC 7323 section 3), and never offer more room than it has offered. Where one of these is not
known there is no segment, but a :class:`Refusal` to count.
"""

from __future__ import annotations

import ipaddress
import struct
from enum import StrEnum
from typing import NamedTuple, Protocol

from fairq_ryu.model import FlowKey
from fairq_ryu.packet.parse import ETH_IP, ETH_IPV6, Frame

ETH_VLAN = 0x8100
# Fast retransmit begins with the third (RFC 5681 section 3.2).
DUPLICATES = 3

_TCP_PROTOCOL = 6
_ACK = 0x10
_DONT_FRAGMENT = 0x4000
_HOP_LIMIT = 64
# NOP, NOP, timestamps: as RFC 7323 appendix A recommends, and all stacks have it.
_TIMESTAMPS = struct.Struct("!BBBBII")
_TCP = struct.Struct("!HHIIBBHHH")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_IPV6 = struct.Struct("!IHBB16s16s")
_CHECKSUM_AT = 16


class ReceiverState(Protocol):
    """What a switch has last seen of the side that acknowledges; ``key.src`` is that side.

    ``ack`` is the highest number that it has acknowledged, ``seq_next`` the number that its next byte will
    have, ``window`` the 16-bit field as it sent it, ``tsval`` and ``tsecr`` its last timestamps;
    ``has_timestamps`` None: it is not known whether the connection has them. ``fin`` and ``rst``: it has
    sent one.
    """

    @property
    def key(self) -> FlowKey: ...
    @property
    def found(self) -> bool: ...
    @property
    def seq_next(self) -> int: ...
    @property
    def ack(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def tsval(self) -> int: ...
    @property
    def tsecr(self) -> int: ...
    @property
    def has_timestamps(self) -> bool | None: ...
    @property
    def fin(self) -> bool: ...
    @property
    def rst(self) -> bool: ...


class Refusal(StrEnum):
    """Why there is no segment."""

    NOT_FOUND = "the switch does not know the flow"
    ENDED = "the receiver has sent FIN or RST"
    TIMESTAMPS = "it is not known whether the connection has timestamps"
    ADDRESSES = "the frame known of the connection is of another"
    CLOSED_WINDOW = "the receiver itself has closed its window"
    WINDOW = "the window is larger than what the receiver offers"
    NUMBERS = "the switch's numbers make no sense"


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
    """The addressing of a TCP frame that was copied; None if it is none.

    The segments go where the frame came from if they are sent at the port that it was copied at: further on,
    switches may have changed its tags.
    """
    return None if frame.tcp is None else Addressing(frame.tcp.key, frame.src, frame.dst, frame.tags)


def window_update(known: Addressing, state: ReceiverState) -> bytes | Refusal:
    """An ACK that says the receiver's window once more, unscaled as it said it: the switch lowers it as it
    lowers all ACKs, to the window that stands by then. ``known`` may be of either direction.
    """
    if state.found and state.window == 0:
        return Refusal.CLOSED_WINDOW
    return _segment(known, state, state.window)


def duplicates(
    known: Addressing, state: ReceiverState, window: int, count: int = DUPLICATES
) -> list[bytes] | Refusal:
    """``count`` ACKs that are duplicates to the sender (RFC 5681 section 2).

    ``window`` is the raw field of the last ACK that went on to the sender, so after it was lowered: with
    another one they would be window updates, and not counted.
    """
    segment = _segment(known, state, window)
    return segment if isinstance(segment, Refusal) else [segment] * count


def _refusal(known: Addressing, state: ReceiverState, window: int) -> Refusal | None:
    if not state.found:
        return Refusal.NOT_FOUND
    if state.rst or state.fin:
        return Refusal.ENDED
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


def _segment(known: Addressing, state: ReceiverState, window: int) -> bytes | Refusal:
    refusal = _refusal(known, state, window)
    if refusal is not None:
        return refusal
    key = state.key
    link = known if known.key == key else known.reversed
    src, dst = ipaddress.ip_address(key.src).packed, ipaddress.ip_address(key.dst).packed
    options = _TIMESTAMPS.pack(1, 1, 8, 10, state.tsval, state.tsecr) if state.has_timestamps else b""
    length = _TCP.size + len(options)
    tcp = _TCP.pack(key.sport, key.dport, state.seq_next, state.ack, length << 2, _ACK, window, 0, 0)
    tcp += options
    # The pseudo-header sums up to the same for both versions (RFC 9293 section 3.1, RFC 8200 section 8.1).
    checksum = internet_checksum(src + dst + struct.pack("!HH", length, _TCP_PROTOCOL) + tcp)
    tcp = tcp[:_CHECKSUM_AT] + struct.pack("!H", checksum) + tcp[_CHECKSUM_AT + 2 :]
    return _ethernet(link, key.version) + _ip(key.version, src, dst, length) + tcp


def _ethernet(link: Addressing, version: int) -> bytes:
    tags = b"".join(struct.pack("!HH", ETH_VLAN, tag) for tag in link.tags)
    kind = ETH_IP if version == 4 else ETH_IPV6
    return _mac(link.dst) + _mac(link.src) + tags + struct.pack("!H", kind)


def _ip(version: int, src: bytes, dst: bytes, length: int) -> bytes:
    """Not ECN-capable, as pure ACKs are not to be (RFC 3168 section 6.1.4)."""
    if version == 6:
        return _IPV6.pack(6 << 28, length, _TCP_PROTOCOL, _HOP_LIMIT, src, dst)
    total = _IPV4.size + length
    fields = (0x45, 0, total, 0, _DONT_FRAGMENT, _HOP_LIMIT, _TCP_PROTOCOL)
    checksum = internet_checksum(_IPV4.pack(*fields, 0, src, dst))
    return _IPV4.pack(*fields, checksum, src, dst)


def internet_checksum(data: bytes) -> int:
    """The checksum of RFC 1071 over ``data``."""
    if len(data) % 2:
        data += b"\0"
    # 2**16 is 1 modulo 0xFFFF, so the one's complement sum of the words is the number itself modulo that.
    total = int.from_bytes(data, "big")
    folded = total % 0xFFFF
    return 0xFFFF - (folded or (0xFFFF if total else 0))


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))
