"""Copies of SYN, FIN and RST from an agent: the rules with which a controller asks, and the PACKET_INs.

A rule matches ``eth_type``, ``ip_proto`` and one flag in ``tcp_flags``, and outputs to the controller, as on
any OpenFlow switch. ``hard_timeout`` is its lease. The ONF's field of TCP flags on the wire (EXT-109)::

     0                   1                   2                   3
    +-------------------------------+-------------+-+---------------+
    | class 0xffff (experimenter)   | field 42    |1| length 8      |
    +-------------------------------+-------------+-+---------------+
    | experimenter 0x4f4e4600 (ONF)                                 |
    +-------------------------------+-------------------------------+
    | flags                         | mask                          |
    +-------------------------------+-------------------------------+
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import framing
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.packet.headers import ETH_IP, ETH_IPV6, FIN, IPPROTO_TCP, RST, SYN

COOKIE_COPY = 0xFA17 << 48 | 0xC091
"""The cookie of the rules that :func:`requests` adds, and so of the PACKET_INs."""
COPY_BYTES = 192
"""Enough for Ethernet, two VLAN tags, IPv6 with an extension header, and TCP with all its options. An agent
sends no more of a segment, whatever a rule asks for.
"""
FLAGS = (SYN, FIN, RST)
ETH_TYPES = (ETH_IP, ETH_IPV6)
FIELD = "tcp_flags"

_ONF = 0x4F4E4600
_FIELD_NUMBER = 42
_FLAGS_AND_MASK = struct.Struct("!IHH")
_OUTPUT = struct.Struct("!IH6x")


class SegmentCopy(NamedTuple):
    """``port``: the OpenFlow port by which the segment leaves the bridge, where the agent's program saw it;
    ``frame``: its beginning; ``total_len``: the length of the whole frame in bytes.
    """

    port: int
    frame: bytes
    total_len: int


class SegmentMatch(NamedTuple):
    """The segments that a rule copies: of IPv4 or IPv6 (``eth_type``), with this TCP flag set."""

    eth_type: int
    flag: int


class CopyAction(NamedTuple):
    """Output to the controller: at most ``max_len`` bytes of a segment."""

    max_len: int


# The controller's end


def requests(datapath: Any, lease: int) -> list[Any]:
    """The FlowMods that ask an agent for copies of SYN, FIN and RST, for ``lease`` seconds. Sent again, they
    renew the lease and change nothing else.
    """
    action = parser.OFPActionOutput(ofp.OFPP_CONTROLLER, COPY_BYTES)
    return [
        parser.OFPFlowMod(
            datapath,
            cookie=COOKIE_COPY,
            hard_timeout=lease,
            match=_match(eth_type, flag),
            instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])],
        )
        for eth_type in ETH_TYPES
        for flag in FLAGS
    ]


def withdrawals(datapath: Any) -> list[Any]:
    """The FlowMods that end the copies."""
    return [
        framing.deletion(datapath, _match(eth_type, flag), strict=True, cookie=COOKIE_COPY)
        for eth_type in ETH_TYPES
        for flag in FLAGS
    ]


def _match(eth_type: int, flag: int) -> Any:
    # Masked: a SYN that negotiates ECN has two more flags (RFC 3168).
    return parser.OFPMatch(eth_type=eth_type, ip_proto=IPPROTO_TCP, tcp_flags=(flag, flag))


def decode(message: Any) -> SegmentCopy | None:
    """The content of a PACKET_IN that Ryu has decoded; None: it is not a copy that :func:`requests` has asked
    for.
    """
    if message.cookie != COOKIE_COPY or "in_port" not in message.match:
        return None
    return SegmentCopy(message.match["in_port"], bytes(message.data), message.total_len)


# The agent's end


def encode(copy: SegmentCopy, cookie: int = COOKIE_COPY) -> bytes:
    """The whole PACKET_IN; ``cookie``: that of the rule."""
    return framing.packet_in(cookie, *copy)


def segment_match(match: Mapping[str, int | str]) -> SegmentMatch | None:
    """The segments that a rule with this match copies; None: it is not the match of such a rule."""
    if match.keys() != {"eth_type", "ip_proto", FIELD}:
        return None
    return SegmentMatch(int(match["eth_type"]), int(match[FIELD]))


def match_fields(target: SegmentMatch) -> dict[str, int | str]:
    """The match of a rule that copies these segments: :func:`segment_match` back."""
    return {"eth_type": target.eth_type, "ip_proto": IPPROTO_TCP, FIELD: target.flag}


def ryu_match(target: SegmentMatch) -> Any:
    """The same as an OFPMatch."""
    return _match(target.eth_type, target.flag)


def decode_flag(field_mask: int, value: bytes) -> int:
    """The flag in the value of an experimenter OXM, behind its header, whose third byte is ``field_mask``.

    Raises :class:`OpenFlowError` for another field, and for any flags and mask but one of :data:`FLAGS`.
    """
    if field_mask >> 1 != _FIELD_NUMBER:
        raise _bad_match(ofp.OFPBMC_BAD_FIELD, f"experimenter field {field_mask >> 1}")
    if len(value) < 4:
        raise _bad_match(ofp.OFPBMC_BAD_LEN, f"an experimenter field of {len(value)} bytes")
    if int.from_bytes(value[:4], "big") != _ONF:
        raise _bad_match(ofp.OFPBMC_BAD_FIELD, f"field {field_mask >> 1} of experimenter {value[:4].hex()}")
    size = _FLAGS_AND_MASK.size if field_mask & 1 else _FLAGS_AND_MASK.size - 2
    if len(value) != size:
        raise _bad_match(ofp.OFPBMC_BAD_LEN, f"{FIELD} has {len(value)} bytes, not {size}")
    if not field_mask & 1:
        raise _bad_match(ofp.OFPBMC_BAD_MASK, f"{FIELD} without a mask")
    _, flags, mask = _FLAGS_AND_MASK.unpack(value)
    if flags & ~mask:
        raise _bad_match(ofp.OFPBMC_BAD_WILDCARDS, f"{FIELD} {flags:#x} has bits outside its mask {mask:#x}")
    if mask not in FLAGS:
        raise _bad_match(ofp.OFPBMC_BAD_MASK, f"{FIELD} with mask {mask:#x}: not SYN, FIN or RST alone")
    if flags != mask:
        raise _bad_match(ofp.OFPBMC_BAD_VALUE, f"{FIELD} asks for segments without flag {mask:#x}")
    return int(flags)


def decode_output(body: bytes) -> CopyAction:
    """An output action, behind its type and length. Raises :class:`OpenFlowError` unless it is to the
    controller.
    """
    if len(body) != _OUTPUT.size:
        raise _bad_action(ofp.OFPBAC_BAD_LEN, f"output of {len(body)} bytes, not {_OUTPUT.size}")
    port, max_len = _OUTPUT.unpack(body)
    if port != ofp.OFPP_CONTROLLER:
        raise _bad_action(ofp.OFPBAC_BAD_OUT_PORT, f"output to port {port:#x}; only to the controller")
    # Whole packets (OFPCML_NO_BUFFER) are not copied.
    if max_len > ofp.OFPCML_MAX:
        raise _bad_action(ofp.OFPBAC_BAD_ARGUMENT, f"max_len {max_len:#x}")
    return CopyAction(max_len)


def _bad_match(code: int, text: str) -> OpenFlowError:
    return OpenFlowError(ofp.OFPET_BAD_MATCH, code, text)


def _bad_action(code: int, text: str) -> OpenFlowError:
    return OpenFlowError(ofp.OFPET_BAD_ACTION, code, text)
