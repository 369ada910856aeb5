"""Errors that switches send: counted, logged at a limited rate, and acted upon where that helps."""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import (
    congestion,
    deadlines,
    flow_changes,
    oxm,
    port_mode,
    port_settings,
    queue_law,
    segment_copies,
    segment_counts,
    window_law,
)
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.model import dpid_text
from fairq_ryu.openflow import refusal

# The header of a FlowMod and its cookie.
_COOKIE = struct.Struct("!8xQ")


@dataclass(eq=False)
class Refusals:
    """``warn`` logs a line about a switch (its name and the line), at a limited rate."""

    fabric: FabricController
    windows: WindowController
    counts: Counts
    log: logging.Logger
    warn: Callable[[str, str], None]

    def refused(self, message: Any) -> None:
        """A switch has refused a message (Ryu's ``OFPErrorMsg``)."""
        dpid = message.datapath.id or 0
        meter = message.type == ofp.OFPET_METER_MOD_FAILED
        if self.fabric.copy_meters.refused(dpid, meter):
            self.log.info(
                "switch %s has no meters for copies to the controller: ports have no shares of them",
                dpid_text(dpid),
            )
        if meter:
            return
        link = self.windows.link_of(message.datapath)
        self.counts.refused["bridge" if link is None else "agent"] += 1
        ours = message.type == ofp.OFPET_EXPERIMENTER and message.experimenter == oxm.EXPERIMENTER_ID
        if link is not None and ours and message.exp_type == congestion.ERROR_NO_DROPS:
            link.drops.refused()
            self.log.warning(
                "agent of bridge %s: its kernel does not report dropped packets: none are recovered",
                dpid_text(link.dpid),
            )
            return
        lack = None if link is None else self._lack(link, message)
        if link is not None and lack is not None:
            if lack:
                self.log.warning("agent of bridge %s: %s", dpid_text(link.dpid), lack)
            return
        queue = None if link is None else queue_law.refused_law(message)
        if link is not None and queue is not None:
            line = self.windows.queue_laws.refused(link, queue)
            if line:
                self.log.warning("agent of bridge %s: %s", dpid_text(link.dpid), line)
            return
        law = None if link is None else window_law.refused_law(message)
        if link is not None and law is not None:
            # Further errors about a law that was refused already are not logged.
            first = self.windows.law_refused(link, law, time.monotonic())
            if first:
                where = f"on port {law.law}" if law.law else "by laws of the switch"
                self.log.warning(
                    "agent of bridge %s: no windows %s: %s", dpid_text(link.dpid), where, law.reason
                )
            if first is not None:
                return
        who = f"bridge {dpid_text(dpid)}" if link is None else f"agent of bridge {dpid_text(link.dpid)}"
        self.warn(who, f"{who} refused {refusal.described(message)}")

    def _lack(self, link: AgentLink, message: Any) -> str | None:
        """What an agent of an earlier version does not know, and what that means; "" if this was logged or
        does not matter. The controller does without it from now on. None: the refusal is about none of that.
        """
        earlier = "it is of an earlier version"
        if segment_counts.is_unknown(message):
            link.injects = False
            return f"{earlier}: the controller sends window updates and recovers losses for it"
        if flow_changes.is_unknown(message):
            link.flow_records.changes_unknown()
            return f"{earlier}: it reports all its flows every time, not what has changed"
        if port_settings.is_unknown(message):
            return (
                f"{earlier} and does not tell the settings of ports: all count as trunks, without VLANs, "
                "bonds and mirrors"
            )
        if deadlines.is_unknown(message):
            new, link.knows_deadlines = link.knows_deadlines, False
            lack = (
                f"{earlier}: new connections take turns there in order of arrival, whatever their deadlines"
            )
            return lack if new else ""
        if _refuses_copies(message):
            new, link.copies = link.copies, False
            lack = f"{earlier}: connections are known from its records, a second after they begin"
            return lack if new else ""
        if port_mode.is_refused(message):
            new = self.windows.mode_changes.refused(link, time.monotonic())
            lack = (
                f"it cannot observe ports without acting on them ({earlier}): these ports have no windows "
                "and no counts"
            )
            return lack if new and self.windows.modes.observes else ""
        return None


def _refuses_copies(message: Any) -> bool:
    """Whether an agent has refused a rule that asks for copies of segments: the error contains its begin."""
    data = bytes(message.data or b"")
    if len(data) < _COOKIE.size or data[1] != ofp.OFPT_FLOW_MOD:
        return False
    return bool(_COOKIE.unpack_from(data)[0] == segment_copies.COOKIE_COPY)
