"""The rules that are installed in the bridges (stock Open vSwitch).

Functions return Ryu messages for a datapath; nothing is sent here. A bridge's pipeline:

====  ===========  ================================================================================
0     TRACK        from host ports: copies of TCP SYN, FIN and RST to the controller (with ``syn =
                   hold`` the SYN itself); broadcast ARP, and ARP for the controller, go there only;
                   links skip to PATHS
1     SOURCE       a frame whose source is not known at this port is copied to the controller
2     PATHS        exact rules of pinned flows; a miss goes to the first table of BUCKETS that is in use
3-6   BUCKETS       each sets one bit of the hash of a TCP segment in the metadata; both in
                   :mod:`~fairq_ryu.openflow.paths`
7     DESTINATION  by destination address and bucket; unknown and group addresses are flooded, by bucket
8     COPIES       by class and port: frames to the controller, each port and class with a meter of its own;
                   only in bridges that have meters (:mod:`~fairq_ryu.openflow.copy_classes`)
====  ===========  ================================================================================

No frame waits for the controller, except SYNs with ``syn = hold``: the frame itself is forwarded while its
copy is sent to the controller. The controller answers broadcast ARP requests only; replies and unicast
requests are forwarded like all frames, so that hosts that know each other can renew their entries without a
controller.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import flowmod, framing
from fairq_ryu.channel.flow_match import ETH_TYPE_IP, ETH_TYPE_IPV6, IPPROTO_TCP
from fairq_ryu.model import HASH_BITS
from fairq_ryu.openflow import copy_classes
from fairq_ryu.openflow.copy_classes import CopyActions, CopyClass
from fairq_ryu.packet import segment_probe
from fairq_ryu.port_settings import OTHER_VLANS

TRACK, SOURCE, PATHS = 0, 1, 2
DESTINATION = PATHS + HASH_BITS + 1
COPIES = copy_classes.TABLE
# A cookie gives the reason of a packet-in, and identifies the rules of this controller. Rules of another
# layout of the tables do not count as its rules.
_LAYOUT = 3
COOKIE_BASE = 0xFA17 << 48 | _LAYOUT << 32
COOKIE_TCP, COOKIE_ARP, COOKIE_SOURCE, COOKIE_DESTINATION, COOKIE_LLDP, COOKIE_HELD, COOKIE_PATH = (
    COOKIE_BASE | n for n in range(1, 8)
)
COOKIE_VLAN_SOURCE, COOKIE_ENTRY, COOKIE_PROBE = (COOKIE_BASE | n for n in range(8, 11))
_WHOLE_COOKIE = (1 << 64) - 1
# Enough for Ethernet, two VLAN tags, IPv6 with an extension header, and TCP with all its options.
COPY_BYTES = 192
_SYN, _FIN, _RST, _ACK = 0x002, 0x001, 0x004, 0x010
ETH_TYPE_LLDP = 0x88CC
LLDP_ADDRESS = "01:80:c2:00:00:0e"
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_GROUP_BIT = "01:00:00:00:00:00"
PROBE_MAC = "0e:fa:17:00:00:01"
"""The address to which hosts answer when the controller asks them (locally administered)."""

# Priority of the rules in TRACK for frames that arrive through links.
FROM_LINK = 200
# Priorities of rules without a VLAN, and what is added to them for a rule of a VLAN. In between are the rules
# for all tagged frames (fairq_ryu/openflow/vlans.py), so that rules without a VLAN are for untagged ones.
PATH_PRIORITY, SOURCE_PRIORITY, DELIVER_PRIORITY = 100, 10, 20
TAGGED, IN_VLAN = 25, 30

Message = Any
Datapath = Any
# The cookie and the size of the copies of each class.
_COPIED = {
    CopyClass.DISCOVERY: (COOKIE_LLDP, ofp.OFPCML_NO_BUFFER),
    CopyClass.ARP: (COOKIE_ARP, ofp.OFPCML_NO_BUFFER),
    CopyClass.SYN: (COOKIE_TCP, COPY_BYTES),
    CopyClass.END: (COOKIE_TCP, COPY_BYTES),
    CopyClass.SOURCE: (COOKIE_SOURCE, COPY_BYTES),
    CopyClass.HELD: (COOKIE_HELD, ofp.OFPCML_NO_BUFFER),
}


def rule(
    datapath: Datapath,
    table: int,
    priority: int,
    match: Any,
    actions: list[Any],
    goto: int | None,
    cookie: int,
    metadata: tuple[int, int] | None = None,
    **lifetime: int,
) -> Message:
    """Add a rule, whose actions are applied before the frame goes on to table ``goto``. ``metadata``: the
    value and the mask that are written; ``lifetime``: timeouts and flags of the FlowMod, 0 by default.
    """
    instructions: list[Any] = []
    if metadata is not None:
        instructions.append(parser.OFPInstructionWriteMetadata(*metadata))
    if actions:
        instructions.append(parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions))
    if goto is not None:
        instructions.append(parser.OFPInstructionGotoTable(goto))
    return parser.OFPFlowMod(
        datapath,
        cookie=cookie,
        table_id=table,
        priority=priority,
        match=match,
        instructions=instructions,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        **lifetime,
    )


def is_ours(cookie: int) -> bool:
    """Whether a rule was installed by this controller or by one with the same layout of the tables."""
    return cookie >> 32 == COOKIE_BASE >> 32


def ask_rules(datapath: Datapath) -> Message:
    """The request for all rules of a bridge."""
    return parser.OFPFlowStatsRequest(datapath)


def pipeline(datapath: Datapath, copies: CopyActions = copy_classes.plain) -> list[Message]:
    """The rules that every bridge has. ``copies``: how they send frames to the controller."""
    any_frame = parser.OFPMatch()
    return [
        *copy_rules(datapath, copies),
        rule(datapath, TRACK, 0, any_frame, [], SOURCE, COOKIE_BASE),
    ]


def copy_rules(datapath: Datapath, copies: CopyActions) -> list[Message]:
    """Those of the rules that send frames to the controller, except for held SYNs."""

    def copied(table: int, priority: int, match: Any, kind: CopyClass, goto: int | None) -> Message:
        cookie, size = _COPIED[kind]
        return rule(datapath, table, priority, match, copies(kind, size), goto, cookie)

    rules: list[Message] = []
    for eth_type in (ETH_TYPE_IP, ETH_TYPE_IPV6):
        for flag, kind in ((_SYN, CopyClass.SYN), (_FIN, CopyClass.END), (_RST, CopyClass.END)):
            # Masked: a SYN that negotiates ECN has two more flags (RFC 3168).
            match = parser.OFPMatch(eth_type=eth_type, ip_proto=IPPROTO_TCP, tcp_flags=(flag, flag))
            rules.append(copied(TRACK, 100, match, kind, SOURCE))
    for to in (_BROADCAST, PROBE_MAC):
        rules.append(copied(TRACK, 100, parser.OFPMatch(eth_type=0x0806, eth_dst=to), CopyClass.ARP, None))
    lldp = parser.OFPMatch(eth_type=ETH_TYPE_LLDP, eth_dst=LLDP_ADDRESS)
    rules.append(copied(TRACK, 0xFFFF, lldp, CopyClass.DISCOVERY, None))
    probe = parser.OFPMatch(eth_type=segment_probe.ETH_TYPE, eth_dst=segment_probe.GROUP)
    rules.append(copied(TRACK, 0xFFFE, probe, CopyClass.DISCOVERY, None))
    rules.append(copied(SOURCE, 0, parser.OFPMatch(), CopyClass.SOURCE, PATHS))
    return rules


def class_rules(datapath: Datapath) -> list[Message]:
    """The rules of COPIES for ports without a share."""
    return [
        rule(
            datapath,
            COPIES,
            0,
            parser.OFPMatch(**{copy_classes.REGISTER: int(kind)}),
            copy_classes.plain(kind, size),
            None,
            cookie,
        )
        for kind, (cookie, size) in _COPIED.items()
    ]


def share_rule(datapath: Datapath, kind: CopyClass, port: int, there: bool = True) -> Message:
    """The rule of COPIES for a port's share of a class, whose meter is there. ``there`` False removes it."""
    match = parser.OFPMatch(in_port=port, **{copy_classes.REGISTER: int(kind)})
    if not there:
        return remove(datapath, COPIES, 10, match)
    cookie, size = _COPIED[kind]
    action = copy_classes.metered(size, copy_classes.meter_id(kind, port))
    return rule(datapath, COPIES, 10, match, [action], None, cookie)


