"""The controller's end of the window channel: one handler for each message that agents send.

The dispatch tables at the end list the messages. To add one, write its module in ``fairq_ryu/channel``, and
its handler and one line of a table here. A handler decides nothing: it passes the decoded message to the
object that decides.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import (
    congestion,
    dropped_packet,
    far_queues,
    flow_changes,
    flow_records,
    hidden_queue,
    oxm,
    port_mode,
    port_settings,
    queue_depth,
    queue_law,
    segment_copies,
    segment_counts,
    segment_state,
    tenants,
    window_law,
)
from fairq_ryu.channel.dispatch import DispatchTable, ExperimenterMessage, MalformedBody, TooMuch
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.flows.record_tracking import RecordTracker
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.model import PortKey, SegmentState, dpid_text
from fairq_ryu.port_settings import PortSettings

COPIES = segment_copies.COOKIE_COPY
"""The cookie of the rules that copy segments: what they send is for :meth:`AgentMessages.segment_copy`."""


class Arrival(NamedTuple):
    """A message that has arrived from an agent. ``more``: further parts of the same reply follow; ``now`` in
    seconds.
    """

    to: AgentMessages
    link: AgentLink
    xid: int
    more: bool
    now: float


class AgentMessages:
    """Decodes what agents send and calls the handlers. ``records`` gets the flow records of all ports;
    ``on_copy`` the agent, the port by which a segment has left, the beginning of its frame, and the time.
    Malformed messages are counted and logged, and change nothing, except that a malformed reply ends its
    request, too.
    """

    def __init__(
        self,
        windows: WindowController,
        records: RecordTracker,
        on_copy: Callable[[AgentLink, int, bytes, float], None],
        counts: Counts,
        log: logging.Logger,
        on_port_settings: Callable[[int, Mapping[int, PortSettings]], None] = lambda _dpid, _settings: None,
    ) -> None:
        """``on_port_settings`` gets the bridge and the settings of all of its ports."""
        self.windows, self.records, self._on_copy = windows, records, on_copy
        self.on_port_settings = on_port_settings
        self._counts, self._log = counts, log

    def direct_reply(self, datapath: Any, reply: ExperimenterMessage) -> bool:
        """A multipart reply. Not from an agent: it is left to Ryu (False)."""
        link = self.windows.link_of(datapath)
        if link is None:
            return False
        self._handle(_REPLIES, link, reply, time.monotonic())
        return True

    def reply(self, message: Any, now: float) -> None:
        """A multipart reply that has taken Ryu's way (OFPExperimenterStatsReply)."""
        link, body = self.windows.link_of(message.datapath), message.body
        more = bool(message.flags & ofp.OFPMPF_REPLY_MORE)
        if link is not None:
            about = body.experimenter, body.exp_type, message.xid, more
            self._handle(_REPLIES, link, ExperimenterMessage(*about, bytes(body.data)), now)

    def notification(self, message: Any, now: float) -> None:
        """A message that the agent has sent without a request (Ryu's OFPExperimenter)."""
        link = self.windows.link_of(message.datapath)
        if link is not None:
            about = message.experimenter, message.exp_type, message.xid, False
            self._handle(_NOTIFICATIONS, link, ExperimenterMessage(*about, bytes(message.data)), now)

    def segment_copy(self, datapath: Any, number: int, data: bytes) -> bool:
        """A copied segment that is no event. Not from an agent: it is left to Ryu (False)."""
        link = self.windows.link_of(datapath)
        if link is None:
            return False
        self._counts.packet_ins["tcp"] += 1
        self._on_copy(link, number, data, time.monotonic())
        return True

    def packet_in(self, message: Any, now: float) -> None:
        """A PACKET_IN that is not from a bridge of the fabric: a dropped packet or a copied segment."""
        link = self.windows.link_of(message.datapath)
        dropped = None if link is None else dropped_packet.decode(message)
        copy = None if link is None else segment_copies.decode(message)
        if link is not None and dropped is not None:
            self._counts.packet_ins["loss"] += 1
            port = PortKey(link.dpid, dropped.port)
            self.windows.packet_dropped(port, dropped.frame, dropped.total_len, now)
        elif link is not None and copy is not None:
            self._counts.packet_ins["tcp"] += 1
            self._on_copy(link, copy.port, copy.frame, now)
        else:
            self._counts.packet_ins["other"] += 1

    def _handle(
        self, table: DispatchTable[Arrival, None], link: AgentLink, message: ExperimenterMessage, now: float
    ) -> None:
        """Call the handler of a message."""
        route = table.get(message.number) if message.experimenter == oxm.EXPERIMENTER_ID else None
        if route is None:
            return
        try:
            route(Arrival(self, link, message.xid, message.more, now), message.data)
        except TooMuch as error:
            self._log.error("agent of bridge %s: %s: its connection is ended", dpid_text(link.dpid), error)
            link.datapath.close()
        except MalformedBody as error:
            if route.incoming is queue_depth.REPLY and not message.more:
                # Otherwise the next request for queues would wait until this one times out.
                link.queue_reply_complete(now)
            self._counts.malformed += 1
            name = route.incoming.name
            self._log.warning("agent of bridge %s: malformed %s: %s", dpid_text(link.dpid), name, error)


