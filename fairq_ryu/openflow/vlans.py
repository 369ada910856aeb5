"""The rules of VLANs. Functions return Ryu messages for a datapath, as in :mod:`fairq_ryu.openflow.pipeline`.

Inside the network a frame of a VLAN has a tag, and a frame without a VLAN has none. A port that is not a
plain trunk has rules in TRACK, before all others: a frame that it may not carry is dropped; one that comes in
without a tag gets that of its VLAN; and then the frame passes TRACK once more, with :data:`ENTERED` in its
metadata. The last rules before a host's port remove the tag where the port has untagged frames. A member of a
bond has such rules, too: they give its frames the number of the member by which the bond's frames leave.

====  ===========  ==========================================================================================
0     TRACK        by port and tag: which frames come in, and in which VLAN
1     SOURCE       tagged frames: only rules of their VLAN (and the same address) say that a host is known
2     PATHS        tagged frames: only pinned flows of their VLAN
7     DESTINATION  tagged frames: destinations and floods of their VLAN, or the flood of all other VLANs
====  ===========  ==========================================================================================

A network without bonds in which no port distinguishes VLANs and no host sends tagged frames has none of these
rules.
"""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.pipeline import (
    COOKIE_BASE,
    COOKIE_ENTRY,
    COOKIE_SOURCE,
    COPY_BYTES,
    DESTINATION,
    PATH_PRIORITY,
    PATHS,
    SOURCE,
    SOURCE_PRIORITY,
    TAGGED,
    TRACK,
    Datapath,
    Message,
)
from fairq_ryu.port_settings import IN_PLACE_OF

# In the metadata, above the bits of the ECMP bucket: the frame has passed the rules of its port.
ENTERED = 1 << 16
# Above all rules of TRACK that a host's frames may match, below those of links.
_ENTRY = 150
_PRIORITY_TAGGED = ofp.OFPVID_PRESENT  # VLAN 0 in a tag: the frame is in no VLAN
_ETH_TYPE_VLAN = 0x8100
_VLAN_BITS = 0xFFF
# Open vSwitch refuses a set-field action on the OpenFlow field. The bits are 0 to 15.
_IN_PORT, _ALL_BITS = "in_port_nxm", 15
_Rules = dict[tuple[int, Any], list[Any] | None]
"""By priority and match of the tag: the actions before the frame goes on; None: it is dropped."""


def tagged(datapath: Datapath, bits: int | None) -> list[Message]:
    """Keep tagged frames apart from the rules for untagged ones. ``bits`` as in
    :func:`fairq_ryu.openflow.paths.ecmp_buckets`; None removes the rules.
    """
    match = parser.OFPMatch(vlan_vid=(ofp.OFPVID_PRESENT, ofp.OFPVID_PRESENT))
    bare = parser.OFPMatch(vlan_vid=_PRIORITY_TAGGED)
    rules = (
        (TRACK, _ENTRY - 2, bare),
        (SOURCE, SOURCE_PRIORITY + TAGGED, match),
        (PATHS, PATH_PRIORITY + TAGGED, match),
    )
    if bits is None:
        return [pipeline.remove(datapath, *rule) for rule in rules]
    copy = [parser.OFPActionOutput(ofp.OFPP_CONTROLLER, COPY_BYTES)]
    return [
        pipeline.rule(datapath, *rules[0], [parser.OFPActionPopVlan(), _again()], None, COOKIE_ENTRY),
        pipeline.rule(datapath, *rules[1], copy, PATHS, COOKIE_SOURCE),
        pipeline.rule(datapath, *rules[2], [], DESTINATION - bits, COOKIE_BASE),
    ]


def entry(
    datapath: Datapath, port: int, value: tuple[int, ...] | None, old: tuple[int, ...] | None
) -> list[Message]:
    """Which frames come in by a port (:meth:`LogicalPorts.entry`; None: all, as they are), in place of
    ``old``.
    """
    wanted, known = _rules(value), _rules(old)
    messages = []
    place = _in_place_of(value)
    enter = [parser.OFPActionSetField(metadata=ENTERED), _again()]
    if place:
        enter.insert(0, parser.NXActionRegLoad(_ALL_BITS, _IN_PORT, place))
    for (priority, tag), actions in wanted.items():
        on = None if actions is None else [*actions, *enter]
        match = _match(port, tag)
        messages.append(pipeline.rule(datapath, TRACK, priority, match, on or [], None, COOKIE_ENTRY))
    return messages + [
        pipeline.remove(datapath, TRACK, priority, _match(port, tag))
        for priority, tag in known
        if (priority, tag) not in wanted
    ]


def _rules(value: tuple[int, ...] | None) -> _Rules:
    if value is None:
        return {}
    native, *blocks = (each for each in value if each < IN_PLACE_OF)
    rules: _Rules = {}
    if native >= 0:
        vid = [parser.OFPActionSetField(vlan_vid=ofp.OFPVID_PRESENT | native)] if native else []
        push = [parser.OFPActionPushVlan(_ETH_TYPE_VLAN)] if native else []
        rules[_ENTRY + 1, ofp.OFPVID_NONE] = [*push, *vid]
        rules[_ENTRY + 1, _PRIORITY_TAGGED] = vid or [parser.OFPActionPopVlan()]
    elif blocks:
        rules[_ENTRY + 1, _PRIORITY_TAGGED] = None
    for block in blocks:
        vlan, mask = block >> 16, block & 0xFFFF
        tag = ofp.OFPVID_PRESENT | vlan
        rules[_ENTRY, tag if mask == _VLAN_BITS else (tag, ofp.OFPVID_PRESENT | mask)] = []
    rules[_ENTRY - 1, None] = None
    return rules


def _in_place_of(value: tuple[int, ...] | None) -> int:
    """The port in whose place frames come in; 0: in none's."""
    return next((each - IN_PLACE_OF for each in value or () if each >= IN_PLACE_OF), 0)


def _match(port: int, tag: Any) -> Any:
    fields = {} if tag is None else {"vlan_vid": tag}
    return parser.OFPMatch(in_port=port, metadata=(0, ENTERED), **fields)


def _again() -> Any:
    """Pass TRACK once more."""
    return parser.NXActionResubmitTable(table_id=TRACK)


def read_entry(stats: list[Any]) -> tuple[int, ...]:
    """The value of :func:`entry` from the rules of one port, as the bridge lists them."""
    native, place, blocks = -1, 0, []
    for stat in stats:
        tag = stat.match.get("vlan_vid")
        actions = [action for each in stat.instructions for action in each.actions]
        # Open vSwitch lists the same action as one or the other.
        ports = (a.value for a in actions if _IN_PORT in (getattr(a, "key", None), getattr(a, "dst", None)))
        place = next(ports, place)
        if tag == ofp.OFPVID_NONE and actions:
            fields = [each for each in actions if getattr(each, "key", None) == "vlan_vid"]
            native = fields[0].value & _VLAN_BITS if fields else 0
        elif tag not in (None, ofp.OFPVID_NONE, _PRIORITY_TAGGED):
            vlan, mask = tag if isinstance(tag, tuple) else (tag, _VLAN_BITS)
            blocks.append((vlan & _VLAN_BITS) << 16 | (mask & _VLAN_BITS))
    return (native, *sorted(blocks), *([place + IN_PLACE_OF] if place else []))
