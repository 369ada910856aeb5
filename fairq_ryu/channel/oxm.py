"""The two experimenter match fields of the window channel, and the numbers that mark it as ours.

Both are 32-bit and hold *unscaled* bytes; the switch applies each flow's window scale (RFC 7323).
They appear in ``set_field`` only. On the wire (ONF OpenFlow 1.3.5, section 7.2.3.2)::

     0                   1                   2                   3
    +-------------------------------+-------------+-+---------------+
    | class 0xffff (experimenter)   | field       |0| length 8      |
    +-------------------------------+-------------+-+---------------+
    | experimenter 0x0002fa17                                       |
    +---------------------------------------------------------------+
    | bytes                                                         |
    +---------------------------------------------------------------+
"""

from __future__ import annotations

from typing import Any

from ryu.lib import type_desc
from ryu.ofproto import ofproto_v1_3, oxm_fields

# The project has no number of its own from the IEEE or the ONF. 02-fa-17 has the "locally
# administered" bit of an OUI set, so it can meet no vendor's.
EXPERIMENTER_ID = 0x0002FA17

TCP_WINDOW = "tcp_window"
TCP_WINDOW_POOL = "tcp_window_pool"
OXM_FIELD_TCP_WINDOW = 1
OXM_FIELD_TCP_WINDOW_POOL = 2
OXM_LENGTH = 8

# An agent's datapath id: its bridge's, with this in the 16 bits that the spec leaves to implementers.
DPID_MARKER = 0xFA17
_DPID_MASK = (1 << 48) - 1


def agent_dpid(bridge_dpid: int) -> int:
    """The datapath id of a bridge's agent. Raises ValueError if the bridge uses the marker's bits."""
    if bridge_dpid & ~_DPID_MASK:
        raise ValueError(f"datapath id {bridge_dpid:016x} uses its top 16 bits")
    return DPID_MARKER << 48 | bridge_dpid


def is_agent(dpid: int) -> bool:
    """Is this the datapath id of an agent?"""
    return dpid >> 48 == DPID_MARKER


def bridge_dpid(dpid: int) -> int:
    """The datapath id of the bridge that an agent stands beside."""
    return dpid & _DPID_MASK


class _WindowField(oxm_fields._Experimenter):
    experimenter_id = EXPERIMENTER_ID


def register() -> None:
    """Teach Ryu's OpenFlow 1.3 codec the two fields. A second call changes nothing."""
    types: list[Any] = ofproto_v1_3.oxm_types
    if any(field.name == TCP_WINDOW for field in types):
        return
    types.append(_WindowField(TCP_WINDOW, OXM_FIELD_TCP_WINDOW, type_desc.Int4))
    types.append(_WindowField(TCP_WINDOW_POOL, OXM_FIELD_TCP_WINDOW_POOL, type_desc.Int4))
    oxm_fields.generate(ofproto_v1_3.__name__)
