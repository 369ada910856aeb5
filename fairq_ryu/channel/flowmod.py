"""FlowMods with window rules and the rules of queue laws, as the controller creates them (ONF OpenFlow 1.3.5,
section 7.3.4.1), and their tables. The agent decodes them with flowmod_decoder.py; flow_match.py has their
matches.
"""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import framing
from fairq_ryu.channel.flow_match import match
from fairq_ryu.model import RuleChange, WindowKind

TABLE_ID, QUEUE_TABLE_ID = 0, WindowKind.QUEUE_LAW.table
TABLES = (TABLE_ID, QUEUE_TABLE_ID)
WINDOW_RULE_COOKIE = 0xFA17_0003 << 32  # as the rules of bridges, with the number of their layout
QUEUE_RULE_COOKIE = 0xFA17_0004 << 32


class PackedOnce(parser.OFPFlowMod):
    """A FlowMod that is packed when it is first sent, and may be sent again without a change, with the same
    transaction id.
    """

    def serialize(self) -> None:
        """Pack it, unless that was done."""
        if self.buf is None:
            super().serialize()


def window_rule(datapath: Any, change: RuleChange, lease: int) -> Any:
    """The FlowMod that installs, renews or removes a window rule in a bridge's agent; ``lease`` in seconds. A
    flow's rule matches its ACKs, so it names the flow reversed.
    """
    target = change.target
    matched = match(target.port.port if target.flow is None else target.flow.reversed)
    if change.rule is None:
        return framing.deletion(datapath, matched, strict=True, cookie=WINDOW_RULE_COOKIE)
    action = parser.OFPActionSetField(**{change.rule.kind.field: min(change.rule.bytes, 0xFFFFFFFF)})
    kind = parser.OFPFlowMod if change.rule.law is None else PackedOnce
    return kind(
        datapath,
        cookie=WINDOW_RULE_COOKIE,
        hard_timeout=lease,
        match=matched,
        instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])],
    )


def queue_rule(datapath: Any, port: int, law: int | None, lease: int) -> Any:
    """The FlowMod that puts a queue law in force on a port, or renews its lease (seconds); ``law`` None
    removes the rule.
    """
    if law is None:
        cookie = QUEUE_RULE_COOKIE
        return framing.deletion(datapath, match(port), strict=True, cookie=cookie, table_id=QUEUE_TABLE_ID)
    action = parser.OFPActionSetField(**{WindowKind.QUEUE_LAW.field: law})
    return PackedOnce(
        datapath,
        cookie=QUEUE_RULE_COOKIE,
        table_id=QUEUE_TABLE_ID,
        hard_timeout=lease,
        match=match(port),
        instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])],
    )


def clear(datapath: Any) -> Any:
    """The FlowMod that removes every rule of a switch, in all of its tables."""
    return framing.deletion(datapath, parser.OFPMatch(), table_id=ofp.OFPTT_ALL)
