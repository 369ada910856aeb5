"""The experimenter match fields of the window channel, one for each kind of window rule, and its identifiers.

All fields are 32-bit and contain *unscaled* bytes; the switch applies each flow's window scale (RFC 7323).
They are used in ``set_field`` only. On the wire (ONF OpenFlow 1.3.5, section 7.2.3.2)::

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

from fairq_ryu.model import WindowKind, dpid_text

# The project has no number from the IEEE or the ONF. 02-fa-17 has the "locally administered" bit of an OUI
# set, so it cannot collide with a vendor's.
EXPERIMENTER_ID = 0x0002FA17

KINDS = {kind.oxm_number: kind for kind in WindowKind}
OXM_LENGTH = 8

# An agent's datapath id is its bridge's, with this in the 16 bits that the specification leaves to
# implementers.
DPID_MARKER = 0xFA17
_DPID_MASK = (1 << 48) - 1


def agent_dpid(bridge_dpid: int) -> int:
    """The datapath id of a bridge's agent. Raises ValueError if the bridge uses the marker's bits."""
    if bridge_dpid & ~_DPID_MASK:
        raise ValueError(f"datapath id {dpid_text(bridge_dpid)} uses its top 16 bits")
    return DPID_MARKER << 48 | bridge_dpid


def is_agent(dpid: int) -> bool:
    """Whether this is the datapath id of an agent."""
    return dpid >> 48 == DPID_MARKER


def bridge_dpid(dpid: int) -> int:
    """The datapath id of an agent's bridge."""
    return dpid & _DPID_MASK


class _WindowField(oxm_fields._Experimenter):
    experimenter_id = EXPERIMENTER_ID


def register() -> None:
    """Register the fields with Ryu's OpenFlow 1.3 codec. A second call changes nothing."""
    types: list[Any] = ofproto_v1_3.oxm_types
    known = {field.name for field in types}
    if known.issuperset(kind.field for kind in WindowKind):
        return
    types += [_WindowField(kind.field, kind.oxm_number, type_desc.Int4) for kind in WindowKind]
    oxm_fields.generate(ofproto_v1_3.__name__)
