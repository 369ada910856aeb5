"""Ports as their owner has set them up: where frames of a VLAN come in and leave."""

from fairq_ryu.fabric.topology.ports import UNTAGGED, LogicalPorts, blocks, split
from fairq_ryu.model import PortKey
from fairq_ryu.port_settings import IN_PLACE_OF, OTHER_VLANS, PortSettings, VlanMode

P1, P2, P3, P4, P5, P6 = PORTS = [PortKey(1, number) for number in range(1, 7)]
SETTINGS = {
    1: PortSettings(VlanMode.ACCESS, 10),
    2: PortSettings(VlanMode.ACCESS, 20),
    3: PortSettings(trunks=((10, 10), (20, 20))),
    4: PortSettings(VlanMode.NATIVE_UNTAGGED, 10),
    6: PortSettings(mirror=True),
}


def made(settings=SETTINGS, down=()):
    ports = LogicalPorts(lambda port: port not in down)
    ports.replace(1, settings)
    return ports


def flooded(ports, vlan):
    return [list(part) for part in split(sorted(ports.flooded(PORTS, vlan)))]


def test_a_frame_is_flooded_to_the_ports_of_its_vlan():
    ports = made()
    assert flooded(ports, 10) == [[3, 5], [1, 4]]
    assert flooded(ports, 20) == [[3, 4, 5], [2]]
    assert flooded(ports, 0) == [[5], []]
    assert flooded(ports, 30) == flooded(ports, OTHER_VLANS) == [[4, 5], []]
    assert ports.exit_to(P1, 10) == 1 + UNTAGGED and ports.exit_to(P3, 10) == 3


def test_which_frames_come_in():
    ports = made()
    assert [ports.entry(port) for port in PORTS] == [
        (10,),
        (20,),
        (-1, 10 << 16 | 0xFFF, 20 << 16 | 0xFFF),
        (10, 0),
        None,
        (-1,),
    ]


def test_vlans_with_rules_of_their_own():
    ports = made()
    assert ports.aware and ports.vlans([]) == [10, 20]
    assert ports.vlans([0, 30]) == [10, 20, 30]  # ports 1 to 3 do not carry it
    assert not made({6: PortSettings(mirror=True)}).aware
    many = made({1: PortSettings(trunks=((1, 4000),))})
    assert many.vlans([]) == [] and many.vlans([7]) == [7]
    assert made({}).vlans([7]) == []


def test_the_ports_whose_settings_have_changed():
    ports = made()
    assert ports.replace(1, SETTINGS) == []
    assert ports.replace(1, {**SETTINGS, 1: PortSettings(VlanMode.ACCESS, 11)}) == [P1]
    assert ports.replace(1, {}) == [P1, P2, P3, P4, P6]
    assert ports.known(1) and not ports.known(2)


def test_a_bond_is_one_port():
    bond = {2: PortSettings(bond="b"), 3: PortSettings(bond="b"), 4: PortSettings(bond="b", standby=True)}
    ports = made(bond)
    assert [ports.exit(port) for port in PORTS] == [P1, P2, P2, P2, P5, P6]
    assert flooded(ports, 0) == [[1, 2, 5, 6], []]
    assert ports.members(P3) == [P2, P3, P4] and ports.has_bonds
    assert ports.entry(P4) == (-1,) and ports.entry(P2) is None
    assert ports.entry(P3) == (0, 0, 2 + IN_PLACE_OF)
    failed = made(bond, down=[P2])
    assert failed.exit(P2) == P3 and flooded(failed, 0) == [[1, 3, 5, 6], []]
    assert failed.entry(P2) == (0, 0, 3 + IN_PLACE_OF) and failed.entry(P3) is None
    assert made(bond, down=[P2, P3]).exit(P4) == P2  # none is up


def test_the_exit_of_a_bond_is_a_member_to_which_frames_are_flooded():
    """Another one has just come up."""
    waiting = {P2}
    ports = LogicalPorts(lambda _: True, lambda port: port not in waiting)
    ports.replace(1, {2: PortSettings(bond="b"), 3: PortSettings(bond="b")})
    assert ports.exit(P2) == P3
    waiting.clear()
    assert ports.exit(P2) == P2


def test_a_blocked_port_is_not_used():
    ports = made({})
    assert ports.block([P2]) and not ports.block([P2])
    assert flooded(ports, 0) == [[1, 3, 4, 5, 6], []]
    assert ports.entry(P2) == (-1,) and not ports.usable(P2)
    assert ports.block([]) and ports.usable(P2)


def test_ranges_as_blocks_cover_exactly_their_vlans():
    for ranges in ([(1, 4095)], [(10, 10), (20, 29)], [(7, 130)], [(4094, 4095)]):
        wanted = [vlan for first, last in ranges for vlan in range(first, last + 1)]
        found = []
        for block in blocks(ranges):
            value, mask = block >> 16, block & 0xFFFF
            assert value & mask == value
            found += [vlan for vlan in range(4096) if vlan & mask == value]
        assert sorted(found) == wanted
    assert len(blocks([(1, 4095)])) == 12
