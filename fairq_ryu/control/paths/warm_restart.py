"""Warm restart: the rules that an earlier controller left in a bridge, read from its flow statistics.

Traffic continues on these rules while links are discovered again. If a rule is not ours, or belongs to
another layout of the tables, nothing is reused and the tables are cleared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.fabric.topology.forwarding import (
    Deliver,
    EcmpBits,
    Entry,
    Flood,
    FromLink,
    RuleKey,
    Tagged,
    Value,
    Waiting,
)
from fairq_ryu.fabric.topology.ports import UNTAGGED
from fairq_ryu.model import FlowKey
from fairq_ryu.openflow import paths, pipeline, vlans


@dataclass(slots=True)
class EarlierRules:
    """``forwarding``: the forwarding rules; ``hosts``: MAC addresses, their port numbers and VLANs; ``pins``:
    the directions of connections that have rules of their own.
    """

    forwarding: dict[RuleKey, Value] = field(default_factory=dict)
    hosts: list[tuple[str, int, int]] = field(default_factory=list)
    pins: list[FlowKey] = field(default_factory=list)


def read(stats: Iterable[Any]) -> EarlierRules | None:
    """Decode the flow statistics of a bridge. None if its rules cannot be reused."""
    found = EarlierRules()
    entries: dict[int, list[Any]] = {}
    for stat in stats:
        # Ryu's topology service, which may run beside this application, installs this rule too.
        if stat.match.get("eth_type") == pipeline.ETH_TYPE_LLDP:
            continue
        if not pipeline.is_ours(stat.cookie):
            return None
        if stat.cookie == pipeline.COOKIE_ENTRY:
            entries.setdefault(stat.match.get("in_port", 0), []).append(stat)
        else:
            _add(stat, found)
    entries.pop(0, None)  # a rule for all ports belongs to those for tagged frames
    found.forwarding.update({Entry(port): vlans.read_entry(rules) for port, rules in entries.items()})
    return found if Flood() in found.forwarding else None


def _add(stat: Any, found: EarlierRules) -> None:
    match, vlan = stat.match, pipeline.vlan_of(stat.match)
    if stat.table_id == pipeline.TRACK and stat.priority == pipeline.FROM_LINK:
        found.forwarding[FromLink(match["in_port"])] = ()
    elif stat.table_id == pipeline.SOURCE and "eth_src" in match:
        found.hosts.append((match["eth_src"], match["in_port"], vlan))
    elif stat.table_id == pipeline.PATHS and "ip_proto" in match:
        key = paths.flow_of(match)
        if key is not None:
            found.pins.append(key)
    elif stat.table_id == pipeline.PATHS:
        gotos = [each.table_id for each in stat.instructions if each.type == ofp.OFPIT_GOTO_TABLE]
        key_of_bits: RuleKey = Tagged() if vlan else EcmpBits()
        found.forwarding[key_of_bits] = (pipeline.DESTINATION - gotos[0],) if gotos else (0,)
    elif stat.table_id == pipeline.DESTINATION:
        bucket, mask = match.get("metadata", (0, 0))
        if "eth_dst" in match:
            found.forwarding[Deliver(match["eth_dst"], bucket, mask, vlan)] = _ports(stat)
        elif "in_port" in match:
            waiting = Waiting(match["in_port"])
            found.forwarding[waiting] = (1,) if vlan else found.forwarding.get(waiting, ())
        else:
            found.forwarding[Flood(bucket, vlan)] = _ports(stat)


def _ports(stat: Any) -> Value:
    """The ports of a rule's actions; behind the action that removes the tag they are untagged."""
    found, untagged = [], 0
    for instruction in stat.instructions:
        for action in instruction.actions if instruction.type == ofp.OFPIT_APPLY_ACTIONS else ():
            if action.type == ofp.OFPAT_POP_VLAN:
                untagged = UNTAGGED
            else:
                found.append(action.port + untagged)
    return tuple(found)
