"""The live state of the page: peaks of queues between two states."""

from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.rest.setup import Peaks
from tests.support.agent_link import agent_link


def read(agent: AgentLink, *peaks: int) -> None:
    for peak in peaks:
        agent.replace_reading(QueueDepth(1, 0, 10, peak, 1000, 0, 0, 0, 0), 0.0)


def shown(agent: AgentLink, peaks: Peaks, now: float) -> int:
    row = {"dpid": f"{5:016x}", "port": 1, "peak_bytes": agent.ports[1].depth.peak}
    return peaks.put({"ports": [row]}, now)["ports"][0]["peak_bytes"]


def test_the_live_state_has_the_longest_queue_since_the_previous_state():
    agent = agent_link()
    peaks = Peaks({5: agent})
    read(agent, 900, 50)
    assert shown(agent, peaks, 10.0) == 50  # there was no state before: the time of the 900 is unknown
    read(agent, 70, 300, 60)
    assert shown(agent, peaks, 10.5) == 300
    read(agent, 40)
    assert shown(agent, peaks, 11.0) == 40
    read(agent, 800, 20)
    assert shown(agent, peaks, 90.0) == 20
    agent.port_removed(1)
    assert agent.take_peak(1) == 0


def test_peaks_without_an_agent_stay_unknown():
    row = {"dpid": f"{7:016x}", "port": 1, "peak_bytes": None}
    assert Peaks({}).put({"ports": [row]}, 1.0) == {"ports": [row]}
    assert row["peak_bytes"] is None