# One handler for each message


def _queue_depths(arrival: Arrival, depths: list[queue_depth.QueueDepth]) -> None:
    if not arrival.more:
        arrival.link.queue_reply_complete(arrival.now)
    arrival.to.windows.queues_read(arrival.link, depths, arrival.now)


def _flow_records(arrival: Arrival, part: list[flow_records.FlowRecord]) -> None:
    whole = arrival.link.flow_records.add(arrival.xid, part, arrival.more)
    if whole is not None:
        arrival.to.windows.port_flows_reported(arrival.link, *whole, arrival.now)


def _flow_changes(arrival: Arrival, reply: flow_changes.Changes) -> None:
    arrival.to.records.changed(arrival.link, arrival.xid, reply, arrival.now)


def _segment_states(arrival: Arrival, states: list[SegmentState]) -> None:
    arrival.to.windows.recovery.segments(states, arrival.now)


def _segment_counts(arrival: Arrival, counts: segment_counts.SegmentCounts) -> None:
    arrival.to.windows.segments_counted(arrival.link, counts)


def _port_modes(arrival: Arrival, found: list[port_mode.PortWindows]) -> None:
    arrival.to.windows.mode_changes.reported(arrival.link, found, arrival.now)


def _hidden_queues(arrival: Arrival, found: list[hidden_queue.HiddenQueue]) -> None:
    arrival.to.windows.hidden_queues_reported(arrival.link, found)


def _law_states(arrival: Arrival, states: list[window_law.LawState]) -> None:
    arrival.to.windows.laws_reported(arrival.link, states, arrival.now)


def _queue_law_states(arrival: Arrival, states: list[queue_law.QueueLawState]) -> None:
    arrival.to.windows.queue_laws.reported(arrival.link, states)


def _far_queues(arrival: Arrival, part: list[far_queues.FarQueueState]) -> None:
    arrival.link.far_queues.reported(part, arrival.more)


def _tenant_states(arrival: Arrival, states: list[tenants.TenantState]) -> None:
    arrival.to.windows.tenants.reported(arrival.link, states, arrival.now)


def _port_settings(arrival: Arrival, part: port_settings.PortSettingsPart) -> None:
    whole = arrival.link.port_settings.add(part)
    if whole is not None:
        arrival.to.on_port_settings(arrival.link.dpid, whole)


def _congestion(arrival: Arrival, notice: congestion.CongestionNotice) -> None:
    arrival.to.windows.threshold_crossed(arrival.link, notice, arrival.now)


_REPLIES: DispatchTable[Arrival, None] = DispatchTable()
_REPLIES.add(queue_depth.REPLY, _queue_depths)
_REPLIES.add(flow_records.REPLY, _flow_records)
_REPLIES.add(flow_changes.REPLY, _flow_changes)
_REPLIES.add(segment_state.REPLY, _segment_states)
_REPLIES.add(window_law.REPLY, _law_states)
_REPLIES.add(queue_law.REPLY, _queue_law_states)
_REPLIES.add(segment_counts.REPLY, _segment_counts)
_REPLIES.add(port_mode.REPLY, _port_modes)
_REPLIES.add(far_queues.REPLY, _far_queues)
_REPLIES.add(tenants.REPLY, _tenant_states)
_REPLIES.add(hidden_queue.REPLY, _hidden_queues)

_NOTIFICATIONS: DispatchTable[Arrival, None] = DispatchTable()
_NOTIFICATIONS.add(congestion.NOTICE, _congestion)
_NOTIFICATIONS.add(port_settings.SETTINGS, _port_settings)
