"""VLANs in the programs: the VLAN is part of a connection's key, whatever ports its segments leave by."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairq_ryu.channel import flow_records
from tests.switch import packets
from tests.switch.rig import Connection, Switch, lowered

SIZE = 6000
TEN = {"vlans": ((packets.VLAN, 10),)}


@pytest.fixture
def access(switch: Switch) -> Iterator[Switch]:
    """Port 2 is an access port of VLAN 10, all others are trunks."""
    switch.datapath.set_vlans({2: 10})
    yield switch
    switch.datapath.set_vlans({})


def small(connection: Connection, shape: dict[str, object]) -> bool:
    """Whether the window of its next ACK is lowered."""
    return connection.granted(1000, **shape) == lowered(1000, SIZE, 7, 1460) < 1000


@pytest.mark.parametrize("tci", [10, 0x6000 | 10])
def test_both_directions_have_one_key_at_a_trunk_and_at_an_access_port(access: Switch, tci: int) -> None:
    shape = {"vlans": ((packets.VLAN, tci),)}
    access.pool(2, SIZE)
    connection = Connection(access)
    connection.syn()  # leaves by the access port
    connection.syn_ack(**shape)  # leaves by a trunk
    connection.data()
    assert small(connection, shape)
    assert access.flow(connection.data_key._replace(vlan=10)) is not None
    assert access.flow(connection.data_key) is None


def test_a_port_that_leaves_its_vlan_has_frames_of_none(access: Switch) -> None:
    access.datapath.set_vlans({})
    connection = Connection(access).open()
    assert access.flow(connection.data_key) is not None
    access.datapath.set_vlans({2: 11})
    access.datapath.remove_port(2)
    access.datapath.add_port(access.ports[2])
    access.datapath.set_vlans({})
    again = Connection(access).open()
    assert access.flow(again.data_key) is not None


def test_the_same_connection_in_two_vlans_is_two(switch: Switch) -> None:
    shapes = [{"vlans": ((packets.VLAN, vlan),)} for vlan in (10, 20)]
    ten, twenty = (Connection(switch, shape=shape, sport=40_000) for shape in shapes)
    bare = Connection(switch, sport=40_000, client_scale=3)
    for connection in (ten, twenty, bare):
        connection.open()
        connection.data()
    assert switch.active(2) == 3
    switch.rule(twenty.ack_key, SIZE)
    assert [small(connection, {}) for connection in (ten, twenty, bare)] == [False, True, False]


def test_the_outer_tag_counts(switch: Switch) -> None:
    connection = Connection(switch, shape={"vlans": ((packets.QINQ, 30), (packets.VLAN, 10))}).open()
    assert connection.data_key.vlan == 30 and switch.flow(connection.data_key) is not None


def test_records_have_the_vlan(access: Switch) -> None:
    connection = Connection(access)
    connection.syn()
    connection.syn_ack(**TEN)
    parts = access.datapath.flow_records(0, list(access.ports.values()))
    found = [record.key for part in parts for record in flow_records.decode_reply(part)]
    key = connection.data_key._replace(vlan=10)
    assert sorted(found) == sorted([key, key.reversed])
    state = access.datapath.segment_state(key.reversed)
    assert state.found and state.port == 1
