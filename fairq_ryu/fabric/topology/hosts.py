"""The location of hosts: MAC and IP addresses by port, learned from the frames of the hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from fairq_ryu.model import PortKey

_MAX_ADDRESSES = 64
_NOBODY = ("0.0.0.0", "::")


@dataclass(slots=True)
class Host:
    """A host: its MAC address, the port it is behind, and its IP addresses (newest last)."""

    mac: str
    port: PortKey
    addresses: dict[str, None] = field(default_factory=dict)
    sent_at: float = 0.0  # when its rules were last sent to the switches, seconds


class HostTable:
    """All hosts. A host is behind one port: that of its last frame.

    ``version`` increases with every change.
    """

    def __init__(self, capacity: int = 16384) -> None:
        self.capacity = capacity
        self.version = 0
        self._by_mac: dict[str, Host] = {}
        self._by_ip: dict[str, Host] = {}
        self._behind: Counter[PortKey] = Counter()

    def __len__(self) -> int:
        return len(self._by_mac)

    def seen(self, mac: str, port: PortKey, ip: str | None = None) -> bool:
        """A frame from this MAC address arrived at this port. Returns whether the host is new or has moved.
        Group addresses are ignored.
        """
        if int(mac[:2], 16) & 1:
            return False
        if ip in _NOBODY:
            ip = None  # an ARP probe, or duplicate address detection (RFC 5227, RFC 4862)
        host = self._by_mac.get(mac)
        if host is None and len(self._by_mac) >= self.capacity:
            return False  # the table is full, as with forged addresses; their frames are flooded
        changed = host is None or host.port != port
        if host is None:
            host = self._by_mac[mac] = Host(mac, port)
            self._behind[port] += 1
        elif changed:
            self._leaves(host.port)
            self._behind[port] += 1
        host.port = port
        self.version += changed
        if ip is not None and self._by_ip.get(ip) is not host:
            self.version += 1
            other = self._by_ip.get(ip)
            if other is not None:
                other.addresses.pop(ip, None)
            host.addresses[ip] = None
            self._by_ip[ip] = host
            # A host that claims an unlimited number of addresses must not fill the table.
            while len(host.addresses) > _MAX_ADDRESSES:
                oldest = next(iter(host.addresses))
                del host.addresses[oldest]
                self._by_ip.pop(oldest, None)
        return changed

    def address_seen(self, mac: str, port: PortKey, ip: str) -> None:
        """A known host at this port has opened or answered a connection from this address.

        The address is stored only if the host has none of this IP version and no other host has it: any
        program can send a SYN with a forged source address, and must not take over the address of a host.
        """
        host = self._by_mac.get(mac)
        if host is None or host.port != port or ip in _NOBODY or ip in self._by_ip:
            return
        if not any((":" in known) == (":" in ip) for known in host.addresses if not _link_local(known)):
            self.seen(mac, port, ip)

    def __iter__(self) -> Iterator[Host]:
        return iter(list(self._by_mac.values()))

    def by_mac(self, mac: str) -> Host | None:
        """The host of a MAC address."""
        return self._by_mac.get(mac)

    def by_ip(self, ip: str) -> Host | None:
        """The host of an IP address."""
        return self._by_ip.get(ip)

    def forget(self, mac: str) -> Host | None:
        """Remove a host and return it; None if it is not known."""
        host = self._by_mac.pop(mac, None)
        if host is not None:
            self.version += 1
            self._leaves(host.port)
            for ip in host.addresses:
                self._by_ip.pop(ip, None)
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
            self.forget(host.mac)
        return gone

    def behind(self, dpid: int) -> list[Host]:
        """The hosts behind the ports of a switch."""
        return [host for host in self._by_mac.values() if host.port.dpid == dpid]


def _link_local(address: str) -> bool:
    """Whether an address is link-local; every host with IPv6 has such an address (RFC 4291)."""
    return address.startswith("fe80:")
