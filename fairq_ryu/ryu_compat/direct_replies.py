"""Experimenter multipart replies, which are for one function, without Ryu's objects for them.

The controller reads a queue every 2 ms, or a thousand queues a second, and waits for each reply. Ryu would
decode it to a message, wrap it in an event, and queue that for the application, whose greenlet takes it from
there. So such a reply goes to its function at once, from the greenlet that has received it. The function must
not wait, and may leave a reply to Ryu; so is each one that another application observes. While events of the
same switch wait, a reply waits behind them, as Ryu has it: one of them may say what the reply is about.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable
from typing import Any

from ryu.controller import ofp_event
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel.dispatch import ExperimenterMessage
from fairq_ryu.ryu_compat import observers

LOG = logging.getLogger(__name__)
# Header (its transaction id), type, flags; experimenter, number.
_FIXED = struct.Struct("!4xIHH4xII")
_OBSERVED = ofp_event.EventOFPExperimenterStatsReply

Taker = Callable[[Any, ExperimenterMessage], bool]
"""Takes a datapath and a reply from it. False: it is left to Ryu."""

_takers: list[tuple[Taker, Callable[[Any], bool]]] = []


def register(taker: Taker, free: Callable[[Any], bool]) -> None:
    """Replies are for ``taker``, and no longer for one that was registered before. ``free``: whether no event
    of a datapath waits for its application.
    """
    _takers[:] = [(taker, free)]


def take(datapath: Any, message: bytes) -> bool:
    """Whether a multipart reply was taken: a whole message that has passed the checks of
    :mod:`~fairq_ryu.channel.wellformed`.
    """
    if not _takers or len(message) < _FIXED.size or not observers.only_one(datapath, _OBSERVED):
        return False
    xid, kind, flags, experimenter, number = _FIXED.unpack_from(message)
    if kind != ofp.OFPMP_EXPERIMENTER:
        return False
    more = bool(flags & ofp.OFPMPF_REPLY_MORE)
    reply = ExperimenterMessage(experimenter, number, xid, more, message[_FIXED.size :])
    taker, free = _takers[0]
    try:
        return free(datapath) and taker(datapath, reply)
    except Exception:  # as Ryu does with events: a reply that fails must not end the connection
        LOG.exception("a reply is lost")
        return True
