"""The location of hosts: MAC and IP addresses by port, learned from the frames of the hosts.

The same addresses in two VLANs are two hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from fairq_ryu.model import PortKey

MAX_ADDRESSES = 64
_NOBODY = ("0.0.0.0", "::")
_Address = tuple[int, str]
"""A VLAN and an address in it."""


@dataclass(slots=True)
class Host:
    """A host: its MAC address, the port it is behind, its VLAN (0: none) and its IP addresses (newest
    last).
    """

    mac: str
    port: PortKey
    vlan: int = 0
    addresses: dict[str, None] = field(default_factory=dict)
    sent_at: float = 0.0  # when its rules were last sent to the switches, seconds


class HostTable:
    """All hosts. A host is behind one port: that of its last frame.

    A new host is stored while its port has fewer than the table has room for, as with dynamic thresholds of a
    shared buffer: one port, with forged addresses too, gets half of the table at most. ``version`` increases
    with every change.
    """

    def __init__(self, capacity: int = 16384) -> None:
        self.capacity = capacity
        self.version = 0
        self.vlans: Counter[int] = Counter()
        """The number of hosts in each VLAN that has any."""
        self._by_mac: dict[_Address, Host] = {}
        self._by_ip: dict[_Address, Host] = {}
        self._behind: Counter[PortKey] = Counter()

    def __len__(self) -> int:
        return len(self._by_mac)

    def seen(self, mac: str, port: PortKey, ip: str | None = None, vlan: int = 0) -> bool:
        """A frame from this MAC address arrived at this port, in this VLAN. Returns whether the host is new
        or has moved. Group addresses are ignored.
        """
        if int(mac[:2], 16) & 1:
            return False
        if ip in _NOBODY:
            ip = None  # an ARP probe, or duplicate address detection (RFC 5227, RFC 4862)
        host = self._by_mac.get((vlan, mac))
        if host is None and self._behind[port] >= self.capacity - len(self._by_mac):
            return False  # frames to it are flooded
        changed = host is None or host.port != port
        if host is None:
            host = self._by_mac[vlan, mac] = Host(mac, port, vlan)
            self.vlans[vlan] += 1
            self._behind[port] += 1
        elif changed:
            self._leaves(host.port)
            self._behind[port] += 1
        host.port = port
        self.version += changed
        other = None if ip is None else self._by_ip.get((vlan, ip))
        if ip is not None and other is not host:
            self.version += 1
            if other is not None:
                other.addresses.pop(ip, None)
            host.addresses[ip] = None
            self._by_ip[vlan, ip] = host
            # A host that claims an unlimited number of addresses must not fill the table.
            while len(host.addresses) > MAX_ADDRESSES:
                oldest = next(iter(host.addresses))
                del host.addresses[oldest]
                self._by_ip.pop((vlan, oldest), None)
        return changed

    def address_seen(self, mac: str, port: PortKey, ip: str, vlan: int = 0) -> None:
        """A known host at this port has opened or answered a connection from this address.

        The address is stored only if the host has none of this IP version and no other host has it: any
        program can send a SYN with a forged source address, and must not take over the address of a host.
        """
        host = self._by_mac.get((vlan, mac))
        if host is None or host.port != port or ip in _NOBODY or (vlan, ip) in self._by_ip:
            return
        if not any((":" in known) == (":" in ip) for known in host.addresses if not _link_local(known)):
            self.seen(mac, port, ip, vlan)

    def __iter__(self) -> Iterator[Host]:
        return iter(list(self._by_mac.values()))

    def by_mac(self, mac: str, vlan: int = 0) -> Host | None:
        """The host of a MAC address."""
        return self._by_mac.get((vlan, mac))

    def by_ip(self, ip: str, vlan: int = 0) -> Host | None:
        """The host of an IP address."""
        return self._by_ip.get((vlan, ip))

    def forget(self, mac: str, vlan: int = 0) -> Host | None:
        """Remove a host and return it; None if it is not known."""
        host = self._by_mac.pop((vlan, mac), None)
        if host is not None:
            self.version += 1
            self._leaves(host.port)
            self.vlans[vlan] -= 1
            if not self.vlans[vlan]:
                del self.vlans[vlan]
            for ip in host.addresses:
                self._by_ip.pop((vlan, ip), None)
        return host

    def _leaves(self, port: PortKey) -> None:
        self._behind[port] -= 1
        if not self._behind[port]:
            del self._behind[port]

    def any_behind(self, port: PortKey) -> bool:
        """Whether hosts are behind a port."""
        return port in self._behind

    def forget_port(self, port: PortKey) -> list[Host]:
        """Remove the hosts behind a port that was removed, and return them."""
        gone = [host for host in self._by_mac.values() if host.port == port]
        for host in gone:
            self.forget(host.mac, host.vlan)
        return gone

    def behind(self, dpid: int) -> list[Host]:
        """The hosts behind the ports of a switch."""
        return [host for host in self._by_mac.values() if host.port.dpid == dpid]


def _link_local(address: str) -> bool:
    """Whether an address is link-local; every host with IPv6 has such an address (RFC 4291)."""
    return address.startswith("fe80:")
