"""A controller's record of an agent whose queues have limits."""

from fairq_ryu.channel import oxm
from fairq_ryu.channel.description import Description
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.control.agents.agent_link import AgentLink
from tests.support.fakes import FakeSwitch


def agent_link(*limits: int) -> AgentLink:
    made = AgentLink(FakeSwitch(oxm.agent_dpid(5)), Description("s5"))
    for n, limit in enumerate(limits, 1):
        made.ports[n].depth = QueueDepth(n, 0, 0, 0, limit, 0, 0, 0, 0)
    return made
