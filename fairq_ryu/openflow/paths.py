"""The rules that decide on the path of a TCP segment: those of pinned connections, and the hash of others.

Functions return Ryu messages for a datapath, as in :mod:`fairq_ryu.openflow.pipeline`.
"""

from __future__ import annotations

import ipaddress
import itertools
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel.flow_match import ETH_TYPE_IP, ETH_TYPE_IPV6, IPPROTO_TCP, match
from fairq_ryu.model import HASH_PORT_SHIFT, FlowKey
from fairq_ryu.openflow.pipeline import (
    COOKIE_BASE,
    COOKIE_PATH,
    DESTINATION,
    IN_VLAN,
    PATH_PRIORITY,
    PATHS,
    Datapath,
    Message,
    output,
    remove,
    rule,
    vlan_of,
)

CLOSED_IDLE = 5
"""After a FIN or RST, the rules of a pinned flow are removed when no packet has matched for this long,
seconds: the last segments of both directions still take the same path. The bridge does not know whether the
FIN or RST is in sequence.
"""


def ecmp_buckets(datapath: Datapath, bits: int) -> list[Message]:
    """Compute ``bits`` bits of the hash of a TCP segment on the way to DESTINATION, one in each table. The
    metadata is then the ECMP bucket of the segment.
    """
    # The tables become reachable last, when all their rules are installed.
    entry = rule(datapath, PATHS, 0, parser.OFPMatch(), [], DESTINATION - bits, COOKIE_BASE)
    return [message for bit in range(bits) for message in _bucket_bit(datapath, bit)] + [entry]


def _bucket_bit(datapath: Datapath, bit: int) -> list[Message]:
    table = DESTINATION - 1 - bit
    address, port = 1 << bit, 1 << bit + HASH_PORT_SHIFT
    messages = [rule(datapath, table, 0, parser.OFPMatch(), [], table + 1, COOKIE_BASE)]
    for odd in itertools.product((0, 1), repeat=4):
        if sum(odd) % 2 == 0:
            continue
        ports = {"tcp_src": (odd[0] * port, port), "tcp_dst": (odd[1] * port, port)}
        for eth_type, prefix, kind in (
            (ETH_TYPE_IP, "ipv4", ipaddress.IPv4Address),
            (ETH_TYPE_IPV6, "ipv6", ipaddress.IPv6Address),
        ):
            addresses = {
                f"{prefix}_{end}": (str(kind(value * address)), str(kind(address)))
                for end, value in (("src", odd[2]), ("dst", odd[3]))
            }
            match = parser.OFPMatch(eth_type=eth_type, ip_proto=IPPROTO_TCP, **ports, **addresses)
            messages.append(
                rule(datapath, table, 100, match, [], table + 1, COOKIE_BASE, metadata=(1 << bit, 1 << bit))
            )
    return messages


def pin(
    datapath: Datapath, flow: FlowKey, port: int, idle_timeout: int, report_end: bool, untag: bool = False
) -> Message:
    """Segments of one direction of a connection leave through a port, with ``untag`` without their tag.
    ``report_end``: the bridge sends a FLOW_REMOVED when the rule ends.
    """
    return rule(
        datapath,
        PATHS,
        _path_priority(flow),
        match(flow),
        [
            parser.NXActionFinTimeout(CLOSED_IDLE, 0),
            *(output([], [port]) if untag else output([port])),
        ],
        None,
        COOKIE_PATH,
        idle_timeout=idle_timeout,
        flags=ofp.OFPFF_SEND_FLOW_REM if report_end else 0,
    )


def unpin(datapath: Datapath, flow: FlowKey) -> Message:
    """Remove the rule of :func:`pin`."""
    return remove(datapath, PATHS, _path_priority(flow), match(flow))


def _path_priority(flow: FlowKey) -> int:
    return PATH_PRIORITY + (IN_VLAN if flow.vlan else 0)


def flow_of(match: Any) -> FlowKey | None:
    """The flow of a rule of :func:`pin`, from its match; None if it is the match of another rule."""
    family = "ipv6" if "ipv6_src" in match else "ipv4"
    try:
        ends = match[f"{family}_src"], match[f"{family}_dst"]
        return FlowKey(*ends, match["tcp_src"], match["tcp_dst"], vlan_of(match))
    except (KeyError, TypeError):
        return None
