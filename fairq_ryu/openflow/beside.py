"""Messages to bridges whose rules belong to others: questions, and one rule that stands beside theirs.

Functions return Ryu messages for a datapath; nothing is sent here. The rule has the lowest priority and
forwards as a learning switch does (``NORMAL``), so every other rule has precedence over it. While links
between such bridges are looked for, a second one passes discovery frames to the controller. Their cookies
differ from those of the pipeline (:mod:`fairq_ryu.openflow.pipeline`) in one bit, so that both kinds are
counted and removed separately, and rules of others never are.
"""

from __future__ import annotations

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import framing
from fairq_ryu.openflow.pipeline import ETH_TYPE_LLDP, LLDP_ADDRESS, Datapath, Message

_OURS = 0xFA17 << 48
_BESIDE = 0x8000 << 32
COOKIE_NORMAL = _OURS | _BESIDE | 1
COOKIE_DISCOVERY = _OURS | _BESIDE | 2
ALL = (0, 0)
"""Cookie and mask of all rules."""
OF_PIPELINE = (_OURS, 0xFFFF << 48 | _BESIDE)
"""Those of the rules of this controller's pipeline, in any layout of its tables."""
OF_NORMAL, DISCOVERS = ((cookie, 0xFFFF_FFFF_FFFF_FFFF) for cookie in (COOKIE_NORMAL, COOKIE_DISCOVERY))
"""Those of the rules of :func:`forward` and :func:`discovery`."""


def ask_description(datapath: Datapath) -> Message:
    """The request for the description of a switch; of a bridge, ``other_config:dp-desc`` of Open vSwitch."""
    return parser.OFPDescStatsRequest(datapath, 0)


def count_rules(datapath: Datapath, which: tuple[int, int]) -> Message:
    """The request for the number of rules with a cookie, in all tables. The rules themselves are not read."""
    cookie, mask = which
    return parser.OFPAggregateStatsRequest(
        datapath, 0, ofp.OFPTT_ALL, ofp.OFPP_ANY, ofp.OFPG_ANY, cookie, mask, parser.OFPMatch()
    )


def is_of(cookie: int, which: tuple[int, int]) -> bool:
    """Whether a cookie is of a kind, as the bridge decides it."""
    wanted, mask = which
    return cookie & mask == wanted & mask


def forward(datapath: Datapath, beside_others: bool = False) -> Message:
    """The rule of lowest priority: the bridge forwards as a learning switch. ``beside_others``: the bridge
    refuses it if it has any rule of this priority in the first table, which it could replace.
    """
    normal = parser.OFPActionOutput(ofp.OFPP_NORMAL)
    return parser.OFPFlowMod(
        datapath,
        cookie=COOKIE_NORMAL,
        priority=0,
        flags=ofp.OFPFF_CHECK_OVERLAP if beside_others else 0,
        match=parser.OFPMatch(),
        instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [normal])],
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
    )


def discovery(datapath: Datapath) -> Message:
    """The rule of highest priority, where others have none: discovery frames go to the controller."""
    to_controller = parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)
    return parser.OFPFlowMod(
        datapath,
        cookie=COOKIE_DISCOVERY,
        priority=0xFFFF,
        match=parser.OFPMatch(eth_type=ETH_TYPE_LLDP, eth_dst=LLDP_ADDRESS),
        instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [to_controller])],
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
    )


def remove(datapath: Datapath, which: tuple[int, int]) -> Message:
    """Remove the rules with a cookie from all tables."""
    cookie, mask = which
    return framing.deletion(
        datapath, parser.OFPMatch(), cookie=cookie, cookie_mask=mask, table_id=ofp.OFPTT_ALL
    )


def remove_pipeline(datapath: Datapath) -> Message:
    """Remove the pipeline. Its meters stay, see
    :meth:`fairq_ryu.control.paths.copy_meters.CopyMeters.removed`.
    """
    return remove(datapath, OF_PIPELINE)
