"""The rules: what is installed in the bridges (stock Open vSwitch) and in their agents.

Functions return Ryu messages for a datapath; nothing is sent here. A bridge's pipeline:

====  ===========  ================================================================================
0     TRACK        copies of TCP SYN, FIN and RST to the controller; ARP questions to all go there only
1     SOURCE       a frame whose source is not known at this port is copied to the controller
2     PATHS        exact rules of single flows (none on a single switch); a miss goes on
3     DESTINATION  by destination address; group and unknown addresses are flooded
====  ===========  ================================================================================

No frame waits for the controller: every copy goes on by itself. ARP questions to everybody alone are
the controller's to answer; answers, and questions to one host, are forwarded like any frame, so that
hosts that know each other keep doing so while there is no controller.
"""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.model import RuleChange
from fairq_ryu.openflow import depth, oxm, records
from fairq_ryu.openflow.flowmod import ETH_TYPE_IP, ETH_TYPE_IPV6, IPPROTO_TCP, match_fields

TRACK, SOURCE, PATHS, DESTINATION = range(4)
# Cookies say what a packet-in is about, and which rules are ours.
COOKIE_BASE = 0xFA17 << 48
COOKIE_MASK = 0xFFFF << 48
COOKIE_TCP, COOKIE_ARP, COOKIE_SOURCE, COOKIE_DESTINATION = (COOKIE_BASE | n for n in range(1, 5))
# Ethernet, two VLAN tags, IPv6 with an extension header, TCP with all its options: nobody needs more.
COPY_BYTES = 192
_SYN, _FIN, _RST = 0x002, 0x001, 0x004
_BROADCAST = "ff:ff:ff:ff:ff:ff"
_GROUP_BIT = ("01:00:00:00:00:00", "01:00:00:00:00:00")

Message = Any
Datapath = Any


def _to_controller(size: int) -> Any:
    return parser.OFPActionOutput(ofp.OFPP_CONTROLLER, size)


def _flow(
    datapath: Datapath,
    table: int,
    priority: int,
    match: Any,
    actions: list[Any],
    goto: int | None,
    cookie: int,
    idle_timeout: int = 0,
    flags: int = 0,
) -> Message:
    instructions: list[Any] = []
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
        idle_timeout=idle_timeout,
        flags=flags,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
    )


def pipeline(datapath: Datapath) -> list[Message]:
    """The rules that every bridge has, after its old ones are gone."""
    rules: list[Message] = [clear(datapath)]
    for eth_type in (ETH_TYPE_IP, ETH_TYPE_IPV6):
        for flag in (_SYN, _FIN, _RST):
            # Masked: a SYN that sets up ECN carries two more flags (RFC 3168).
            match = parser.OFPMatch(eth_type=eth_type, ip_proto=IPPROTO_TCP, tcp_flags=(flag, flag))
            rules.append(_flow(datapath, TRACK, 100, match, [_to_controller(COPY_BYTES)], SOURCE, COOKIE_TCP))
    rules.append(
        _flow(
            datapath,
            TRACK,
            100,
            parser.OFPMatch(eth_type=0x0806, eth_dst=_BROADCAST),
            [_to_controller(ofp.OFPCML_NO_BUFFER)],
            None,
            COOKIE_ARP,
        )
    )
    any_frame = parser.OFPMatch()
    rules.append(_flow(datapath, TRACK, 0, any_frame, [], SOURCE, COOKIE_BASE))
    rules.append(_flow(datapath, SOURCE, 0, any_frame, [_to_controller(COPY_BYTES)], PATHS, COOKIE_SOURCE))
    rules.append(_flow(datapath, PATHS, 0, any_frame, [], DESTINATION, COOKIE_BASE))
    flood = [parser.OFPActionOutput(ofp.OFPP_FLOOD)]
    rules.append(_flow(datapath, DESTINATION, 0, any_frame, flood, None, COOKIE_BASE))
    group = parser.OFPMatch(eth_dst=_GROUP_BIT)
    rules.append(_flow(datapath, DESTINATION, 10, group, flood, None, COOKIE_BASE))
    return rules


def clear(datapath: Datapath) -> Message:
    """Remove every rule of the bridge: the fabric's controller owns its tables."""
    return parser.OFPFlowMod(
        datapath,
        command=ofp.OFPFC_DELETE,
        table_id=ofp.OFPTT_ALL,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=parser.OFPMatch(),
    )