def limit_groups(datapath: Datapath, port: int, meter: int | None) -> Message:
    """Frames to group addresses that come in by a port are dropped beyond a meter; None removes the rule.
    The meter belongs to the rule, because it limits the frames themselves.
    """
    match = parser.OFPMatch(in_port=port, eth_dst=(_GROUP_BIT, _GROUP_BIT))
    if meter is None:
        return remove(datapath, TRACK, 50, match)
    limited = rule(datapath, TRACK, 50, match, [], SOURCE, COOKIE_BASE)
    limited.instructions.insert(0, parser.OFPInstructionMeter(meter))
    return limited


def from_link(datapath: Datapath, port: int, there: bool) -> Message:
    """Frames that arrive through a link skip TRACK: they were copied where they entered the network.
    ``there`` False removes the rule.
    """
    match = parser.OFPMatch(in_port=port)
    if not there:
        return remove(datapath, TRACK, FROM_LINK, match)
    return rule(datapath, TRACK, FROM_LINK, match, [], PATHS, COOKIE_BASE)


def waiting(datapath: Datapath, port: int, value: tuple[int, ...] | None) -> list[Message]:
    """Frames that enter by this port are delivered, and not flooded. ``value``: (1,) where tagged frames have
    rules of their own, () where they have none; None removes the rules.
    """
    tagged = parser.OFPMatch(in_port=port, vlan_vid=(ofp.OFPVID_PRESENT, ofp.OFPVID_PRESENT))
    rules = (
        (DELIVER_PRIORITY - 1, parser.OFPMatch(in_port=port), value is not None),
        (DELIVER_PRIORITY - 1 + IN_VLAN, tagged, value == (1,)),
    )
    return [
        rule(datapath, DESTINATION, priority, match, [], None, COOKIE_BASE)
        if there
        else remove(datapath, DESTINATION, priority, match)
        for priority, match, there in rules
    ]


