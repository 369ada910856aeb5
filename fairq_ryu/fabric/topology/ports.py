"""The ports of bridges as their owner has set them up: VLANs, bonds, outputs of mirrors; and ports that are
not used because another one leads to the same segment.

Only ports that lead to hosts are asked about. Links between bridges carry every VLAN with its tag, whatever
their settings. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fairq_ryu.model import PortKey
from fairq_ryu.port_settings import IN_PLACE_OF, OTHER_VLANS, PortSettings

UNTAGGED = 1 << 32
"""Added to the number of a port by which frames leave without their tag."""
# The VLANs of a port with a longer list have no flood rules by that; and no more VLANs than this have any.
_MAX_LISTED, _MAX_FLOODED = 64, 256
_PLAIN = PortSettings()


class LogicalPorts:
    """The settings of all ports. ``is_up``: whether a port has carrier; ``is_ready``: whether frames are
    flooded to it by now, which makes it the better member of a bond.
    """

    def __init__(
        self, is_up: Callable[[PortKey], bool], is_ready: Callable[[PortKey], bool] = lambda _: True
    ) -> None:
        self._is_up, self._is_ready = is_up, is_ready
        self._settings: dict[int, dict[int, PortSettings]] = {}
        self._blocked: frozenset[PortKey] = frozenset()

    def replace(self, dpid: int, settings: Mapping[int, PortSettings]) -> list[PortKey]:
        """The settings of all ports of a bridge. Returns the ports whose settings have changed."""
        before = self._settings.get(dpid, {})
        # Nearly all ports are plain, and asked about for each frame: those are told by identity.
        self._settings[dpid] = {port: _PLAIN if each == _PLAIN else each for port, each in settings.items()}
        return [
            PortKey(dpid, number)
            for number in sorted({*before, *settings})
            if before.get(number, _PLAIN) != settings.get(number, _PLAIN)
        ]

    def forget(self, dpid: int) -> None:
        """A bridge is forgotten."""
        self._settings.pop(dpid, None)

    def bridges(self) -> set[int]:
        """The bridges whose settings are known."""
        return set(self._settings)

    def known(self, dpid: int) -> bool:
        """Whether the settings of a bridge are known."""
        return dpid in self._settings

    def settings(self, port: PortKey) -> PortSettings:
        """The settings of a port; those of a plain trunk if they are not known."""
        return self._settings.get(port.dpid, {}).get(port.port, _PLAIN)

    def block(self, ports: Iterable[PortKey]) -> bool:
        """These ports and no others are not used. Returns whether that is a change."""
        blocked = frozenset(ports)
        changed, self._blocked = blocked != self._blocked, blocked
        return changed

    def usable(self, port: PortKey) -> bool:
        """Whether frames of hosts come in and leave by a port."""
        settings = self.settings(port)
        return not (settings.mirror or settings.standby or port in self._blocked)

    # Bonds

    @property
    def has_bonds(self) -> bool:
        """Whether there are any."""
        return any(each.bond for ports in self._settings.values() for each in ports.values())

    def members(self, port: PortKey) -> list[PortKey]:
        """The ports of a port's bond; the port itself if it is in none."""
        bond = self.settings(port).bond
        if not bond:
            return [port]
        of_bridge = self._settings[port.dpid]
        return [PortKey(port.dpid, each) for each in sorted(of_bridge) if of_bridge[each].bond == bond]

    def exit(self, port: PortKey) -> PortKey:
        """The port by which frames leave that are for hosts behind this port: of a bond always one member."""
        bond = self.settings(port).bond
        if not bond:
            return port
        members = self.members(port)
        use = [each for each in members if self.usable(each)]
        order = {each: (not self._is_up(each), not self._is_ready(each), each) for each in use}
        return min(order, key=order.__getitem__) if order else min(members)

    def arrival(self, port: PortKey) -> tuple[PortKey, int] | None:
        """The port where a frame counts as arrived that came in by ``port``, and its VLAN if it has no tag.
        None: the port is not used.
        """
        settings = self.settings(port)
        if settings is _PLAIN:
            return None if port in self._blocked else (port, 0)
        return (self.exit(port), settings.native or 0) if self.usable(port) else None

    # VLANs

    def carries(self, port: PortKey, vlan: int) -> bool:
        """Whether frames of a VLAN may come in by a port."""
        settings = self.settings(port)
        return settings is _PLAIN or settings.carries(vlan)

    @property
    def aware(self) -> bool:
        """Whether a port distinguishes VLANs."""
        return any(not each.plain for ports in self._settings.values() for each in ports.values())

    def vlans(self, used: Iterable[int]) -> list[int]:
        """The VLANs that need flood rules of their own, because some ports carry them and others do not.
        ``used``: those of known hosts.
        """
        restricted = [each for ports in self._settings.values() for each in ports.values() if not each.plain]
        found = {each.tag for each in restricted if each.tag}
        for each in restricted:
            if sum(last - first + 1 for first, last in each.tagged) <= _MAX_LISTED:
                found |= {vlan for first, last in each.tagged for vlan in range(first, last + 1)}
        found |= {vlan for vlan in used if vlan and any(not each.carries_all for each in restricted)}
        return sorted(found)[:_MAX_FLOODED]

    def exit_to(self, port: PortKey, vlan: int) -> int:
        """The number of the port by which frames of a VLAN leave, with :data:`UNTAGGED` if they lose their
        tag.
        """
        leaves = self.exit(port)
        untagged = vlan and self.settings(leaves).untagged == vlan
        return leaves.port + (UNTAGGED if untagged else 0)

    def flooded(self, ports: Iterable[PortKey], vlan: int) -> set[int]:
        """Of these ports, those to which frames of a VLAN are flooded, as numbers of :meth:`exit_to`."""
        found = set()
        for port in ports:
            settings = self.settings(port)
            carried = settings.carries_all if vlan == OTHER_VLANS else settings.carries(vlan)
            if carried and self.usable(port) and self.exit(port) == port:
                found.add(self.exit_to(port, vlan))
        return found

    def entries(self, dpid: int) -> dict[PortKey, tuple[int, ...]]:
        """The ports of a bridge by which not all frames come in as they are, with :meth:`entry` of each."""
        ports = [PortKey(dpid, number) for number in self._settings.get(dpid, {})]
        ports += [port for port in self._blocked if port.dpid == dpid]
        return {port: entry for port in sorted(ports) if (entry := self.entry(port)) is not None}

    def entry(self, port: PortKey) -> tuple[int, ...] | None:
        """Which frames come in by a port: the VLAN of untagged ones (-1: they are dropped), and then the
        VLANs of tagged ones as aligned blocks, ``vlan << 16 | mask`` (0: all). None: all come in as they are.
        What comes in by a member of a bond comes in by :meth:`exit`, the last number with
        :data:`IN_PLACE_OF`: otherwise floods would go back to where they came from, by another member.
        """
        settings = self.settings(port)
        if not self.usable(port):
            return (-1,)
        leaves = self.exit(port)
        if settings.plain and leaves == port:
            return None
        native = -1 if settings.native is None else settings.native
        carried = [0] if settings.carries_all else sorted(blocks(settings.tagged))
        return native, *carried, *([leaves.port + IN_PLACE_OF] if leaves != port else [])


def split(numbers: Iterable[int]) -> tuple[list[int], list[int]]:
    """The ports of numbers of :meth:`LogicalPorts.exit_to`: those that frames leave with their tag, and those
    that they leave without.
    """
    numbers = list(numbers)
    return [each for each in numbers if each < UNTAGGED], [
        each - UNTAGGED for each in numbers if each >= UNTAGGED
    ]


def blocks(ranges: Iterable[tuple[int, int]]) -> list[int]:
    """Ranges of VLANs as aligned blocks, for matches with a mask: ``vlan << 16 | mask`` each."""
    found = []
    for first, last in ranges:
        at = first
        while at <= last:
            size = at & -at or 1 << 12
            while at + size - 1 > last:
                size //= 2
            found.append(at << 16 | (0xFFF & ~(size - 1)))
            at += size
    return found
