"""Ports by switch, and those about which a decision is due."""

from fairq_ryu.fabric.topology.port_states import PortRole, PortStates
from fairq_ryu.model import PortKey


def test_ports_are_found_by_their_switch():
    ports = PortStates()
    for key in (PortKey(1, 9), PortKey(2, 1), PortKey(1, 2)):
        ports.add(key, up=True)
    assert ports.of_switch(1) == [PortKey(1, 2), PortKey(1, 9)] and ports.of_switch(3) == []
    assert {*ports.switches} == {1, 2} and PortKey(2, 1) in ports
    assert ports.remove(PortKey(2, 1)) and not ports.remove(PortKey(2, 1))
    assert {*ports.switches} == {1} and ports.of_switch(2) == [] and ports.get(PortKey(2, 1)) is None
    ports.add(PortKey(1, 2), up=False)
    assert not ports[PortKey(1, 2)].up and len(ports.of_switch(1)) == 2


def test_a_decision_is_due_until_the_role_is_known_or_the_port_is_gone():
    ports, decided, removed = PortStates(), PortKey(1, 1), PortKey(1, 2)
    for key in (decided, removed):
        ports.add(key, up=True)
        assert [*ports.deciding] == []
        ports.decide_later(key, at=5.0, after=2)
        assert [port for port, _ in ports.deciding] == [key]
        for port, state in ports.deciding:
            assert (state.decides_at, state.decides_after) == (5.0, 2)
            if port == decided:
                ports.decide(port, PortRole.LINK)
            else:
                ports.remove(port)
    assert [*ports.deciding] == []
    assert ports[decided].role is PortRole.LINK and ports[decided].decides_at is None
