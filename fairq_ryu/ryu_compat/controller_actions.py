"""Actions of rules that send frames to the controller through a meter (``NXAST_CONTROLLER2``).

Ryu's parser fails on every property of this action that it does not know, and a meter is one: a reply with
the rules of a bridge could not be decoded, and a restarted controller lost every bridge that has such rules.
"""

from __future__ import annotations

import struct
from typing import Any

from ryu.ofproto import nicira_ext, ofproto_v1_3_parser

_PADDING = 6  # bytes before the first property
_PROPERTY = struct.Struct("!HH")
_MAX_LEN = struct.Struct("!H")


def parse(cls: Any, body: bytes) -> Any:
    """The action behind its Nicira header. Its ``max_len`` is kept; properties that Ryu does not know are
    passed over. Raises ValueError if a property does not fit.
    """
    known: dict[str, int] = {}
    at = _PADDING
    while at < len(body):
        if at + _PROPERTY.size > len(body):
            raise ValueError("a property of a controller action is cut off")
        kind, length = _PROPERTY.unpack_from(body, at)
        if length < _PROPERTY.size or at + length > len(body):
            raise ValueError(f"a property of a controller action has length {length}")
        if kind == nicira_ext.NXAC2PT_MAX_LEN and length >= _PROPERTY.size + _MAX_LEN.size:
            (known["max_len"],) = _MAX_LEN.unpack_from(body, at + _PROPERTY.size)
        at += -(-length // 8) * 8
    return cls(**known)


def register() -> None:
    """Make Ryu use :func:`parse`."""
    ofproto_v1_3_parser.NXActionController2.parser = classmethod(parse)
