"""Which change of far queues an answer of the agent acknowledges, and which an error is about."""

from __future__ import annotations

from ryu.lib import hub

from fairq_ryu.channel import oxm
from fairq_ryu.channel.far_queues import FarQueueState
from fairq_ryu.control.agents.agent_far_queues import AgentFarQueues
from fairq_ryu.far_queue import FarQueue
from tests.support.fakes import FakeSwitch

STATE = FarQueueState(FarQueue("eth0"), True, 1)


def agent() -> AgentFarQueues:
    return AgentFarQueues(FakeSwitch(oxm.agent_dpid(1)))


def test_a_change_is_acknowledged_by_its_own_answer():
    far = agent()
    far.request()
    assert [type(message).__name__ for message in far.tell({})] == [
        "OFPExperimenter",
        "OFPExperimenterStatsRequest",
    ]
    number = far.asked
    far.reported([], more=False)
    assert not far.acknowledged(number, 0.001), "the answer to the request before"
    far.reported([STATE], more=True)
    assert not far.acknowledged(number, 0.001) and far.states == []
    far.reported([], more=False)
    assert far.acknowledged(number, 0.001) and far.states == [STATE]
    assert far.refusal(number) is None


def test_an_error_is_about_the_change_whose_answer_comes_next():
    far = agent()
    far.tell({})
    first = far.asked
    far.tell({})
    second = far.asked
    far.reported([STATE], more=False)
    far.refused("no room")
    far.reported([STATE], more=False)
    assert far.acknowledged(second, 0.001)
    assert (far.refusal(first), far.refusal(second)) == (None, "no room")


def test_a_request_that_is_refused_is_no_longer_waited_for():
    far = agent()
    far.tell({})
    far.unlisted()
    assert far.acknowledged(far.asked, 0.001)
    assert far.refusal(far.asked) == "the agent does not list far queues"
    far.tell({})
    far.reported([STATE], more=False)
    assert far.acknowledged(far.asked, 0.001) and far.refusal(far.asked) is None


def test_somebody_waits_until_the_answer_comes():
    far = agent()
    far.tell({})
    hub.spawn_after(0.01, far.reported, [STATE], False)
    assert far.acknowledged(far.asked, 60.0)
