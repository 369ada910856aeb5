"""Errors that switches send: counted, logged at a limited rate, and acted upon where that helps."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel import far_queues, port_mode, queue_law, window_law
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.model import dpid_text
from fairq_ryu.openflow import refusal


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
        if link is not None and port_mode.is_refused(message):
            if self.windows.mode_changes.refused(link, time.monotonic()) and self.windows.modes.observes:
                self.log.warning(
                    "agent of bridge %s: it refuses to observe a port without acting on it (see its log): "
                    "observed ports have no windows and no counts",
                    dpid_text(link.dpid),
                )
            return
        if link is not None and far_queues.is_unlisted(message):
            link.far_queues.unlisted()
        far = None if link is None else far_queues.refused(message)
        if link is not None and far is not None:
            link.far_queues.refused(far)
            self.log.warning("agent of bridge %s: far queues: %s", dpid_text(link.dpid), far)
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
