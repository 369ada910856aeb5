"""Checks of the parts of messages from switches: matches, actions, instructions, and the bodies of multipart
replies (ONF OpenFlow 1.3.5, section 7). They follow the same length fields as Ryu's parser.

Every function takes the message and the offsets where a part of it begins and ends, and raises
:class:`Malformed` if an element is shorter than its own header or extends beyond its parent.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import pairwise

_H = struct.Struct("!H")
_HH = struct.Struct("!HH")
_HBB = struct.Struct("!HBB")
# Ryu copies the rest of some parts once for each of their elements, so their size is limited, bytes.
_MAX_PART = 8192
# An action may contain actions (Nicira's conntrack action does), up to this depth.
_MAX_DEPTH = 3

_OXM_EXPERIMENTER = 0xFFFF
_ONF = 0x4F4E4600
_NICIRA = 0x00002320
BUNDLE_CONTROL = (_ONF, 2300)
# Lengths of instructions and actions of a fixed size; Ryu advances by these whatever the length field says.
_GOTO_TABLE, _WRITE_METADATA, _METER = 1, 2, 6
_WITH_ACTIONS = (3, 4, 5)
_INSTRUCTIONS = {_GOTO_TABLE: 8, _WRITE_METADATA: 24, _METER: 8}
_ACTIONS = {0: 16, **dict.fromkeys((11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 27), 8)}
_SET_FIELD, _EXPERIMENTER = 25, 0xFFFF
_NX_CONNTRACK, _NX_CONTROLLER2 = 35, 37
_CONTROLLER2_DATA = 3
_NX_CONNTRACK_BYTES = 24
_BANDS = (1, 2, 0xFFFF)
_QUEUE_PROPERTIES = {1: 16, 2: 16, 0xFFFF: 16}


class Malformed(ValueError):
    """A message that must not be decoded; the text says why."""


def padded(length: int) -> int:
    """A length rounded up to 8 bytes."""
    return (length + 7) & ~7


def need(have: int, least: int, exactly: bool = False) -> None:
    """Raise :class:`Malformed` if ``have`` bytes are fewer than ``least`` or, with ``exactly``, another
    number.
    """
    if have < least or (exactly and have != least):
        raise Malformed(f"{have} bytes instead of {'' if exactly else 'at least '}{least}")


def elements(
    data: bytes, start: int, end: int, least: int, what: str, pad: bool = True
) -> list[tuple[int, int, int]]:
    """Elements that begin with their type and length, 16 bits each: type, offset, length without padding. The
    padding of the last one may be missing.
    """
    found = []
    while start < end:
        if start + 4 > end:
            raise Malformed(f"{what} at byte {start} is cut off")
        kind, length = _HH.unpack_from(data, start)
        _fits(what, start, length, least, end)
        found.append((kind, start, length))
        start += padded(length) if pad else length
    return found


def _fits(what: str, start: int, length: int, least: int, end: int) -> None:
    if length < least:
        raise Malformed(f"{what} at byte {start} says length {length}, less than {least}")
    if start + length > end:
        raise Malformed(f"{what} at byte {start} says length {length}, but there are {end - start} bytes")


def _entries(data: bytes, start: int, end: int, least: int, what: str) -> list[tuple[int, int]]:
    """Entries that begin with their length, 16 bits: the offsets where each begins and ends."""
    found = []
    while start < end:
        if start + least > end:
            raise Malformed(f"{what} at byte {start} is cut off")
        length = _H.unpack_from(data, start)[0]
        _fits(what, start, length, least, end)
        found.append((start, start + length))
        start += length
    return found


# Matches, instructions and actions


def match(data: bytes, start: int, end: int) -> int:
    """Check a match. Returns the end of its padding, which must not be missing."""
    if start + 8 > end:
        raise Malformed(f"match at byte {start} is cut off")
    kind, length = _HH.unpack_from(data, start)
    if kind != 1:
        raise Malformed(f"match at byte {start} has type {kind}, not 1")
    _fits("match", start, padded(length), 4, end)
    if length < 4:
        raise Malformed(f"match at byte {start} says length {length}, less than 4")
    field, last = start + 4, start + length
    while field < last:
        field += _oxm(data, field, last)
    return start + padded(length)


def _oxm(data: bytes, start: int, end: int) -> int:
    """Check a match field. Returns its length with its header."""
    if start + 4 > end:
        raise Malformed(f"match field at byte {start} is cut off")
    oxm_class, field, size = _HBB.unpack_from(data, start)
    header = 0
    if oxm_class == _OXM_EXPERIMENTER:
        header = 4
        if start + 8 <= end and field >> 1 == 0 and data[start + 4 : start + 8] == _ONF.to_bytes(4, "big"):
            header = 6
    # At least one byte of value, and one of the mask if there is one.
    _fits("match field", start, 4 + size, 4 + header + 1 + (field & 1), end)
    return 4 + int(size)


def _actions(data: bytes, start: int, end: int, depth: int = 0) -> None:
    if depth >= _MAX_DEPTH:
        raise Malformed(f"action at byte {start}: actions within actions within actions")
    for kind, at, length in elements(data, start, end, 8, "action", pad=False):
        if length % 8 or length > _MAX_PART:
            raise Malformed(f"action at byte {at} says length {length}")
        if kind == _SET_FIELD:
            _oxm(data, at + 4, at + length)
        elif kind == _EXPERIMENTER:
            _nicira(data, at, length, depth)
        elif kind not in _ACTIONS:
            raise Malformed(f"action at byte {at} has type {kind}, which is not known")
        elif length != _ACTIONS[kind]:
            raise Malformed(f"action at byte {at} says length {length} instead of {_ACTIONS[kind]}")


def _nicira(data: bytes, at: int, length: int, depth: int) -> None:
    if struct.unpack_from("!I", data, at + 4)[0] != _NICIRA:
        return
    _fits("action", at, length, 16, at + length)
    if _H.unpack_from(data, at + 8)[0] == _NX_CONNTRACK:
        _fits("action", at, length, _NX_CONNTRACK_BYTES, at + length)
        _actions(data, at + _NX_CONNTRACK_BYTES, at + length, depth + 1)
    elif _H.unpack_from(data, at + 8)[0] == _NX_CONTROLLER2:
        _controller2(data, at + 16, at + length)


def _controller2(data: bytes, start: int, end: int) -> None:
    """Check its properties with the lengths that Ryu uses: it takes all but one kind for 8 bytes long."""
    while start < end:
        if start + 4 > end:
            raise Malformed(f"property at byte {start} is cut off")
        kind, length = _HH.unpack_from(data, start)
        _fits("property", start, length, 4, end)
        step = 4
        if kind == _CONTROLLER2_DATA:
            step = (length - 4 + 3) & ~3
            step += 4 if step > 4 and step % 8 == 0 else 0
        start += 4 + step


def _instructions(data: bytes, start: int, end: int) -> None:
    for kind, at, length in elements(data, start, end, 8, "instruction", pad=False):
        if kind in _WITH_ACTIONS:
            _actions(data, at + 8, at + length)
        elif kind not in _INSTRUCTIONS:
            raise Malformed(f"instruction at byte {at} has type {kind}, which is not known")
        elif length != _INSTRUCTIONS[kind]:
            raise Malformed(f"instruction at byte {at} says length {length} instead of {_INSTRUCTIONS[kind]}")


# Bodies of multipart replies


def _fixed(size: int, single: bool = False) -> Callable[[bytes, int, int], None]:
    """The check of a body of structures of one size, or of a ``single`` one."""

    def check(_data: bytes, start: int, end: int) -> None:
        if single:
            need(end - start, size, exactly=True)
        elif (end - start) % size:
            raise Malformed(f"a body of {end - start} bytes is no multiple of {size}")

    return check


def _flows(data: bytes, start: int, end: int) -> None:
    for at, last in _entries(data, start, end, 56, "flow entry"):
        _instructions(data, match(data, at + 48, last), last)


def _group_stats(data: bytes, start: int, end: int) -> None:
    for at, last in _entries(data, start, end, 40, "group"):
        _fixed(16)(data, at + 40, last)


def _groups(data: bytes, start: int, end: int) -> None:
    for at, last in _entries(data, start, end, 8, "group"):
        for bucket, bucket_end in _entries(data, at + 8, last, 16, "bucket"):
            _actions(data, bucket + 16, bucket_end)


def _meter_stats(data: bytes, start: int, end: int) -> None:
    while start < end:
        if start + 40 > end:
            raise Malformed(f"meter at byte {start} is cut off")
        length = _H.unpack_from(data, start + 4)[0]
        _fits("meter", start, length, 40, end)
        _fixed(16)(data, start + 40, start + length)
        start += length


def _meters(data: bytes, start: int, end: int) -> None:
    for at, last in _entries(data, start, end, 8, "meter"):
        for kind, band, length in elements(data, at + 8, last, 16, "band", pad=False):
            if kind not in _BANDS or length != 16:
                raise Malformed(f"band at byte {band} has type {kind} and length {length}")


def _tables(data: bytes, start: int, end: int) -> None:
    for at, last in _entries(data, start, end, 64, "table"):
        found = elements(data, at + 64, last, 4, "property")
        for kind, prop, length in found:
            _table_property(data, kind, prop, length)
        # Ryu needs the padding between properties, but not behind the last.
        for (_, one, length), (_, following, _) in pairwise(found):
            if one + padded(length) != following:
                raise Malformed(f"property at byte {following} begins in the padding before it")


def _table_property(data: bytes, kind: int, start: int, length: int) -> None:
    if length > _MAX_PART:
        raise Malformed(f"property at byte {start} says length {length}, more than {_MAX_PART}")
    first, end = start + 4, start + length
    if kind in (0, 1) or kind in (4, 5, 6, 7):
        elements(data, first, end, 4, "id", pad=False)
    elif kind in (8, 10, 12, 13, 14, 15):
        while first < end:
            experimenter = data[first : first + 2] == b"\xff\xff"
            _fits("match field id", first, 8 if experimenter else 4, 4, end)
            first += 8 if experimenter else 4
    elif kind in (0xFFFE, 0xFFFF):
        _four_byte_data(start, length)


def _four_byte_data(start: int, length: int) -> None:
    """Check an experimenter's property: 12 bytes, and data in units of 4 bytes."""
    if length < 12 or length % 4 or length > _MAX_PART:
        raise Malformed(f"property at byte {start} says length {length}")


