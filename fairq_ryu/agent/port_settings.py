"""The settings of the bridge's ports, from the rows of Open vSwitch's database.

The defaults are those of ovs-vswitchd: without a mode, a port with a tag is an access port and all others are
trunks. Bounded by the rows that there are.
"""

from __future__ import annotations

from typing import Any

from fairq_ryu.agent.watched_ports import first
from fairq_ryu.port_settings import LAST_VLAN, PortSettings, VlanMode, ranges_of

PORT_COLUMNS = [
    "name",
    "interfaces",
    "tag",
    "trunks",
    "vlan_mode",
    "lacp",
    "bond_active_slave",
    "other_config",
]
INTERFACE_COLUMNS = ["lacp_current"]
# OpenFlow 1.0 numbers, which the database has, above those of ports: LOCAL. OpenFlow 1.3 has other numbers.
_FIRST_RESERVED = 0xFF00
_LOCAL_OF_10, _LOCAL = 65534, 0xFFFFFFFE


def read(bridge: Any) -> dict[int, PortSettings]:
    """The settings of all ports of a bridge (a row of the table Bridge), by OpenFlow number."""
    mirrors = {output.uuid for mirror in bridge.mirrors for output in mirror.output_port}
    found: dict[int, PortSettings] = {}
    for port in bridge.ports:
        for interface in port.interfaces:
            ofport = first(interface.ofport)
            if ofport is None or ofport < 1 or _FIRST_RESERVED <= ofport != _LOCAL_OF_10:
                continue  # not (yet) part of the datapath
            number = _LOCAL if ofport == _LOCAL_OF_10 else int(ofport)
            found[number] = _settings(port, interface, port.uuid in mirrors)
    return found


def _settings(port: Any, interface: Any, mirror: bool) -> PortSettings:
    tag, wanted = first(port.tag), first(port.vlan_mode)
    mode = VlanMode.TRUNK if tag is None else VlanMode.ACCESS
    if wanted in tuple(VlanMode):
        mode = VlanMode(wanted)
    elif wanted is not None:
        mode = VlanMode.ACCESS  # dot1q-tunnel: its frames are in one VLAN, whatever tags they have
    network = _network_vlan(port)
    if network is not None:
        mode, tag = VlanMode.ACCESS, network
    bond = str(port.name) if len(port.interfaces) > 1 else ""
    return PortSettings(
        mode=mode,
        tag=0 if mode is VlanMode.TRUNK else int(tag or 0),
        trunks=() if mode is VlanMode.ACCESS else ranges_of(int(vlan) for vlan in port.trunks),
        bond=bond,
        standby=bool(bond) and not _in_use(port, interface),
        mirror=mirror,
    )


def _network_vlan(port: Any) -> int | None:
    """The VLAN of the network that a port belongs to, as OpenStack's Neutron notes it at the ports of its
    integration bridge; None: there is no note. Their tags have a meaning within that bridge only: frames of
    the network leave the host in this VLAN, by another bridge. 0: they leave without a tag, or in a tunnel.
    """
    kind = port.other_config.get("network_type")
    if kind is None:
        return None
    number = str(port.other_config.get("segmentation_id", ""))
    return int(number) if kind == "vlan" and number.isdecimal() and int(number) <= LAST_VLAN else 0


def _in_use(port: Any, interface: Any) -> bool:
    """Whether the bond uses this member. Without LACP only the active member is used: the switch at the other
    end sends copies of what is flooded to every member.
    """
    if first(port.lacp) in ("active", "passive"):
        return bool(first(interface.lacp_current))
    active = first(port.bond_active_slave)
    return active is None or str(active).lower() == str(first(interface.mac_in_use) or "").lower()
