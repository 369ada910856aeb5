"""Requests for the flow records of one agent, and what has come in answer to them.

All records are asked for as changes, a chunk at a time: the next one when the last one was applied, so that
an agent never sends more than the controller has time for. The records of one port, of flows that may have
made progress, are asked for whole.

Bounded: one request for changes is under way, and one partial reply is kept for each other request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fairq_ryu.channel import flow_changes
from fairq_ryu.channel import flow_records as records
from fairq_ryu.channel.dispatch import TooMuch
from fairq_ryu.channel.flow_changes import ChangeRequest, ChunkFlags, RequestFlags
from fairq_ryu.control.agents.agent_port import AgentPorts
from fairq_ryu.openflow.pipeline import Message

# Requests for the flow records of one port: this plus the port's number. Ryu numbers its own messages from a
# random number on, but replies are distinguished by their type first.
_PROGRESS_XID = 0xFA170000
# Requests for changes are numbered, so that a late answer is told from that to the next request.
_CHANGES_XID = 0xFA180000
# A flow that has been silent for longer, milliseconds, has made no progress since it was last reported.
_RECENT_MS = 1000
# Records in a chunk: a few milliseconds of work. As large a part of the channel's messages as others need it.
CHUNK = 512
# Of one port, in one reply.
MOST_RECORDS = 1 << 20
# A chunk that does not come within this many seconds is asked for again.
_TIMEOUT = 10.0
# Flows that send are reported again after this multiple of the time that all changes have taken, so that the
# next round can end as well.
_ROUNDS = 4.0
# After a request that does not ask for it, an agent leaves out connections that end soon until its next
# reading of the flow map: for less than this time, seconds.
_STILL_LEFT_OUT = 5.0
# Of the idle timeout: flows that send must be reported several times before they count as idle.
_IDLE_PART = 1 / 3


class RecordRequests:
    """The flow records of one agent. Returns messages and sends nothing. Times in seconds."""

    def __init__(self, datapath: Any, ports: AgentPorts) -> None:
        self._datapath, self._ports = datapath, ports
        self._requested_at = 0.0
        self._asked: set[int] = set()  # ports of which records were requested
        self._partial: dict[int, list[records.FlowRecord]] = {}  # their replies so far
        self._number = 0
        self._waits = False  # for the answer
        self._applying = False
        self._generation = 0
        self._refresh = 1.0
        self._longest_refresh = math.inf
        self._flags = RequestFlags(0)
        self._lasting_at = -math.inf
        self._round_began: float | None = None

    # All ports

    def request(
        self, interval: float, refresh: float, idle_timeout: float, ended_again: bool, now: float
    ) -> list[Message]:
        """Request what has changed, unless that was done within the ``interval`` or is not answered yet; see
        :class:`~fairq_ryu.channel.flow_changes.ChangeRequest`. Where ``refresh`` is longer than ``interval``,
        there is so much to report that connections which end soon are left out.
        """
        self._refresh, self._longest_refresh = refresh, max(refresh, _IDLE_PART * idle_timeout)
        self._flags = RequestFlags.ENDED_AGAIN if ended_again else RequestFlags(0)
        if refresh > interval and not ended_again:
            self._flags |= RequestFlags.LASTING
        if self._applying or now - self._requested_at < (_TIMEOUT if self._waits else interval):
            return []
        if self._waits:
            self._round_began = None  # it is the answer that takes long
        return [self._ask(now)]

    def _ask(self, now: float) -> Message:
        if self._round_began is None:
            self._round_began = now
        refresh = max(self._refresh, _ROUNDS * (now - self._round_began))
        wanted = ChangeRequest(
            self._generation, math.ceil(1000 * min(refresh, self._longest_refresh)), CHUNK, self._flags
        )
        if RequestFlags.LASTING in self._flags:
            self._lasting_at = now
        self._number = (self._number + 1) & 0xFFFF
        self._requested_at = now
        self._waits = True
        message = flow_changes.request(self._datapath, wanted)
        message.set_xid(_CHANGES_XID + self._number)
        return message

    def leaves_out(self, now: float) -> bool:
        """Whether the agent may leave out connections that end soon."""
        return now - self._lasting_at <= _STILL_LEFT_OUT

    def answered(self, xid: int) -> bool:
        """A chunk has come. False if it was not requested, or not any more; otherwise :meth:`applied` or
        :meth:`restart` must follow.
        """
        if not self._waits or xid != _CHANGES_XID + self._number:
            return False
        self._waits, self._applying = False, True
        return True

    def applied(self, head: flow_changes.Chunk, now: float) -> list[Message]:
        """The chunk was applied. The next one is requested, if there are more."""
        self._applying, self._generation = False, head.generation
        if ChunkFlags.MORE in head.flags:
            return [self._ask(now)]
        self._round_began = None
        return []

    def restart(self) -> None:
        """A chunk could not be applied: everything is requested again."""
        self._applying, self._generation, self._round_began = False, 0, None

    # One port

    def request_progress(self, port: int, interval: float, now: float) -> list[Message]:
        """Request the flow records of a port, unless that was done within the ``interval``: only of flows
        that may have made progress.
        """
        if now - self._ports[port].progress_requested_at < interval:
            return []
        self._ports[port].progress_requested_at = now
        self._asked.add(port)
        message = records.request(self._datapath, _RECENT_MS, port)
        message.set_xid(_PROGRESS_XID + port)
        return [message]

    def add(
        self, xid: int, part: Sequence[records.FlowRecord], more: bool
    ) -> tuple[int, list[records.FlowRecord]] | None:
        """Store a part of a reply. Returns the whole reply with its last part: the requested port and the
        records. Returns None before, and for a reply that was not requested. Raises :class:`TooMuch`.
        """
        port = xid - _PROGRESS_XID
        if port not in self._asked:
            return None
        whole = self._partial.setdefault(port, [])
        whole += part
        if len(whole) > MOST_RECORDS:
            raise TooMuch(f"more than {MOST_RECORDS:,} flow records of a port")
        if more:
            return None
        self._asked.discard(port)
        return port, self._partial.pop(port)
