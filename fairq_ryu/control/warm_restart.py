"""What an earlier controller has left in a bridge, read back: traffic goes on while links are found again.

Rules that are not ours, or of another layout of the tables, mean that everything is cleared instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.fabric.topology.forwarding import Deliver, Flood, FromLink, RuleKey, Shares, Value
from fairq_ryu.model import FlowKey
from fairq_ryu.openflow import pipeline


@dataclass(slots=True)
class Adopted:
    """``standing``: the forwarding rules; ``hosts``: MAC addresses with the ports they are behind; ``pins``:
    the directions of connections that have rules of their own.
    """

    standing: dict[RuleKey, Value] = field(default_factory=dict)
    hosts: list[tuple[str, int]] = field(default_factory=list)
    pins: list[FlowKey] = field(default_factory=list)


def read(stats: Iterable[Any]) -> Adopted | None:
    """What the rules of a bridge say, as flow statistics list them; None if they cannot be taken over."""
    found = Adopted()
    for stat in stats:
        # Ryu's topology service puts its own rule for discovery frames in every bridge.
        if stat.match.get("eth_type") == pipeline.ETH_TYPE_LLDP:
            continue
        if not pipeline.is_ours(stat.cookie):
            return None
        _note(stat, found)
    return found if Flood() in found.standing else None


def _note(stat: Any, found: Adopted) -> None:
    match = stat.match
    if stat.table_id == pipeline.TRACK and stat.priority == pipeline.FROM_LINK:
        found.standing[FromLink(match["in_port"])] = ()
    elif stat.table_id == pipeline.SOURCE and stat.priority:
        found.hosts.append((match["eth_src"], match["in_port"]))
    elif stat.table_id == pipeline.PATHS and stat.priority:
        key = pipeline.flow_of(match)
        if key is not None:
            found.pins.append(key)
    elif stat.table_id == pipeline.PATHS:
        gotos = [each.table_id for each in stat.instructions if each.type == ofp.OFPIT_GOTO_TABLE]
        found.standing[Shares()] = (pipeline.DESTINATION - gotos[0],) if gotos else (0,)
    elif stat.table_id == pipeline.DESTINATION:
        ports = tuple(
            action.port
            for instruction in stat.instructions
            if instruction.type == ofp.OFPIT_APPLY_ACTIONS
            for action in instruction.actions
        )
        share, mask = match.get("metadata", (0, 0))
        if "eth_dst" in match:
            found.standing[Deliver(match["eth_dst"], share, mask)] = ports
        else:
            found.standing[Flood(share)] = ports
