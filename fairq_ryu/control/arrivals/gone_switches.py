"""Forgets switches that are not known any more.

A bridge of the fabric that disconnects is expected back, and so is every switch that still has connections:
their windows are installed again then. Of all others nothing is kept: any peer can say that it is the agent
of any bridge, as often as it likes.
"""

from __future__ import annotations

from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.fabric.flows.table import FlowTable

INTERVAL = 1.0
"""Seconds between two looks."""


class GoneSwitches:
    """What of the controller keeps anything by switch: the windows, the flows, and the settings of ports."""

    def __init__(self, fabric: FabricController, windows: WindowController, flows: FlowTable) -> None:
        self._fabric, self._windows, self._flows = fabric, windows, flows

    def kept(self) -> set[int]:
        """The dpids of which anything is kept and that are not known."""
        kept = self._windows.switches() | self._flows.switches() | self._fabric.logical_ports.bridges()
        return kept - set(self._windows.inventory.known)

    def forget(self) -> None:
        """Forget switches that are not known, unless they have connections."""
        for dpid in self.kept():
            if not self._windows.busy(dpid) and not self._flows.has_flows(dpid):
                self._forget(dpid)

    def taken_over(self, dpid: int) -> None:
        """Another controller owns a bridge from now on, and its connections have been handed over."""
        if self._fabric.topology.knows(dpid):
            self._fabric.bridge_forgotten(dpid)
        self._forget(dpid)

    def _forget(self, dpid: int) -> None:
        self._windows.forget_switch(dpid)
        self._flows.forget_switch(dpid)
        self._fabric.settings_forgotten(dpid)