def flood(
    datapath: Datapath, bucket: int, ports: Iterable[int] | None, untagged: Iterable[int] = (), vlan: int = 0
) -> Message:
    """Frames of a bucket for unknown addresses are flooded to ``ports``, never to the port where they
    arrived; None removes the rule, so that the rule of bucket 0 matches them. That rule is for group
    addresses, too. ``vlan``: of the frames, or :data:`OTHER_VLANS`; they leave through ``untagged`` without
    their tag.
    """
    match = parser.OFPMatch(**_vlan(vlan), **({"metadata": (bucket, (1 << HASH_BITS) - 1)} if bucket else {}))
    priority = (1 if bucket else 0) + (0 if not vlan else TAGGED if vlan == OTHER_VLANS else IN_VLAN)
    if ports is None:
        return remove(datapath, DESTINATION, priority, match)
    return rule(datapath, DESTINATION, priority, match, output(ports, untagged), None, COOKIE_BASE)


def deliver(
    datapath: Datapath, mac: str, bucket: int, mask: int, port: int | None, untag: bool = False, vlan: int = 0
) -> Message:
    """Frames of a VLAN to ``mac`` whose bucket equals ``bucket`` under ``mask`` leave through ``port``, with
    ``untag`` without their tag; None removes the rule.
    """
    match = parser.OFPMatch(**_vlan(vlan), eth_dst=mac, **({"metadata": (bucket, mask)} if mask else {}))
    priority = DELIVER_PRIORITY + (IN_VLAN if vlan else 0)
    if port is None:
        return remove(datapath, DESTINATION, priority, match)
    actions = output([], [port]) if untag else output([port])
    return rule(datapath, DESTINATION, priority, match, actions, None, COOKIE_DESTINATION)


def output(ports: Iterable[int], untagged: Iterable[int] = ()) -> list[Any]:
    """The actions that send a frame through ``ports`` and, without its tag, through ``untagged``."""
    actions = [parser.OFPActionOutput(port) for port in ports]
    bare = [parser.OFPActionOutput(port) for port in untagged]
    return [*actions, parser.OFPActionPopVlan(), *bare] if bare else actions


def _vlan(vlan: int) -> dict[str, Any]:
    """The part of a match for frames of a VLAN; 0: of all frames."""
    if vlan == OTHER_VLANS:
        return {"vlan_vid": (ofp.OFPVID_PRESENT, ofp.OFPVID_PRESENT)}
    return {"vlan_vid": ofp.OFPVID_PRESENT | vlan} if vlan else {}


