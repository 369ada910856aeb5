"""Where the hosts are: MAC and IP addresses to ports, learnt from what hosts send."""

from __future__ import annotations

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
    told: float = 0.0  # when its switch was last told, seconds


class HostTable:
    """All hosts. One host is behind one port; the last word counts.

    ``version`` grows with every change of what is known.
    """

    def __init__(self, capacity: int = 16384) -> None:
        self.capacity = capacity
        self.version = 0
        self._by_mac: dict[str, Host] = {}
        self._by_ip: dict[str, Host] = {}

    def __len__(self) -> int:
        return len(self._by_mac)

    def seen(self, mac: str, port: PortKey, ip: str | None = None) -> bool:
        """A frame from this MAC came in by this port. Returns whether that is news: a new host, or
        one that has moved. Group addresses are nobody's and are passed over.
        """
        if int(mac[:2], 16) & 1:
            return False
        if ip in _NOBODY:
            ip = None  # an ARP probe, or duplicate address detection (RFC 5227, RFC 4862)
        host = self._by_mac.get(mac)
        if host is None and len(self._by_mac) >= self.capacity:
            return False  # somebody makes addresses up; their frames are flooded
        news = host is None or host.port != port
        if host is None:
            host = self._by_mac[mac] = Host(mac, port)
        host.port = port
        self.version += news
        if ip is not None and self._by_ip.get(ip) is not host:
            self.version += 1
            other = self._by_ip.get(ip)
            if other is not None:
                other.addresses.pop(ip, None)
            host.addresses[ip] = None
            self._by_ip[ip] = host
            # A host that claims addresses without end must not fill the table.
            while len(host.addresses) > _MAX_ADDRESSES:
                oldest = next(iter(host.addresses))
                del host.addresses[oldest]
                self._by_ip.pop(oldest, None)
        return news

    def address_seen(self, mac: str, port: PortKey, ip: str) -> None:
        """A host that is known there has opened or answered a connection from this address.

        It is taken only where none of its kind is known of the host, and is nobody else's: any program can
        send a SYN from a made-up address, and must not take one from another host by it.
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
        """Forget a host; returns what was known of it."""
        host = self._by_mac.pop(mac, None)
        if host is not None:
            self.version += 1
            for ip in host.addresses:
                self._by_ip.pop(ip, None)
        return host

    def forget_port(self, port: PortKey) -> list[Host]:
        """Forget the hosts behind a port that has gone."""
        gone = [host for host in self._by_mac.values() if host.port == port]
        for host in gone:
            self.forget(host.mac)
        return gone

    def behind(self, dpid: int) -> list[Host]:
        """The hosts behind the ports of a switch."""
        return [host for host in self._by_mac.values() if host.port.dpid == dpid]


def _link_local(address: str) -> bool:
    """Every host that speaks IPv6 has one of these (RFC 4291), whatever else it has."""
    return address.startswith("fe80:")
