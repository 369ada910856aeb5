"""Packet-ins that are copies of segments, without Ryu's objects for them.

There are four for each connection, thousands a second. Each would be decoded to a message, wrapped in an
event, queued for the application, and taken from there by another greenlet; all of that takes longer than to
read the segment. So a packet-in whose cookie was registered here goes to its function at once, from the
greenlet that has received it. The function must not wait, and may leave a packet-in to Ryu; so is each one
that another application observes, and, where their order matters, each one that comes while events of the
same switch wait.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ryu.controller import ofp_event

from fairq_ryu.ryu_compat import cached_matches, observers

LOG = logging.getLogger(__name__)
# The cookie, and type and length of the match, behind header, buffer, length, reason and table.
_FIXED = struct.Struct("!16xQHH")
_MATCH_AT = 24
_MOST_MATCH = 128  # bytes; what a peer may choose freely is not kept in a cache
_OBSERVED = ofp_event.EventOFPPacketIn

Taker = Callable[[Any, int, bytes], bool]
"""Takes a datapath, the number of the port where the frame came in, and the frame, or as much of it as the
switch sends. False: it is left to Ryu."""

_takers: dict[int, tuple[Taker, Callable[[Any], bool] | None]] = {}


def register(cookie: int, taker: Taker, free: Callable[[Any], bool] | None = None) -> None:
    """Packet-ins of the rules with this cookie are for ``taker``. ``free``: whether no event of a datapath
    waits for its application; None: they may overtake events.
    """
    _takers[cookie] = taker, free


def take(datapath: Any, message: bytes) -> bool:
    """Whether a packet-in was taken: a whole message that has passed the checks of
    :mod:`~fairq_ryu.channel.wellformed`.
    """
    cookie, _, length = _FIXED.unpack_from(message)
    found = _takers.get(cookie)
    if found is None or not observers.only_one(datapath, _OBSERVED):
        return False
    taker, free = found
    if free is not None and not free(datapath):
        return False
    if length > _MOST_MATCH:
        return False
    end = _MATCH_AT + -(-length // 8) * 8
    try:
        number = _in_port(message[_MATCH_AT:end])
    except Exception:  # Ryu meets it again, and the connection ends with the reason
        return False
    if number is None:
        return False
    try:
        return taker(datapath, number, message[end + 2 :])
    except Exception:  # as Ryu does with events: a frame that fails must not end the connection
        LOG.exception("a copy of a segment is lost")
        return True


@lru_cache(maxsize=1024)
def _in_port(match: bytes) -> int | None:
    found: int | None = cached_matches.parse(type(None), match, 0).get("in_port")
    return found
