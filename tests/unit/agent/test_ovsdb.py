"""What the agent makes of Open vSwitch's database; rows as its IDL has them."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent import ovsdb
from fairq_ryu.agent.watched_ports import WindowDevice, joined_bridges
from fairq_ryu.errors import UserError
from fairq_ryu.port_settings import PortSettings, VlanMode

DELIVERS = "it hands packets to this machine, without a queue"
SHARED = "they have one network device: which of them a packet leaves by is not known there"


def row(**columns: Any) -> SimpleNamespace:
    return SimpleNamespace(uuid=object(), **columns)


def interface(number: int, kind: str = "", ifindex: int | None = None, **columns: Any) -> SimpleNamespace:
    about = {
        "name": f"p{number}",
        "type": kind,
        "ofport": [number],
        "ifindex": [number + 100] if ifindex is None else [ifindex] if ifindex else [],
        "mac_in_use": ["02:00:00:00:00:01"],
        "link_state": ["up"],
        "admin_state": ["up"],
        "link_speed": [10**9],
        "status": {"driver_name": "veth"},
        "lacp_current": [],
        "options": {},
        "ingress_policing_rate": 0,
        "ingress_policing_kpkts_rate": 0,
    }
    return row(**about | columns)


def port(number: int, kind: str = "", ifindex: int | None = None, **columns: Any) -> SimpleNamespace:
    return bond(f"p{number}", interface(number, kind, ifindex, **columns))


def bond(name: str, *members: SimpleNamespace) -> SimpleNamespace:
    about: dict[str, Any] = {
        "tag": [],
        "trunks": [],
        "vlan_mode": [],
        "lacp": [],
        "bond_active_slave": [],
        "other_config": {},
    }
    return row(name=name, interfaces=list(members), **about)


def view(
    ports: list[SimpleNamespace],
    mirrors: list[SimpleNamespace] | None = None,
    others: list[SimpleNamespace] | None = None,
) -> ovsdb.BridgeView:
    """``others``: interfaces of other bridges."""
    bridge = row(name="br0", ports=ports, datapath_id=["1f"], datapath_type="netdev", mirrors=mirrors or [])
    interfaces = [each for port in ports for each in port.interfaces] + (others or [])
    idl = SimpleNamespace(
        tables={
            "Bridge": SimpleNamespace(rows={bridge.uuid: bridge}),
            "Interface": SimpleNamespace(rows={each.uuid: each for each in interfaces}),
        }
    )
    found = ovsdb._view(idl, "br0")
    assert found is not None
    return found


def test_ports_of_a_bridge():
    found = view([port(2), port(1), port(3, "patch"), port(4, ifindex=0), port(5, ofport=[-1])])
    assert [each.name for each in found.ports] == ["p1", "p2"]
    assert found.dpid == 0x1F
    assert found.devices == ()
    assert dict(found.unwatched) == {
        "p3": "a patch port is no network device: its flows are counted at real ports",
        "p4": "it is no network device of this host",
    }


def test_the_output_of_a_mirror_is_not_watched():
    ports = [port(1), port(2), port(3), port(4, "internal")]
    found = view(ports, [row(output_port=[ports[2]]), row(output_port=[]), row(output_port=[ports[3]])])
    assert [each.name for each in found.ports] == ["p1", "p2"]
    copies = "a mirror sends its copies there"
    assert (found.unwatched, found.devices) == ((("p3", copies), ("p4", copies)), ())
    assert [number for number, each in found.settings.items() if each.mirror] == [3, 4]


def test_each_member_of_a_bond_is_a_port():
    found = view([bond("bond0", interface(1), interface(2)), port(3)])
    assert [(each.ofport, each.ifindex) for each in found.ports] == [(1, 101), (2, 102), (3, 103)]


def test_internal_ports_are_watched_for_windows_only():
    """Their packets are at tc ingress; the bridge's own port has a number that is no port's."""
    found = view([port(1), port(65534, "internal", 7, name="br0"), port(2, "internal", 8)])
    assert [each.name for each in found.ports] == ["p1"]
    assert found.devices == (
        WindowDevice(7, ("br0",), True, DELIVERS, (0xFFFFFFFE,)),
        WindowDevice(8, ("p2",), True, DELIVERS, (2,)),
    )
    assert found.unwatched == ()


def test_an_internal_port_elsewhere_is_not_watched():
    """Somebody has moved it to another network namespace."""
    found = view([port(1, "internal", 0)])
    assert (found.devices, found.unwatched) == ((), (("p1", "it is no network device of this host"),))


def test_ports_with_the_same_device_are_watched_once_for_windows_only():
    found = view([port(1), port(2, "vxlan", 40), port(3, "vxlan", 40), port(4, "vxlan", 41)])
    assert [each.name for each in found.ports] == ["p1", "p4"]
    assert found.devices == (WindowDevice(40, ("p2", "p3"), False, SHARED, (2, 3)),)


def test_the_last_port_of_a_device_has_it_for_itself():
    unconnected = port(3, "vxlan", 40, ofport=[-1])
    found = view([port(1), port(2, "vxlan", 40), unconnected])
    assert [each.name for each in found.ports] == ["p1", "p2"]
    assert found.devices == ()


def test_a_device_of_ports_of_two_bridges_is_not_watched():
    """The agent of the other bridge may run there: one would take the place of the other."""
    ports = [port(1), port(2, "vxlan", 40), port(3, "vxlan", 40)]
    found = view(ports, others=[interface(9, "vxlan", 40, name="far"), interface(8, "patch", 101)])
    assert [each.name for each in found.ports] == ["p1"]
    reason = "it has the same network device as far of another bridge"
    assert (found.devices, found.unwatched) == ((), (("p2", reason), ("p3", reason)))


def test_a_tunnel_of_the_userspace_datapath_is_not_watched():
    found = view([port(1), port(2, "geneve", 0)])
    reason = "geneve without a network device: its packets leave by another port, inside others"
    assert found.unwatched == (("p2", reason),)


def test_the_ports_that_open_vswitch_polices():
    ports = [
        port(1),
        port(2, ingress_policing_rate=1000),
        port(3, ingress_policing_kpkts_rate=5),
        port(4, "internal", ingress_policing_rate=1000),
    ]
    assert view(ports).policed == {102, 103}


@pytest.mark.parametrize(
    "kind",
    ["dpdk", "dpdkvhostuser", "dpdkvhostuserclient", "afxdp", "afxdp-nonpmd", "dummy", "of-a-later-version"],
)
def test_a_port_that_bypasses_the_kernel_is_not_watched(kind: str):
    """Whatever index it has: that of a real device for AF_XDP, an invented one for DPDK."""
    found = view([port(1), port(2, kind), port(3, kind, 101)], others=[interface(9, kind, 101)])
    reason = f"cannot be governed: {kind} ports bypass the kernel's egress"
    assert [each.name for each in found.ports] == ["p1"], "nobody shares its device"
    assert (found.devices, found.unwatched) == ((), (("p2", reason), ("p3", reason)))


@pytest.mark.parametrize("kind", ["", "system", "tap"])
def test_a_port_of_the_kernel_is_watched(kind: str):
    assert [each.ifindex for each in view([port(1, kind)]).ports] == [101]


def test_the_settings_are_those_of_all_ports():
    access, patch = port(1), port(2, "patch")
    access.tag = [10]
    assert view([access, patch]).settings == {
        1: PortSettings(VlanMode.ACCESS, 10),
        2: PortSettings(),
    }


def test_bridges_that_patch_ports_join():
    """Also by way of others, and only where each end names the other."""
    joints = {
        "br-int": {"int-ex": "ex-int", "int-tun": "tun-int", "int-lost": "nowhere"},
        "br-ex": {"ex-int": "int-ex"},
        "br-tun": {"tun-int": "int-tun", "tun-far": "far-tun"},
        "br-far": {"far-tun": "tun-far"},
        "br-one-way": {"one-way": "int-ex"},
        "br-alone": {},
    }
    rows = [
        row(name=name, ports=[port(1), *(patch(*ends) for ends in ports.items())])
        for name, ports in joints.items()
    ]
    joined = {"br-int", "br-ex", "br-tun", "br-far"}
    for name in joints:
        assert joined_bridges(rows, name) == (joined - {name} if name in joined else set())


def patch(name: str, peer: str) -> SimpleNamespace:
    return bond(name, interface(1, "patch", name=name, options={"peer": peer}))


class LateIdl:
    """A database that answers when it is told to."""

    change_seqno = 1

    def __init__(self) -> None:
        self.tables = {"Bridge": SimpleNamespace(rows={})}
        self.answers = threading.Event()

    def run(self) -> None:
        self.answers.wait()

    def has_ever_connected(self) -> bool:
        return True

    def wait(self, poller: Any) -> None:
        poller.immediate_wake()

    def close(self) -> None:
        pass


def test_an_answer_after_the_time_for_it_is_told_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent has ended then, and its event loop is closed."""
    idl, told = LateIdl(), []
    monkeypatch.setattr(ovsdb, "_connect", lambda remote: idl)
    watcher = ovsdb.BridgeWatcher("s1", told.append, remote="tcp:127.0.0.1:1")
    with pytest.raises(UserError, match="does not answer"):
        watcher.start(timeout=0.01)
    idl.answers.set()
    watcher._thread.join()
    assert told == [] and watcher._first_view.is_set()
