"""Checks whether a message from a switch is well formed, before Ryu decodes it.

Ryu's parser for OpenFlow 1.3 advances by the length fields of the message: an element of length 0, and some
kinds of elements that it does not know, make it loop for ever. So every length is checked first: it must
cover at least the element's own header and end within its parent. Layouts: ONF OpenFlow 1.3.5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache

from fairq_ryu.channel import layouts
from fairq_ryu.channel.framing import HEADER
from fairq_ryu.channel.layouts import Malformed, elements, need

VERSION = 4
(HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, EXPERIMENTER) = range(5)
FEATURES_REPLY, GET_CONFIG_REPLY, PACKET_IN, FLOW_REMOVED, PORT_STATUS = 6, 8, 10, 11, 12
MULTIPART_REPLY, BARRIER_REPLY, QUEUE_GET_CONFIG_REPLY, ROLE_REPLY, GET_ASYNC_REPLY = 19, 21, 23, 25, 27
NAMES = {
    HELLO: "HELLO",
    ERROR: "ERROR",
    ECHO_REQUEST: "ECHO_REQUEST",
    ECHO_REPLY: "ECHO_REPLY",
    EXPERIMENTER: "EXPERIMENTER",
    FEATURES_REPLY: "FEATURES_REPLY",
    GET_CONFIG_REPLY: "GET_CONFIG_REPLY",
    PACKET_IN: "PACKET_IN",
    FLOW_REMOVED: "FLOW_REMOVED",
    PORT_STATUS: "PORT_STATUS",
    MULTIPART_REPLY: "MULTIPART_REPLY",
    BARRIER_REPLY: "BARRIER_REPLY",
    QUEUE_GET_CONFIG_REPLY: "QUEUE_GET_CONFIG_REPLY",
    ROLE_REPLY: "ROLE_REPLY",
    GET_ASYNC_REPLY: "GET_ASYNC_REPLY",
}
# Asynchronous messages; a switch may send them before it has answered the first requests.
ASYNCHRONOUS = {EXPERIMENTER, PACKET_IN, FLOW_REMOVED, PORT_STATUS}
_HANDSHAKE = {HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY}
# Before the handshake is complete all other messages are short. After it, the only limit is that of the
# header's 16-bit length: replies with statistics use all of it.
_LONG = {MULTIPART_REPLY, *ASYNCHRONOUS}
_SHORT_BYTES = 1024
_HELLO_BITMAP = 1
_PORT_DESC = 13
# Matches up to this size recur and are cached, bytes; a packet-in has one of 12 or 16.
_COMMON_MATCH = 32


class Phase(IntEnum):
    """The phase of a connection: before its HELLO, before its features and ports are known, after that."""

    GREETING = 0
    JOINING = 1
    JOINED = 2


def name(kind: int) -> str:
    """The name of a message type."""
    return NAMES.get(kind, f"type {kind}")


def check_header(version: int, kind: int, length: int, phase: Phase) -> None:
    """Check whether such a message is allowed in this phase, with that length. Raises :class:`Malformed`."""
    if length < HEADER.size:
        raise Malformed(f"length {length} in the header, less than the header's own 8 bytes")
    if kind not in NAMES:
        raise Malformed("a switch sends no such message")
    # The version is negotiated only when both sides have sent HELLO.
    if version != VERSION and not (phase == Phase.GREETING and kind in (HELLO, ERROR)):
        raise Malformed(f"version {version:#04x} instead of {VERSION:#04x}")
    if phase == Phase.JOINED:
        return
    known = kind in _HANDSHAKE
    if phase == Phase.JOINING:
        known = known or kind in (FEATURES_REPLY, MULTIPART_REPLY) or kind in ASYNCHRONOUS
    if not known:
        raise Malformed("not allowed before the handshake is complete")
    if length > _SHORT_BYTES and kind not in _LONG:
        raise Malformed(f"{length} bytes; {_SHORT_BYTES} are the maximum before the handshake is complete")


def check(message: bytes, phase: Phase) -> None:
    """Check a whole message whose header has passed :func:`check_header`. Raises :class:`Malformed`."""
    kind = message[1]
    if phase == Phase.JOINING and kind == MULTIPART_REPLY:
        need(len(message), 16)
        if struct.unpack_from("!H", message, 8)[0] != _PORT_DESC:
            raise Malformed("not allowed before the handshake is complete")
    _CHECKS[kind](message)


def offers_1_3(hello: bytes) -> bool:
    """Whether a HELLO that has passed :func:`check` offers OpenFlow 1.3: by its bitmap or, without one, by
    its version.
    """
    for kind, start, length in elements(hello, HEADER.size, len(hello), 4, "element"):
        if kind == _HELLO_BITMAP and length >= 8:
            return bool(struct.unpack_from("!I", hello, start + 4)[0] & 1 << VERSION)
    return hello[0] >= VERSION


def _hello(message: bytes) -> None:
    elements(message, HEADER.size, len(message), 4, "element")


def _error(message: bytes) -> None:
    need(len(message), 12)
    kind = struct.unpack_from("!H", message, 8)[0]
    quoted = 16 if kind == 0xFFFF else 12
    # HELLO_FAILED contains a text, all others the beginning of the refused message.
    need(len(message), quoted if kind == 0 else quoted + HEADER.size)


def _any(_message: bytes) -> None:
    pass


def _at_least(size: int) -> Callable[[bytes], None]:
    def check_size(message: bytes) -> None:
        need(len(message), size)

    return check_size


def _experimenter(message: bytes) -> None:
    need(len(message), 16)
    if struct.unpack_from("!II", message, 8) == layouts.BUNDLE_CONTROL:
        need(len(message), 24)
        layouts.bundle_properties(message, 24, len(message))


def _packet_in(message: bytes) -> None:
    # The fixed part, the match, and two bytes of padding before the frame.
    need(len(message), _match(message, 24) + 2)


def _flow_removed(message: bytes) -> None:
    _match(message, 48)


def _match(message: bytes, start: int) -> int:
    """The end of the padded match at ``start``."""
    need(len(message), start + 8)
    length = struct.unpack_from("!H", message, start + 2)[0]
    end = start + layouts.padded(length)
    if length <= _COMMON_MATCH and end <= len(message):
        _check_common(message[start:end])
        return end
    return layouts.match(message, start, len(message))


@lru_cache(maxsize=1024)
def _check_common(match: bytes) -> None:
    layouts.match(match, 0, len(match))


def _port_status(message: bytes) -> None:
    need(len(message), 80)
    if message[8] not in (0, 1, 2):  # added, deleted, modified
        raise Malformed(f"reason {message[8]} is not known")


def _queue_config(message: bytes) -> None:
    need(len(message), 16)
    layouts.queues(message, 16, len(message))


def _multipart(message: bytes) -> None:
    need(len(message), 16)
    kind = struct.unpack_from("!H", message, 8)[0]
    found = layouts.MULTIPARTS.get(kind)
    if found is None:
        raise Malformed(f"multipart type {kind} is not known")
    found(message, 16, len(message))


_CHECKS: dict[int, Callable[[bytes], None]] = {
    HELLO: _hello,
    ERROR: _error,
    ECHO_REQUEST: _any,
    ECHO_REPLY: _any,
    EXPERIMENTER: _experimenter,
    FEATURES_REPLY: _at_least(32),
    GET_CONFIG_REPLY: _at_least(12),
    PACKET_IN: _packet_in,
    FLOW_REMOVED: _flow_removed,
    PORT_STATUS: _port_status,
    MULTIPART_REPLY: _multipart,
    BARRIER_REPLY: _any,
    QUEUE_GET_CONFIG_REPLY: _queue_config,
    ROLE_REPLY: _at_least(24),
    GET_ASYNC_REPLY: _at_least(32),
}
