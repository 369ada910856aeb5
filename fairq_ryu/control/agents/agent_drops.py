"""What one agent is told about full queues: thresholds, and how dropped packets are recovered."""

from __future__ import annotations

from typing import Any

from fairq_ryu.channel import congestion, recovery
from fairq_ryu.channel.recovery import SetRecovery
from fairq_ryu.control.agents.agent_port import AgentPorts
from fairq_ryu.model import Thresholds
from fairq_ryu.openflow.pipeline import Message

# A lease is renewed when this part of it has passed, as those of rules are.
_RENEW_PART = 0.25


class AgentDrops:
    """Returns messages and sends nothing. Times in seconds."""

    def __init__(self, datapath: Any, ports: AgentPorts, reported: bool) -> None:
        """``reported``: whether the agent's kernel reports dropped packets. Otherwise none are asked for."""
        self._datapath, self._ports, self._reported = datapath, ports, reported

    def set_thresholds(self, number: int, wanted: Thresholds | None) -> list[Message]:
        """Set the thresholds of a port, unless they are set already. None leaves them as they are."""
        if wanted is None:
            return []
        if not self._reported:
            wanted = wanted._replace(drops=False)
        port = self._ports[number]
        if port.thresholds == wanted:
            return []
        port.thresholds = wanted
        return [congestion.set_thresholds(self._datapath, number, wanted)]

    def recovers(self, number: int) -> bool:
        """Whether the agent was told to recover the losses of a port."""
        port = self._ports.get(number)
        return port is not None and port.recovery is not None

    def set_recovery(self, wanted: SetRecovery, now: float) -> list[Message]:
        """Let the agent recover the losses of a port, or end that (``flags`` 0). What is set already is sent
        again only to renew its lease.
        """
        port = self._ports[wanted.port]
        if not self._reported or (port.recovery is None and not wanted.flags):
            return []
        if port.recovery == wanted and now - port.recovery_sent_at < _RENEW_PART * wanted.lease:
            return []
        port.recovery, port.recovery_sent_at = wanted if wanted.flags else None, now
        return [recovery.set_recovery(self._datapath, wanted)]
