"""Confirmation that discovery frames had time to arrive: a port that received none leads to a host.

A sent frame counts only when the bridge at the other end must have passed it to the controller:

1. It was sent while all bridges had their rules, which send discovery frames to the controller.
2. All bridges confirm a barrier: the frame has left.
3. All bridges confirm another barrier: frames that had arrived by then have been passed to the controller.

One confirmation is under way at a time. Bounded: one entry a port.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fairq_ryu.control.sender import Sender
from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.model import PortKey
from fairq_ryu.openflow.pipeline import Datapath


class LinkProbes:
    """Reports to ``topology`` the ports through which discovery frames were sent, when that is confirmed."""

    def __init__(self, bridges: Mapping[int, Datapath], topology: Topology, sender: Sender) -> None:
        self._bridges = bridges
        self._topology = topology
        self._sender = sender
        self.changes = 0
        """of the bridges that are ready"""
        self._ready: set[int] = set()  # bridges whose own rules are installed
        self._new: set[int] = set()  # those of them that had none before, not told to the topology yet
        self._sent: set[PortKey] = set()
        self._sent_in = 0  # the topology's sweep then
        self._confirming = False

    def bridge_connected(self, datapath: Any, new: bool) -> None:
        """The rules of a bridge were sent: it is ready when it has confirmed them. ``new``: it had none of
        ours, and forwards by itself until then.
        """
        dpid = datapath.id
        self._ready.discard(dpid)
        self.changes += 1

        def ready() -> None:
            if self._bridges.get(dpid) is datapath:
                self._ready.add(dpid)
                self.changes += 1
                if new:
                    self._new.add(dpid)

        self._sender.after_barriers([datapath], ready, math.inf)

    def tell_new(self, now: float) -> None:
        """Tell the topology which new bridges have confirmed their rules."""
        while self._new:
            self._topology.governed(self._new.pop(), now)

    def is_ready(self, dpid: int) -> bool:
        """Whether a bridge has confirmed its rules."""
        return dpid in self._ready

    def bridge_disconnected(self, dpid: int) -> None:
        """A bridge has disconnected."""
        self._ready.discard(dpid)
        self.changes += 1
        self._new.discard(dpid)

    def frame_sent(self, port: PortKey) -> None:
        """A discovery frame leaves by a port."""
        if self._sent_in != self._topology.sweep:
            self._sent.clear()
            self._sent_in = self._topology.sweep
        if len(self._ready) == len(self._bridges):
            self._sent.add(port)
            self._topology.frame_sent()

    def confirm(self) -> None:
        """Start a confirmation if the topology waits for one and none is under way."""
        if not self._topology.waits:
            self._sent.clear()
        elif self._sent and not self._confirming:
            self._send_barriers()

    def _send_barriers(self) -> None:
        ports, self._sent, sweep = self._sent, set(), self._sent_in
        bridges = dict(self._bridges)
        self._confirming = True

        def connected() -> list[Datapath]:
            return [each for dpid, each in bridges.items() if self._bridges.get(dpid) is each]

        def confirmed() -> None:
            self._confirming = False
            stayed = {each.id for each in connected()}
            self._topology.probed([port for port in ports if port.dpid in stayed], sweep)

        def sent() -> None:
            self._sender.after_barriers(connected(), confirmed, math.inf)

        self._sender.after_barriers(connected(), sent, math.inf)
