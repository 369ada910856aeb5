"""How each interface of a bridge is watched: as a port of its own, for windows only, or not at all, and why.

The programs know packets by the network device that they leave by. So an interface is a port for them if it
has a network device for itself, with the queue in which its packets wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# Interfaces that hand packets to the stack of this machine: these packets are at tc ingress of their devices.
# At tc egress, and in a queue that somebody gave them, is what the machine sends into the bridge.
_DELIVERS = "internal"
_PATCH = "patch"
# Types that Open vSwitch implements as tunnels.
_TUNNELS = {
    *("bareudp", "erspan", "geneve", "gre", "gtpu", "ip6erspan", "ip6gre", "lisp", "srv6", "stt", "vxlan")
}
# Types whose packets leave by a network device of the kernel. Of all others (DPDK, vhost-user, AF_XDP) the
# kernel sees no packet, or has no device; Open vSwitch invents an index for some of them.
_OF_KERNEL = {"", "system", "tap", _DELIVERS, *_TUNNELS}
# The bridge's own port, as the database and OpenFlow 1.0 number it, and OpenFlow 1.3.
_LOCAL_OF_10, _LOCAL = 65534, 0xFFFFFFFE


@dataclass(frozen=True, slots=True)
class WindowDevice:
    """A network device on which only the windows of ACKs are lowered. It is no port for controllers: it has
    no queue of the bridge, or it belongs to several ports, whose ``names`` and OpenFlow numbers are here.
    ``delivers``: it hands packets to the stack of this machine.
    """

    ifindex: int
    names: tuple[str, ...]
    delivers: bool
    reason: str
    ofports: tuple[int, ...] = ()


def first(column: Any) -> Any:
    """The value of an optional column, which is a list of none or one; None if there is none."""
    if isinstance(column, list):
        return column[0] if column else None
    return column


def device_of(interface: Any) -> int:
    """The index of the network device of an interface (a row of the database); 0: it has none."""
    # The kernel may have a device with the name of a patch port, which is none of its.
    return int(first(interface.ifindex) or 0) if interface.type in _OF_KERNEL else 0


def number_of(interface: Any) -> int:
    """The OpenFlow number of an interface; 0: it is not part of the datapath."""
    number = int(first(interface.ofport) or 0)
    return _LOCAL if number == _LOCAL_OF_10 else number


def is_connected(interface: Any) -> bool:
    """Whether an interface is part of the datapath now."""
    return int(first(interface.ofport) or 0) >= 1


class DeviceShares:
    """Which interfaces have which network device. All VXLAN ports of a machine have the same, for example."""

    def __init__(self, interfaces: Iterable[Any], own: set[Any]) -> None:
        """``interfaces``: all of the machine's Open vSwitch; ``own``: the ids of those of the bridge."""
        self._own: dict[int, list[tuple[str, int]]] = {}
        self._others: dict[int, list[tuple[str, int]]] = {}
        for interface in interfaces:
            index = device_of(interface)
            if index and is_connected(interface):
                side = self._own if interface.uuid in own else self._others
                side.setdefault(index, []).append((str(interface.name), number_of(interface)))

    def of_bridge(self, index: int) -> list[tuple[str, int]]:
        """The interfaces of the bridge that have this device, and their OpenFlow numbers."""
        return sorted(self._own.get(index, ()))

    def of_others(self, index: int) -> tuple[str, ...]:
        """The interfaces of other bridges that have it."""
        return tuple(sorted(name for name, _ in self._others.get(index, ())))


def why_unwatched(interface: Any, shares: DeviceShares) -> str:
    """Why an interface is not watched at all; "": it is."""
    kind, index = str(interface.type), device_of(interface)
    if kind == _PATCH:
        return "a patch port is no network device: its flows are counted at real ports"
    if kind not in _OF_KERNEL:
        return f"cannot be governed: {kind} ports bypass the kernel's egress"
    if not index and kind in _TUNNELS:
        return f"{kind} without a network device: its packets leave by another port, inside others"
    if not index:
        return "it is no network device of this host"
    others = shares.of_others(index)
    if others:
        return f"it has the same network device as {listed(others)} of another bridge"
    return ""


def window_device(interface: Any, shares: DeviceShares) -> WindowDevice | None:
    """The device of an interface that is watched for windows only; None: it is a port of its own."""
    index = device_of(interface)
    if interface.type == _DELIVERS:
        reason = "it hands packets to this machine, without a queue"
        return WindowDevice(index, (str(interface.name),), True, reason, (number_of(interface),))
    found = shares.of_bridge(index)
    if len(found) > 1:
        reason = "they have one network device: which of them a packet leaves by is not known there"
        names, numbers = tuple(name for name, _ in found), tuple(number for _, number in found)
        return WindowDevice(index, names, False, reason, numbers)
    return None


def joined_bridges(bridges: Iterable[Any], name: str) -> frozenset[str]:
    """The other bridges to which patch ports lead from a bridge, also by way of others. ``bridges``: rows of
    the database.
    """
    patches: dict[str, tuple[str, str]] = {}  # bridge and peer, by interface
    for bridge in bridges:
        for port in bridge.ports:
            for interface in port.interfaces:
                if interface.type == _PATCH:
                    peer = interface.options.get("peer", "")
                    patches[str(interface.name)] = str(bridge.name), str(peer)
    found, new = {name}, {name}
    while new:
        # Packets pass only if each names the other.
        new = {
            patches[peer][0]
            for patch, (bridge, peer) in patches.items()
            if bridge in new and peer in patches and patches[peer][1] == patch
        } - found
        found |= new
    return frozenset(found - {name})


def listed(names: Iterable[str]) -> str:
    """Names in a sentence: ``a``, ``a and b``, ``a, b and c``."""
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
