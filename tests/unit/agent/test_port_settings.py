"""The settings of ports from rows of Open vSwitch's database, with the defaults of ovs-vswitchd."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent.port_settings import read
from fairq_ryu.port_settings import PortSettings, VlanMode


def row(**columns: Any) -> SimpleNamespace:
    return SimpleNamespace(uuid=object(), **columns)


def interface(number: int, current: list[bool] | None = None) -> SimpleNamespace:
    mac = f"02:00:00:00:00:{number:02x}"
    return row(ofport=[number], mac_in_use=[mac], lacp_current=current or [])


def port(*interfaces: SimpleNamespace, **columns: Any) -> SimpleNamespace:
    plain: dict[str, Any] = {"tag": [], "trunks": [], "vlan_mode": [], "lacp": [], "bond_active_slave": []}
    return row(interfaces=list(interfaces), **{"name": "p", "other_config": {}, **plain, **columns})


def settings(*ports: SimpleNamespace, mirrors: Any = ()) -> dict[int, PortSettings]:
    return read(row(ports=list(ports), mirrors=list(mirrors)))


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ({}, PortSettings()),
        ({"tag": [10]}, PortSettings(VlanMode.ACCESS, 10)),
        ({"tag": [10], "trunks": [5]}, PortSettings(VlanMode.ACCESS, 10)),
        ({"trunks": [20, 10, 21]}, PortSettings(trunks=((10, 10), (20, 21)))),
        ({"tag": [10], "vlan_mode": ["trunk"]}, PortSettings()),
        ({"tag": [7], "vlan_mode": ["native-tagged"]}, PortSettings(VlanMode.NATIVE_TAGGED, 7)),
        (
            {"tag": [7], "trunks": [8], "vlan_mode": ["native-untagged"]},
            PortSettings(VlanMode.NATIVE_UNTAGGED, 7, ((8, 8),)),
        ),
        ({"vlan_mode": ["access"]}, PortSettings(VlanMode.ACCESS)),
        ({"tag": [9], "vlan_mode": ["dot1q-tunnel"]}, PortSettings(VlanMode.ACCESS, 9)),
    ],
)
def test_vlans(columns, wanted):
    assert settings(port(interface(3), **columns)) == {3: wanted}


def test_without_lacp_a_bond_uses_its_active_member():
    bond = port(interface(1), interface(2), name="bond0", bond_active_slave=["02:00:00:00:00:02"])
    assert settings(bond) == {1: PortSettings(bond="bond0", standby=True), 2: PortSettings(bond="bond0")}
    undecided = port(interface(1), interface(2), name="bond0")
    assert not any(each.standby for each in settings(undecided).values())


def test_with_lacp_it_uses_those_that_have_negotiated_it():
    members = interface(1, [True]), interface(2, [False]), interface(3, [True])
    bond = port(*members, name="bond0", lacp=["active"], bond_active_slave=["02:00:00:00:00:03"])
    assert {number: each.standby for number, each in settings(bond).items()} == {1: False, 2: True, 3: False}


def test_the_output_of_a_mirror_and_reserved_numbers():
    output, local, failed = port(interface(1)), port(interface(65534)), port(interface(-1))
    found = settings(output, local, failed, mirrors=[row(output_port=[output])])
    assert found == {1: PortSettings(mirror=True), 0xFFFFFFFE: PortSettings()}


@pytest.mark.parametrize(
    ("note", "vlan"),
    [
        ({"network_type": "vlan", "segmentation_id": "100"}, 100),
        ({"network_type": "flat"}, 0),
        ({"network_type": "vxlan", "segmentation_id": "70001"}, 0),
        ({"network_type": "vlan", "segmentation_id": "70001"}, 0),
        ({"network_type": "vlan", "segmentation_id": "x"}, 0),
        ({"network_type": "vlan"}, 0),
    ],
)
def test_a_port_of_neutron_is_in_the_vlan_in_which_its_network_leaves_the_host(note, vlan):
    for columns in ({"tag": [3]}, {}):
        found = settings(port(interface(3), other_config=note, **columns))
        assert found == {3: PortSettings(VlanMode.ACCESS, vlan)} and found[3].untagged == vlan
    assert settings(port(interface(3), tag=[3], other_config={"net_uuid": "x"}))[3].untagged == 3
