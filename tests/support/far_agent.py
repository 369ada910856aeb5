"""An agent that answers what a controller says about far queues, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.far_table import FarTable
from fairq_ryu.channel import far_queues
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.control.agents.agent_link import AgentLink


class FarAgent:
    """Its ``ports`` are numbers by interface; ``table`` is what it begins with. It carries out what was sent
    to it before. ``silent``: it reads nothing, until later; ``leases`` has what was leased to it.
    """

    def __init__(self, link: AgentLink, ports: Mapping[str, int], table: FarTable) -> None:
        self.table, self._link, self._ports = table, link, ports
        self.silent = False
        self._unread: list[Any] = []
        self.leases: list[far_queues.RateLease] = []
        for name, number in ports.items():
            link.ports[number].name = name
        self._send = link.datapath.send_msg
        link.datapath.send_msg = self._sent
        for message in link.datapath.sent:
            self._receive(message)

    def _sent(self, message: Any, **options: Any) -> None:
        self._send(message, **options)
        self._unread.append(message)
        if not self.silent:
            self.speak()

    def speak(self) -> None:
        """It reads, and is not silent any more."""
        self.silent = False
        while self._unread:
            self._receive(self._unread.pop(0))

    def _receive(self, message: Any) -> None:
        number = getattr(message, "exp_type", None)
        if message.msg_type == ofp.OFPT_EXPERIMENTER and number == far_queues.EXP_TYPE_FAR_QUEUES:
            try:
                self.table.tell(far_queues.decode_set(message.data))
            except OpenFlowError as error:
                self._link.far_queues.refused(str(error))
        elif message.msg_type == ofp.OFPT_EXPERIMENTER and number == far_queues.EXP_TYPE_LEASE_FAR_RATES:
            self.leases.append(far_queues.decode_lease(message.data))
        elif number == far_queues.EXP_TYPE_FAR_QUEUES:
            states = self.table.states(self._ports)
            # In two parts, as a long answer.
            self._link.far_queues.reported(states[:1], more=True)
            self._link.far_queues.reported(states[1:], more=False)
