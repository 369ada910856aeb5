"""Warm restart: the rules that an earlier controller left in a bridge, read from its flow statistics.

Traffic continues on these rules while links are discovered again. If a rule is not ours, or belongs to
another layout of the tables, nothing is reused and the tables are cleared.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.fabric.topology.forwarding import Deliver, EcmpBits, Flood, FromLink, RuleKey, Value
from fairq_ryu.model import FlowKey
from fairq_ryu.openflow import pipeline


@dataclass(slots=True)
class EarlierRules:
    """``forwarding``: the forwarding rules; ``hosts``: MAC addresses and their port numbers; ``pins``: the
    directions of connections that have rules of their own.
    """

    forwarding: dict[RuleKey, Value] = field(default_factory=dict)
    hosts: list[tuple[str, int]] = field(default_factory=list)
    pins: list[FlowKey] = field(default_factory=list)


def read(stats: Iterable[Any]) -> EarlierRules | None:
    """Decode the flow statistics of a bridge. None if its rules cannot be reused."""
    found = EarlierRules()
    for stat in stats:
        # Ryu's topology service, which may run beside this application, installs this rule too.
        if stat.match.get("eth_type") == pipeline.ETH_TYPE_LLDP:
            continue
        if not pipeline.is_ours(stat.cookie):
            return None
        _add(stat, found)
    return found if Flood() in found.forwarding else None


def _add(stat: Any, found: EarlierRules) -> None:
    match = stat.match
    if stat.table_id == pipeline.TRACK and stat.priority == pipeline.FROM_LINK:
        found.forwarding[FromLink(match["in_port"])] = ()
    elif stat.table_id == pipeline.SOURCE and stat.priority:
        found.hosts.append((match["eth_src"], match["in_port"]))
    elif stat.table_id == pipeline.PATHS and stat.priority:
        key = pipeline.flow_of(match)
        if key is not None:
            found.pins.append(key)
    elif stat.table_id == pipeline.PATHS:
        gotos = [each.table_id for each in stat.instructions if each.type == ofp.OFPIT_GOTO_TABLE]
        found.forwarding[EcmpBits()] = (pipeline.DESTINATION - gotos[0],) if gotos else (0,)
    elif stat.table_id == pipeline.DESTINATION:
        ports = tuple(
            action.port
            for instruction in stat.instructions
            if instruction.type == ofp.OFPIT_APPLY_ACTIONS
            for action in instruction.actions
        )
        bucket, mask = match.get("metadata", (0, 0))
        if "eth_dst" in match:
            found.forwarding[Deliver(match["eth_dst"], bucket, mask)] = ports
        else:
            found.forwarding[Flood(bucket)] = ports
