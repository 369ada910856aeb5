"""The settings of a bridge's port in Open vSwitch's database: its VLANs, its bond, and whether a mirror
sends its copies there. What the settings mean for frames is that of ovs-vswitchd.conf.db(5), and of NORMAL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

LAST_VLAN = 4095
OTHER_VLANS = LAST_VLAN + 1
"""In place of a VLAN: all from 1 on for which there are no rules of their own."""
IN_PLACE_OF = 1 << 33
"""Added to the number of a port, among numbers of VLANs: frames come in in place of that port."""
Range = tuple[int, int]
"""The first and the last VLAN of a range."""


class VlanMode(StrEnum):
    """How a port uses VLANs. ACCESS: its frames have no tag and are in one VLAN. TRUNK: they are in the VLAN
    of their tag. NATIVE_...: as TRUNK, but untagged frames that come in are in one VLAN, the native one;
    frames of it leave with a tag or without.
    """

    TRUNK = "trunk"
    ACCESS = "access"
    NATIVE_TAGGED = "native-tagged"
    NATIVE_UNTAGGED = "native-untagged"


@dataclass(frozen=True, slots=True)
class PortSettings:
    """The settings of one OpenFlow port.

    ``tag``: the VLAN of an access port, or the native VLAN; ``trunks``: the VLANs of a port in another mode,
    as sorted ranges (empty: all); ``bond``: the name of the bond that the port is a member of ("": none);
    ``standby``: of a bond that does not use this member; ``mirror``: a mirror sends its copies there.
    VLAN 0 is that of untagged frames.
    """

    mode: VlanMode = VlanMode.TRUNK
    tag: int = 0
    trunks: tuple[Range, ...] = ()
    bond: str = ""
    standby: bool = False
    mirror: bool = False

    @property
    def native(self) -> int | None:
        """The VLAN of untagged frames that come in; None: they are dropped."""
        if self.mode is not VlanMode.TRUNK:
            return self.tag
        return 0 if self.carries(0) else None

    @property
    def untagged(self) -> int:
        """The VLAN of untagged frames that leave."""
        return self.tag if self.mode in (VlanMode.ACCESS, VlanMode.NATIVE_UNTAGGED) else 0

    def carries(self, vlan: int) -> bool:
        """Whether frames of a VLAN come in and leave by the port."""
        if self.mode is VlanMode.ACCESS:
            return vlan == self.tag
        if self.mode is not VlanMode.TRUNK and self.tag and vlan in (0, self.tag):
            return vlan == self.tag
        return not self.trunks or any(first <= vlan <= last for first, last in self.trunks)

    @property
    def tagged(self) -> tuple[Range, ...]:
        """The VLANs from 1 on whose frames may come in with a tag, as ranges."""
        if self.mode is VlanMode.ACCESS:
            return ()
        ranges = self.trunks or ((0, LAST_VLAN),)
        if self.mode is not VlanMode.TRUNK and not self.carries_all and not _within(self.tag, ranges):
            ranges = (*ranges, (self.tag, self.tag))
        return tuple((max(first, 1), last) for first, last in ranges if last)

    @property
    def carries_all(self) -> bool:
        """Whether the port carries every VLAN from 1 on."""
        return self.mode is not VlanMode.ACCESS and not self.trunks

    @property
    def plain(self) -> bool:
        """Whether frames come in and leave as they are: with every tag and without one."""
        return self.mode is VlanMode.TRUNK and not self.trunks


def _within(vlan: int, ranges: tuple[Range, ...]) -> bool:
    return any(first <= vlan <= last for first, last in ranges)


def ranges_of(vlans: Iterable[int]) -> tuple[Range, ...]:
    """VLANs as sorted ranges."""
    found: list[Range] = []
    for vlan in sorted(vlans):
        if found and found[-1][1] + 1 >= vlan:
            found[-1] = found[-1][0], vlan
        else:
            found.append((vlan, vlan))
    return tuple(found)
