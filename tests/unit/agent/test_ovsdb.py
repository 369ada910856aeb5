"""What the agent makes of Open vSwitch's database; rows as its IDL has them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from fairq_ryu.agent import ovsdb


def row(**columns: Any) -> SimpleNamespace:
    return SimpleNamespace(uuid=object(), **columns)


def port(number: int, kind: str = "", ifindex: int | None = None) -> SimpleNamespace:
    interface = row(
        name=f"p{number}",
        type=kind,
        ofport=[number],
        ifindex=[number + 100] if ifindex is None else [ifindex],
        mac_in_use=["02:00:00:00:00:01"],
        link_state=["up"],
        admin_state=["up"],
        link_speed=[10**9],
    )
    return row(interfaces=[interface])


def view(ports: list[SimpleNamespace], mirrors: list[SimpleNamespace]) -> ovsdb.BridgeView:
    bridge = row(name="br0", ports=ports, datapath_id=["1f"], datapath_type="netdev", mirrors=mirrors)
    idl = SimpleNamespace(tables={"Bridge": SimpleNamespace(rows={bridge.uuid: bridge})})
    found = ovsdb._view(idl, "br0")
    assert found is not None
    return found


def test_ports_of_a_bridge():
    found = view([port(2), port(1), port(3, "patch"), port(4, ifindex=0)], [])
    assert [each.name for each in found.ports] == ["p1", "p2"]
    assert found.dpid == 0x1F
    assert [name for name, _ in found.unwatched] == ["p3", "p4"]


def test_the_output_of_a_mirror_is_not_watched():
    ports = [port(1), port(2), port(3)]
    found = view(ports, [row(output_port=[ports[2]]), row(output_port=[])])
    assert [each.name for each in found.ports] == ["p1", "p2"]
    assert found.unwatched == (("p3", "a mirror sends its copies there"),)
