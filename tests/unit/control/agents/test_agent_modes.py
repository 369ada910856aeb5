"""What an agent is told of the modes of its ports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fairq_ryu.channel import oxm, port_mode
from fairq_ryu.channel.port_mode import ACT, OBSERVE, PortWindows
from fairq_ryu.control.agents.agent_modes import AgentModes
from fairq_ryu.control.agents.agent_port import AgentPorts
from fairq_ryu.model import PortMode
from tests.support.fakes import FakeSwitch


def made() -> tuple[AgentModes, Any]:
    switch = FakeSwitch(oxm.agent_dpid(1))
    switch.ports = {4: SimpleNamespace(name=b"tap4\0\0")}
    return AgentModes(switch, AgentPorts(), "s1"), switch


def send(switch: Any, messages: list[Any]) -> None:
    for message in messages:
        switch.send_msg(message)


def told(switch: Any) -> list[tuple[int, int]]:
    return [
        tuple(port_mode.decode_set(message.data))
        for message in switch.sent
        if type(message).__name__ == "OFPExperimenter"
    ]


def test_an_agent_that_has_not_answered_is_told_nothing():
    modes, switch = made()
    send(switch, modes.begin(0.0))
    send(switch, modes.ensure(4, PortMode.OBSERVE))
    send(switch, modes.ensure(4, PortMode.ACT))
    assert told(switch) == []
    assert [type(message).__name__ for message in switch.sent] == ["OFPExperimenterStatsRequest"]
    assert modes.ports[4].name == "tap4"


def test_a_mode_is_sent_unless_the_agent_has_it():
    modes, switch = made()
    assert modes.reported([PortWindows(1, ACT, 0, 0, 0), PortWindows(2, OBSERVE, 0, 0, 0)])
    for port, mode in ((1, PortMode.ACT), (2, PortMode.OBSERVE), (2, PortMode.DISABLED)):
        send(switch, modes.ensure(port, mode))
    assert told(switch) == []
    for _ in range(2):
        send(switch, modes.ensure(1, PortMode.OBSERVE))
        send(switch, modes.ensure(2, PortMode.ACT))
        send(switch, modes.ensure(3, PortMode.OBSERVE))
    assert told(switch) == [(1, OBSERVE), (2, ACT), (3, OBSERVE)]


def test_the_agent_observes_a_disabled_port_so_that_it_writes_nothing_there():
    modes, switch = made()
    modes.reported([PortWindows(1, ACT, 0, 0, 0)])
    for mode in (PortMode.DISABLED, PortMode.OBSERVE, PortMode.DISABLED, PortMode.ACT):
        send(switch, modes.ensure(1, mode))
    assert told(switch) == [(1, OBSERVE), (1, ACT)]


def test_later_reports_say_nothing_about_modes_because_a_change_may_be_under_way():
    modes, switch = made()
    modes.reported([PortWindows(1, ACT, 0, 0, 0)])
    send(switch, modes.ensure(1, PortMode.OBSERVE))
    assert not modes.reported([PortWindows(1, ACT, 7, 5, 2)])
    send(switch, modes.ensure(1, PortMode.OBSERVE))
    assert told(switch) == [(1, OBSERVE)]
    assert modes.ports[1].counts == (1, ACT, 7, 5, 2)


def test_a_port_that_was_added_again_is_told_again():
    modes, switch = made()
    modes.reported([PortWindows(1, OBSERVE, 7, 0, 5)])
    del modes.ports[1]
    send(switch, modes.ensure(1, PortMode.OBSERVE))
    assert told(switch) == [(1, OBSERVE)]


def test_an_agent_that_refuses_is_not_asked_again():
    modes, switch = made()
    modes.reported([])
    assert modes.refused() and not modes.refused()
    send(switch, modes.ensure(1, PortMode.OBSERVE))
    send(switch, modes.request(0.0, 9.0))
    assert switch.sent == []


def test_counts_are_requested_once_in_an_interval():
    modes, switch = made()
    for now in (0.0, 0.5, 0.99, 1.0, 1.5):
        send(switch, modes.request(1.0, now))
    assert len(switch.sent) == 2
