"""VLAN tags of frames that are made or sent again: how a frame of a VLAN looks at a port."""

from __future__ import annotations

import struct

from fairq_ryu.packet.headers import ETH_VLAN, VLAN_BITS

_ADDRESSES = 12  # bytes before the first tag


def with_tag(frame: bytes, vlan: int) -> bytes:
    """An untagged frame with the tag of its VLAN."""
    return frame[:_ADDRESSES] + struct.pack("!HH", ETH_VLAN, vlan) + frame[_ADDRESSES:]


def at_port(tags: tuple[int, ...], vlan: int, untagged: int) -> tuple[int, ...]:
    """The tags (TCI, outermost first) of a frame of a VLAN at a port whose frames of VLAN ``untagged`` have
    no tag. ``tags``: those of the frame at any port of the network; of its own VLAN it may have one or not.
    """
    if not vlan:
        return tags
    inner = tags[1:] if tags and tags[0] & VLAN_BITS in (0, vlan) else tags
    if vlan == untagged:
        return inner
    priority = tags[0] & ~VLAN_BITS if tags and inner != tags else 0
    return (priority | vlan, *inner)