def copy_limit(datapath: Datapath, packets_per_second: int) -> Message:
    """A meter on what is sent to the controller. It limits the copies, not the traffic."""
    return parser.OFPMeterMod(
        datapath,
        command=ofp.OFPMC_ADD,
        flags=ofp.OFPMF_PKTPS | ofp.OFPMF_BURST,
        meter_id=ofp.OFPM_CONTROLLER,
        bands=[parser.OFPMeterBandDrop(rate=packets_per_second, burst_size=packets_per_second)],
    )


def no_copy_limit(datapath: Datapath) -> Message:
    """Remove the meter, which may not be there."""
    return parser.OFPMeterMod(
        datapath, command=ofp.OFPMC_DELETE, flags=0, meter_id=ofp.OFPM_CONTROLLER, bands=[]
    )


def host(datapath: Datapath, mac: str, port: int, idle_timeout: int) -> list[Message]:
    """A host is behind a port: frames from it there are no news, frames to it leave there."""
    return [
        forget_source(datapath, mac),
        _flow(
            datapath,
            SOURCE,
            10,
            parser.OFPMatch(in_port=port, eth_src=mac),
            [],
            PATHS,
            COOKIE_SOURCE,
            idle_timeout,
            ofp.OFPFF_SEND_FLOW_REM,
        ),
        _flow(
            datapath,
            DESTINATION,
            20,
            parser.OFPMatch(eth_dst=mac),
            [parser.OFPActionOutput(port)],
            None,
            COOKIE_DESTINATION,
        ),
    ]


def _forget(datapath: Datapath, table: int, match: Any) -> Message:
    return parser.OFPFlowMod(
        datapath,
        command=ofp.OFPFC_DELETE,
        table_id=table,
        out_port=ofp.OFPP_ANY,
        out_group=ofp.OFPG_ANY,
        match=match,
    )


def forget_source(datapath: Datapath, mac: str) -> Message:
    """Forget at which port a host's frames come in."""
    return _forget(datapath, SOURCE, parser.OFPMatch(eth_src=mac))


def forget_destination(datapath: Datapath, mac: str) -> Message:
    """Forget by which port frames to a host leave."""
    return _forget(datapath, DESTINATION, parser.OFPMatch(eth_dst=mac))


def packet_out(datapath: Datapath, data: bytes, in_port: int, out_port: int) -> Message:
    """Send a frame by a port, or by ``OFPP_FLOOD`` to all but ``in_port``."""
    return parser.OFPPacketOut(
        datapath,
        buffer_id=ofp.OFP_NO_BUFFER,
        in_port=in_port,
        actions=[parser.OFPActionOutput(out_port)],
        data=data,
    )


def window_rule(datapath: Datapath, change: RuleChange, lease: int) -> Message:
    """A window rule for a bridge's agent. A flow's rule matches its ACKs: the flow reversed."""
    target = change.target
    match = parser.OFPMatch(**match_fields(target.port.port if target.flow is None else target.flow.reversed))
    if change.bytes is None:
        return parser.OFPFlowMod(
            datapath,
            cookie=COOKIE_BASE,
            command=ofp.OFPFC_DELETE_STRICT,
            out_port=ofp.OFPP_ANY,
            out_group=ofp.OFPG_ANY,
            match=match,
        )
    name = oxm.TCP_WINDOW_POOL if change.pool else oxm.TCP_WINDOW
    action = parser.OFPActionSetField(**{name: min(change.bytes, 0xFFFFFFFF)})
    return parser.OFPFlowMod(
        datapath,
        cookie=COOKIE_BASE,
        hard_timeout=lease,
        match=match,
        instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])],
    )


def ask_queues(datapath: Datapath, port: int = ofp.OFPP_ANY) -> Message:
    """Ask an agent for the queue depth of a port, or of all its ports."""
    return parser.OFPExperimenterStatsRequest(
        datapath, 0, oxm.EXPERIMENTER_ID, depth.EXP_TYPE_QUEUE_DEPTH, depth.encode_request(port)
    )


def ask_flows(datapath: Datapath, idle_ms: int) -> Message:
    """Ask an agent for its records of the flows that were not silent for so long."""
    return parser.OFPExperimenterStatsRequest(
        datapath, 0, oxm.EXPERIMENTER_ID, records.EXP_TYPE_FLOW_RECORDS, records.encode_request(idle_ms)
    )
