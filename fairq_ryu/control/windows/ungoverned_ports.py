"""Ports whose queue is not governed, because its size or its length is not known: each is logged once."""

from __future__ import annotations

import logging

from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.control.windows.part import WindowPart
from fairq_ryu.model import PortKey


class UngovernedPorts(WindowPart):
    """Logs each such port once. It keeps at most one entry for each port of all agents."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._logged: set[PortKey] = set()

    def not_governed(self, key: PortKey, record: QueueDepth) -> None:
        """The queue of such a port was read. Most ports have no queue, and cost no more than this."""
        if key in self._logged or (record.measured and not record.backlog):
            return
        self._logged.add(key)
        if not record.measured:
            self._log.warning(
                "port %s has no queue that can be measured: left alone. On its host, fairq doctor --bridge "
                "has the reason and the remedy",
                key,
            )
        else:
            self._log.warning(
                "port %s has a queue, but its discipline does not say how many bytes it holds: left alone. "
                "Give the port a bfifo",
                key,
            )

    def port_removed(self, key: PortKey) -> None:
        """It is logged again if it comes back."""
        self._logged.discard(key)

    def switches(self) -> set[int]:
        """The dpids of the switches that have such ports."""
        return {key.dpid for key in self._logged}

    def forget_switch(self, dpid: int) -> None:
        """A switch is forgotten."""
        self._logged = {key for key in self._logged if key.dpid != dpid}
