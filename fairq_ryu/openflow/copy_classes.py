"""The classes of frames that go to the controller, and the actions that send one there.

*Plain*: the rule itself sends the frame; the bridge's meter for the controller limits all together. *Shared*:
the rule names the class in a register and resubmits the frame to :data:`TABLE`, where each port has a rule
for each class with a meter of its own. So a port that floods uses up its own share of one class, and the
copies of other ports and classes come through.

The meter belongs to the action that sends to the controller (``controller(meter_id=...)`` of Open vSwitch,
``NXAST_CONTROLLER2``), not to the rule: a meter as an instruction drops the frame itself, and the frame must
go on when its copy is dropped.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.model import HASH_BITS

TABLE = HASH_BITS + 4
"""The table of the shares, behind those of the pipeline."""
REGISTER = "reg0"
_NICIRA, _CONTROLLER2 = 0x2320, 37
_MAX_LEN, _METER_ID = 0, 5
_FIRST_METER = 0xFA00 << 16


class CopyClass(IntEnum):
    """What a frame that goes to the controller is."""

    DISCOVERY = 1
    ARP = 2
    SYN = 3
    END = 4  # FIN and RST
    SOURCE = 5  # a frame whose source is not known
    HELD = 6  # a SYN that waits for the controller


_GROUP = 7


CopyActions = Callable[[CopyClass, int], list[Any]]
"""The actions that send this many bytes of a frame of a class to the controller."""


def plain(_kind: CopyClass, size: int) -> list[Any]:
    """Without a share."""
    return [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, size)]


def shared(kind: CopyClass, _size: int) -> list[Any]:
    """With the share of the port where the frame arrived."""
    return [
        parser.OFPActionSetField(**{REGISTER: int(kind)}),
        parser.NXActionResubmitTable(table_id=TABLE),
    ]


def metered(size: int, meter: int) -> Any:
    """The action that sends a frame to the controller if a meter permits it."""
    body = struct.pack("!H6xHHH2xHHI", _CONTROLLER2, _MAX_LEN, 8, size, _METER_ID, 8, meter)
    return parser.OFPActionExperimenterUnknown(_NICIRA, body)


def meter_id(kind: CopyClass, port: int) -> int:
    """The number of the meter of a port's share of a class."""
    return _FIRST_METER | kind << 16 | port


def group_meter_id(port: int) -> int:
    """The number of the meter on the frames to group addresses that come in by a port."""
    return _FIRST_METER | _GROUP << 16 | port


def meters_of(port: int) -> list[int]:
    """The numbers of all meters that a port can have."""
    return [group_meter_id(port), *(meter_id(kind, port) for kind in CopyClass)]


def is_ours(meter: int) -> bool:
    """Whether this is a number of :func:`meter_id`."""
    return meter & 0xFF00_0000 == _FIRST_METER and (meter >> 16 & 0xFF) in [*CopyClass]