def hold(datapath: Datapath, lease: int, copies: CopyActions = copy_classes.plain) -> list[Message]:
    """SYNs of new connections go to the controller only, for ``lease`` seconds. If the rules are not renewed,
    SYNs are forwarded without it again.
    """
    cookie, size = _COPIED[CopyClass.HELD]
    return [
        rule(
            datapath,
            TRACK,
            110,
            parser.OFPMatch(eth_type=eth_type, ip_proto=IPPROTO_TCP, tcp_flags=(_SYN, _SYN | _ACK)),
            copies(CopyClass.HELD, size),
            None,
            cookie,
            hard_timeout=lease,
        )
        for eth_type in (ETH_TYPE_IP, ETH_TYPE_IPV6)
    ]


def end_hold(datapath: Datapath) -> Message:
    """Remove the rules of :func:`hold` before their lease ends."""
    return framing.deletion(
        datapath, parser.OFPMatch(), cookie=COOKIE_HELD, cookie_mask=_WHOLE_COOKIE, table_id=TRACK
    )


def vlan_of(match: Any) -> int:
    """The VLAN of a match; 0: it has none, :data:`OTHER_VLANS`: all tagged frames."""
    found = match.get("vlan_vid", 0)
    return OTHER_VLANS if isinstance(found, tuple) else found & ~ofp.OFPVID_PRESENT


def barrier(datapath: Datapath) -> Message:
    """The switch answers when all messages before this one are processed."""
    return parser.OFPBarrierRequest(datapath)


def clear(datapath: Datapath) -> Message:
    """Remove every rule of the bridge; the controller owns its tables."""
    return flowmod.clear(datapath)


def source(
    datapath: Datapath,
    mac: str,
    ports: int | Iterable[int],
    idle_timeout: int,
    vlan: int = 0,
    first: bool = False,
) -> list[Message]:
    """A host is behind a port, or behind the members of a bond: its frames there are not copied to the
    controller until it is silent for ``idle_timeout`` seconds. ``first``: the bridge has no rule for it yet.
    """
    rules = [
        rule(
            datapath,
            SOURCE,
            SOURCE_PRIORITY + (IN_VLAN if vlan else 0),
            parser.OFPMatch(in_port=port, **_vlan(vlan), eth_src=mac),
            [],
            PATHS,
            COOKIE_VLAN_SOURCE if vlan else COOKIE_SOURCE,
            idle_timeout=idle_timeout,
            flags=ofp.OFPFF_SEND_FLOW_REM,
        )
        for port in ([ports] if isinstance(ports, int) else ports)
    ]
    # Open vSwitch looks at every rule with this cookie to remove one: in a flood of new addresses that would
    # be most of its work.
    return rules if first else [forget_source(datapath, mac, vlan), *rules]


def remove(datapath: Datapath, table: int, priority: int, match: Any) -> Message:
    """Remove exactly one rule."""
    return framing.deletion(datapath, match, strict=True, table_id=table, priority=priority)


def forget_source(datapath: Datapath, mac: str, vlan: int = 0) -> Message:
    """Remove the rules of :func:`source`."""
    # Not those of the same address in other VLANs.
    cookie = COOKIE_VLAN_SOURCE if vlan else COOKIE_SOURCE
    match = parser.OFPMatch(**_vlan(vlan), eth_src=mac)
    return framing.deletion(datapath, match, cookie=cookie, cookie_mask=_WHOLE_COOKIE, table_id=SOURCE)


def packet_out(
    datapath: Datapath, data: bytes, in_port: int, out_ports: Iterable[int], untagged: Iterable[int] = ()
) -> Message:
    """Send a frame through some ports and, without its tag, through others, but not through ``in_port``,
    where it arrived.
    """
    return parser.OFPPacketOut(
        datapath,
        buffer_id=ofp.OFP_NO_BUFFER,
        in_port=in_port,
        actions=output(out_ports, untagged),
        data=data,
    )


def ask_counters(datapath: Datapath) -> Message:
    """The request for the counters of all ports of a bridge."""
    return parser.OFPPortStatsRequest(datapath, 0, ofp.OFPP_ANY)