def _experimenter(_data: bytes, start: int, end: int) -> None:
    need(end - start, 8)


MULTIPARTS: dict[int, Callable[[bytes, int, int], None]] = {
    0: _fixed(1056, single=True),
    1: _flows,
    2: _fixed(24, single=True),
    3: _fixed(24),
    4: _fixed(112),
    5: _fixed(40),
    6: _group_stats,
    7: _groups,
    8: _fixed(40, single=True),
    9: _meter_stats,
    10: _meters,
    11: _fixed(16, single=True),
    12: _tables,
    13: _fixed(64),
    0xFFFF: _experimenter,
}


# Others


def queues(data: bytes, start: int, end: int) -> None:
    """Check queues with their properties. Ryu never gets past a property of a kind that it does not know."""
    while start < end:
        if start + 16 > end:
            raise Malformed(f"queue at byte {start} is cut off")
        length = _H.unpack_from(data, start + 8)[0]
        _fits("queue", start, length, 16, end)
        for kind, at, size in elements(data, start + 16, start + length, 8, "property", pad=False):
            if kind not in _QUEUE_PROPERTIES or size > _MAX_PART:
                raise Malformed(f"property at byte {at} has type {kind} and length {size}")
            _fits("property", at, size, _QUEUE_PROPERTIES[kind], start + length)
        start += length


def bundle_properties(data: bytes, start: int, end: int) -> None:
    """Check the properties of a bundle message (ONF extension 230)."""
    for _, at, length in elements(data, start, end, 4, "property"):
        if length > _MAX_PART:
            raise Malformed(f"property at byte {at} says length {length}, more than {_MAX_PART}")
