"""When the rules of an earlier controller are replaced.

They stay in force until the network is known again: the roles of all ports, and the settings of those ports
for which the earlier controller had rules. Agents tell the settings; a bridge without an agent is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from fairq_ryu.control.paths.forwarding_rules import ForwardingRules
from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.fabric.topology.ports import LogicalPorts
from fairq_ryu.model import dpid_text
from fairq_ryu.openflow.pipeline import Datapath

RECONNECT_TIME = 15.0
"""Within this many seconds all bridges have connected to a restarted controller: they try at least every 8 s.
"""


class TakeOver:
    """Whether all that must be known before is known. Times are in seconds of one clock."""

    def __init__(
        self,
        bridges: Mapping[int, Datapath],
        topology: Topology,
        ports: LogicalPorts,
        forwarding: ForwardingRules,
        log: logging.Logger,
    ) -> None:
        self._bridges, self._topology, self._ports = bridges, topology, ports
        self._forwarding, self._log = forwarding, log
        self._latest = 0.0  # the rules are replaced then, whatever is known
        self._settings_due: dict[int, float] = {}  # bridges without settings of ports: when that is logged

    def bridge_connected(self, dpid: int, keeps_rules: bool, now: float) -> None:
        """A bridge has connected; ``keeps_rules``: those of an earlier controller."""
        self._settings_due[dpid] = now + RECONNECT_TIME
        if keeps_rules:
            self._latest = now + RECONNECT_TIME

    def due(self, now: float) -> bool:
        """Whether the network is known, or has been waited for long enough."""
        return (self._topology.settled and self._settings_known) or now >= self._latest

    @property
    def _settings_known(self) -> bool:
        """Whether the settings of all ports are known that an earlier controller had rules for."""
        return all(
            self._ports.known(dpid) or not self._forwarding.has_entry_rules(dpid) for dpid in self._bridges
        )

    def log_missing_settings(self, now: float) -> None:
        """Log once each bridge whose settings of ports nobody has told."""
        for dpid in [dpid for dpid, due in self._settings_due.items() if due <= now]:
            del self._settings_due[dpid]
            if dpid in self._bridges and not self._ports.known(dpid):
                self._log.warning(
                    "bridge %s: no agent has told the settings of its ports: all count as trunks, without "
                    "VLANs, bonds and mirrors",
                    dpid_text(dpid),
                )
