"""Real messages of every type, in both directions: the start of the corpus.

Ryu encodes the messages of controllers. It only decodes those of switches, so these are packed here with
Ryu's formats, or with the project's where the agent is the switch.
"""

import struct

from ryu.lib.packet import arp, ethernet, ipv4, ipv6, lldp, packet, tcp, vlan
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent import messages as agent
from fairq_ryu.channel import (
    congestion,
    deadlines,
    dropped_packet,
    flow_changes,
    flow_records,
    flowmod,
    oxm,
    port_settings,
    queue_depth,
    queue_law,
    recovery,
    segment_copies,
    segment_counts,
    segment_state,
    waking,
    window_law,
)
from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.iqm import IqmLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.model import (
    Congestion,
    FlowKey,
    PortKey,
    RuleChange,
    RuleTarget,
    SegmentState,
    Thresholds,
    WindowKind,
    WindowRule,
)
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet import lldp as discovery_frames
from fairq_ryu.packet.tcp_build import Addressing
from fairq_ryu.port_settings import PortSettings, VlanMode
from fairq_ryu.queue_law_spec import Variant
from tests.support.fakes import DATAPATH, bridge_port, wire

DPID = 0xF022
GENERATION = 5
"""That with which a controller among others owns the bridge."""
FLOW = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)
FLOW6 = FlowKey("2001:db8::1", "2001:db8::2", 33000, 80)
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
HELLO = agent.hello(1)


def message(kind, body=b"", version=4, xid=7):
    return struct.pack("!BBHI", version, kind, 8 + len(body), xid) + body


def reply(kind, body=b"", flags=0, xid=7):
    return message(ofp.OFPT_MULTIPART_REPLY, struct.pack("!HH4x", kind, flags) + body, xid=xid)


ROLE_REFUSED = agent.error(
    ofp.OFPET_ROLE_REQUEST_FAILED, ofp.OFPRRFC_STALE, message(ofp.OFPT_ROLE_REQUEST, bytes(16))
)
IS_SLAVE = agent.error(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE, message(ofp.OFPT_FLOW_MOD, bytes(48)))


def features(dpid=DPID):
    return agent.features(2, dpid)


def ports(*numbers):
    return reply(ofp.OFPMP_PORT_DESC, b"".join(agent.port(bridge_port(number)) for number in numbers))


def role(number, generation=GENERATION):
    return message(ofp.OFPT_ROLE_REPLY, struct.pack("!I4xQ", number, generation))


def handshake(dpid=DPID, generation=None):
    """The messages of a switch until it is connected; of an agent, until it has described itself.
    ``generation``: that with which a controller among others is its master.
    """
    joins = HELLO + features(dpid) + ports(1, 2, 3)
    if generation is not None:
        joins += role(ofp.OFPCR_ROLE_MASTER, generation)
    return joins + reply(ofp.OFPMP_DESC, agent.description("s1", dpid)) if oxm.is_agent(dpid) else joins


def serialized(thing):
    buffer = bytearray()
    thing.serialize(buffer, 0)
    return bytes(buffer)


def frame(*protocols):
    made = packet.Packet()
    for protocol in protocols:
        made.add_protocol(protocol)
    made.serialize()
    return bytes(made.data)


def frames():
    """Frames of hosts, as bridges copy them to the controller."""
    src, dst = MACS
    options = [
        tcp.TCPOptionMaximumSegmentSize(1460),
        tcp.TCPOptionWindowScale(7),
        tcp.TCPOptionTimestamps(1, 0),
    ]
    syn = tcp.tcp(33000, 80, seq=1000, bits=tcp.TCP_SYN, option=options)
    fin = tcp.tcp(33000, 80, seq=2000, ack=5, bits=tcp.TCP_FIN | tcp.TCP_ACK)
    over4 = ipv4.ipv4(src="10.0.0.1", dst="10.0.0.2", proto=6)
    ether = ethernet.ethernet(dst, src, 0x0800)
    return {
        "syn": frame(ether, over4, syn),
        "fin": frame(ether, over4, fin),
        "rst": frame(ether, over4, tcp.tcp(33000, 80, seq=3, bits=tcp.TCP_RST)),
        "vlan": frame(ethernet.ethernet(dst, src, 0x8100), vlan.vlan(vid=7, ethertype=0x0800), over4, syn),
        "syn6": frame(
            ethernet.ethernet(dst, src, 0x86DD), ipv6.ipv6(src="2001:db8::1", dst="2001:db8::2", nxt=6), syn
        ),
        "arp": frame(
            ethernet.ethernet("ff:ff:ff:ff:ff:ff", src, 0x0806),
            arp.arp(src_mac=src, src_ip="10.0.0.1", dst_ip="10.0.0.2"),
        ),
        "lldp": discovery_frames.build(discovery_frames.DiscoveryFrame(DPID, 2, 1, bytes(16))),
        "lldp-of-others": frame(
            ethernet.ethernet(lldp.LLDP_MAC_NEAREST_BRIDGE, src, 0x88CC),
            lldp.lldp(
                [
                    lldp.ChassisID(subtype=lldp.ChassisID.SUB_MAC_ADDRESS, chassis_id=b"\x02" * 6),
                    lldp.PortID(subtype=lldp.PortID.SUB_LOCALLY_ASSIGNED, port_id=b"eth0"),
                    lldp.TTL(ttl=120),
                    lldp.End(),
                ]
            ),
        ),
    }


def packet_in(data, cookie=pipeline.COOKIE_TCP, **match):
    head = struct.pack("!IHBBQ", ofp.OFP_NO_BUFFER, len(data), ofp.OFPR_ACTION, 0, cookie)
    match = match or {"in_port": 1}
    return message(ofp.OFPT_PACKET_IN, head + serialized(parser.OFPMatch(**match)) + bytes(2) + data)


def flow_entry(instructions, **match):
    tail = serialized(parser.OFPMatch(**match)) + b"".join(serialized(each) for each in instructions)
    head = struct.pack(
        ofp.OFP_FLOW_STATS_0_PACK_STR, 48 + len(tail), 0, 3, 4, 100, 10, 0, 0, pipeline.COOKIE_PATH, 5, 600
    )
    return head + tail


def flow_entries():
    apply = ofp.OFPIT_APPLY_ACTIONS
    note = struct.pack("!HHIH6s", 0xFFFF, 16, 0x2320, 8, b"note!!")
    resubmit = struct.pack("!HHIHHB3x", 0xFFFF, 16, 0x2320, 14, 0xFFF8, 3)
    track = struct.pack("!HHIHHIHB3xH", 0xFFFF, 24 + len(note), 0x2320, 35, 1, 0, 0, 4, 0) + note
    learn = struct.pack("!HHIHHHHQHBxHH", 0xFFFF, 40, 0x2320, 16, 1, 1, 1, 1, 0, 0, 0, 0)
    learn += struct.pack("!HIHH", 0, 0, 0, 0)[:8]
    user = struct.pack("!HHIH6xHHI", 0xFFFF, 24, 0x2320, 37, 3, 8, 1)

    class Raw:
        def __init__(self, data):
            self.data = struct.pack("!HH4x", apply, 8 + len(data)) + data

        def serialize(self, buffer, _offset):
            buffer += self.data

    actions = [
        parser.OFPActionOutput(3),
        parser.OFPActionSetField(eth_dst=MACS[1]),
        parser.OFPActionSetField(vlan_vid=0x1007),
        parser.OFPActionPushVlan(),
        parser.OFPActionPopVlan(),
        parser.OFPActionGroup(3),
        parser.OFPActionSetQueue(1),
        parser.OFPActionDecNwTtl(),
        parser.OFPActionSetNwTtl(3),
    ]
    flow = {"eth_type": 0x0800, "ip_proto": 6, "ipv4_src": FLOW.src, "ipv4_dst": FLOW.dst}
    return (
        flow_entry([parser.OFPInstructionActions(apply, actions), parser.OFPInstructionGotoTable(2)], **flow)
        + flow_entry(
            [parser.OFPInstructionWriteMetadata(1, 1), parser.OFPInstructionMeter(1)],
            eth_type=0x86DD,
            ipv6_src=("2001:db8::", "ffff:ffff::"),
        )
        + flow_entry(
            [Raw(note + resubmit + track + user)], in_port=1, tcp_flags=(2, 2), eth_type=0x0800, ip_proto=6
        )
        + flow_entry([Raw(learn)])
    )


def tables():
    def prop(kind, data):
        return struct.pack("!HH", kind, 4 + len(data)) + data + bytes(-(4 + len(data)) % 8)

    body = prop(0, struct.pack("!HHHH", 1, 4, 4, 4)) + prop(2, bytes([1, 2, 3]))
    body += prop(4, struct.pack("!HHHH", 0, 4, 22, 4)) + prop(8, struct.pack("!II", 0x80000004, 0x80000A02))
    body += prop(12, struct.pack("!III", 0xFFFF0208, oxm.EXPERIMENTER_ID, 0x80000004))
    body += prop(0xFFFE, struct.pack("!III", 1, 2, 3))
    return (
        struct.pack(ofp.OFP_TABLE_FEATURES_PACK_STR, 64 + len(body), 0, b"classifier", 0, 0, 0, 1000) + body
    )


def from_switch():
    """Messages for the controller, by name."""
    bucket = struct.pack("!HHII4x", 32, 1, 2, 3) + struct.pack("!HHIH6x", 0, 16, 3, 128)
    queue = struct.pack("!IIH6x", 1, 2, 64)
    queue += struct.pack("!HH4xH6x", 1, 16, 100) + struct.pack("!HH4xH6x", 2, 16, 200)
    queue += struct.pack("!HH4xI4s", 0xFFFF, 16, 0x2320, b"data")
    found = {
        "hello": HELLO,
        "hello-bare": message(ofp.OFPT_HELLO),
        "hello-two-elements": message(ofp.OFPT_HELLO, struct.pack("!HHIHHI", 9, 8, 0, 1, 8, 1 << 4 | 1 << 1)),
        "hello-1.0": message(ofp.OFPT_HELLO, version=1),
        "error": agent.error(1, 6, message(14, bytes(60))),
        "error-hello": message(ofp.OFPT_ERROR, struct.pack("!HH", 0, 0) + b"incompatible"),
        "error-experimenter": agent.error(0xFFFF, 1, message(4, bytes(60))),
        "echo-request": message(ofp.OFPT_ECHO_REQUEST, b"are you there"),
        "echo-reply": message(ofp.OFPT_ECHO_REPLY),
        "experimenter": message(ofp.OFPT_EXPERIMENTER, struct.pack("!II", 0x2320, 13) + bytes(16)),
        "congestion": congestion.notice_message(congestion.CongestionNotice(1, Congestion.CNG, 40000, 99)),
        "bundle": message(
            ofp.OFPT_EXPERIMENTER,
            struct.pack("!IIIHH", 0x4F4E4600, 2300, 1, 0, 0) + struct.pack("!HHIII", 0xFFFF, 16, 1, 2, 3),
        ),
        "features": features(),
        "get-config": message(ofp.OFPT_GET_CONFIG_REPLY, struct.pack("!HH", 0, 128)),
        "flow-removed": message(
            ofp.OFPT_FLOW_REMOVED,
            struct.pack("!QHBBIIHHQQ", pipeline.COOKIE_PATH, 100, 0, 0, 1, 2, 3, 4, 5, 6)
            + serialized(
                parser.OFPMatch(
                    eth_type=0x0800,
                    ip_proto=6,
                    ipv4_src=FLOW.src,
                    ipv4_dst=FLOW.dst,
                    tcp_src=FLOW.sport,
                    tcp_dst=FLOW.dport,
                )
            ),
        ),
        "flow-removed-source": message(
            ofp.OFPT_FLOW_REMOVED,
            struct.pack("!QHBBIIHHQQ", pipeline.COOKIE_SOURCE, 100, 0, 0, 1, 2, 3, 4, 5, 6)
            + serialized(parser.OFPMatch(in_port=1, eth_src=MACS[0])),
        ),
        "port-status": agent.port_status(0, bridge_port(4)),
        "port-gone": agent.port_status(1, bridge_port(2)),
        "barrier": message(ofp.OFPT_BARRIER_REPLY),
        "role": role(ofp.OFPCR_ROLE_MASTER),
        "role-next": role(ofp.OFPCR_ROLE_MASTER, GENERATION + 1),
        "role-equal": role(ofp.OFPCR_ROLE_EQUAL, (1 << 64) - 1),
        "role-slave": role(ofp.OFPCR_ROLE_SLAVE),
        # It knows a later generation than the database does.
        "role-later": role(ofp.OFPCR_ROLE_SLAVE, GENERATION + 3),
        "role-last": role(ofp.OFPCR_ROLE_SLAVE, (1 << 62) - 1),
        "error-role": ROLE_REFUSED,
        "error-slave": IS_SLAVE,
        "async": message(ofp.OFPT_GET_ASYNC_REPLY, struct.pack("!6I", *range(6))),
        "queue-config": message(ofp.OFPT_QUEUE_GET_CONFIG_REPLY, struct.pack("!I4x", 1) + queue + queue),
        "desc": reply(ofp.OFPMP_DESC, agent.description("s1", DPID)),
        "flows": reply(ofp.OFPMP_FLOW, flow_entries()),
        "flows-none": reply(ofp.OFPMP_FLOW),
        "flows-more": reply(ofp.OFPMP_FLOW, flow_entries(), flags=1),
        "aggregate": reply(ofp.OFPMP_AGGREGATE, struct.pack("!QQI4x", 1, 2, 3)),
        "table": reply(ofp.OFPMP_TABLE, agent.table_stats(0, 1, 2, 3) * 2),
        "port-stats": reply(ofp.OFPMP_PORT_STATS, agent.port_stats(1, 2, 3, 4, 5) * 3),
        "queue-stats": reply(ofp.OFPMP_QUEUE, agent.queue_stats(1, 2, 3, 4, 5) * 2),
        "group-stats": reply(
            ofp.OFPMP_GROUP,
            struct.pack("!H2xII4xQQII", 72, 1, 2, 3, 4, 5, 6) + struct.pack("!QQQQ", 1, 2, 3, 4),
        ),
        "groups": reply(ofp.OFPMP_GROUP_DESC, (struct.pack("!HBxI", 72, 1, 2) + bucket * 2) * 2),
        "group-features": reply(ofp.OFPMP_GROUP_FEATURES, struct.pack("!10I", *range(10))),
        "meter-stats": reply(
            ofp.OFPMP_METER,
            struct.pack("!IH6xIQQII", 1, 72, 2, 3, 4, 5, 6) + struct.pack("!QQQQ", 1, 2, 3, 4),
        ),
        "meters": reply(
            ofp.OFPMP_METER_CONFIG,
            struct.pack("!HHI", 56, 1, 2)
            + struct.pack("!HHII4x", 1, 16, 3, 4)
            + struct.pack("!HHIIB3x", 2, 16, 3, 4, 5)
            + struct.pack("!HHIII", 0xFFFF, 16, 3, 4, 5),
        ),
        "meter-features": reply(ofp.OFPMP_METER_FEATURES, struct.pack("!IIIBB2x", 1, 2, 3, 4, 5)),
        "tables": reply(ofp.OFPMP_TABLE_FEATURES, tables() * 2),
        "ports": ports(1, 2, 3),
        "ports-more": reply(ofp.OFPMP_PORT_DESC, agent.port(bridge_port(9)), flags=1),
        "experimenter-stats": reply(0xFFFF, struct.pack("!II", 0x2320, 1) + bytes(32)),
        "depths": reply(
            0xFFFF,
            struct.pack("!II", oxm.EXPERIMENTER_ID, queue_depth.EXP_TYPE_QUEUE_DEPTH)
            + queue_depth.encode_reply(
                [queue_depth.QueueDepth(1, 2, 3000, 4000, 125_000, 25_000_000, 7, 8, 9)]
            ),
            xid=0xFA17,
        ),
        "records": reply(
            0xFFFF,
            struct.pack("!II", oxm.EXPERIMENTER_ID, flow_records.EXP_TYPE_FLOW_RECORDS)
            + flow_records.encode_reply([record(FLOW), record(FLOW6)]),
            xid=0xFA17,
        ),
        "changes": reply(
            0xFFFF,
            struct.pack("!II", oxm.EXPERIMENTER_ID, flow_changes.EXP_TYPE_FLOW_CHANGES)
            + flow_changes.encode_reply(
                flow_changes.Changes(
                    flow_changes.Chunk(2, flow_changes.ChunkFlags.ANEW, 3, 1000, 4, 5, 6),
                    flow_records.encode_reply([record(FLOW), record(FLOW6)]),
                    segment_state.encode_key(FLOW),
                )
            ),
            xid=0xFA180001,
        ),
        "segments": reply(
            0xFFFF,
            struct.pack("!II", oxm.EXPERIMENTER_ID, segment_state.EXP_TYPE_SEGMENTS)
            + segment_state.encode_state(segment_of(FLOW))
            + segment_state.encode_state(segment_of(FLOW6)),
        ),
        "laws": reply(
            0xFFFF,
            struct.pack("!II", oxm.EXPERIMENTER_ID, window_law.EXP_TYPE_LAW_STATS)
            + window_law.encode_reply([law_state(1, FairQLaw.kind), law_state(2, IqmLaw.kind)]),
        ),
        "queue-laws": reply(
            0xFFFF,
            struct.pack("!II", oxm.EXPERIMENTER_ID, queue_law.EXP_TYPE_QUEUE_LAW_STATES)
            + queue_law.encode_reply(
                [
                    queue_law.QueueLawState(1, 1, AfcdLaw.kind, Variant.OURS, 3, 900, 8, 7),
                    queue_law.QueueLawState(2, 0, RedLaw.kind, Variant.PAPER, 0),
                ]
            ),
        ),
        "segment-counts": reply(
            0xFFFF,
            struct.pack("!II", oxm.EXPERIMENTER_ID, segment_counts.EXP_TYPE_SEGMENT_COUNTS)
            + b"".join(segment_counts.encode_reply(SEGMENT_COUNTS)),
        ),
        "error-segment-counts": agent.error(
            1, ofp.OFPBRC_BAD_EXP_TYPE, wire(segment_counts.request(DATAPATH))
        ),
        "error-deadlines": agent.error(
            1, ofp.OFPBRC_BAD_EXP_TYPE, wire(deadlines.set_deadlines(DATAPATH, DEADLINES))
        ),
        "port-settings": port_settings.messages(PORTS)[0],
        "error-port-settings": agent.error(1, ofp.OFPBRC_BAD_EXP_TYPE, wire(port_settings.request(DATAPATH))),
        "error-law": agent.error(0xFFFF, window_law.ERROR_LAW_NO_QUEUE, wire(set_law(1)), "no queue"),
        "error-law-unknown": agent.error(1, ofp.OFPBRC_BAD_EXP_TYPE, wire(set_law(1))),
        "error-queue-law": agent.error(
            0xFFFF, window_law.ERROR_LAW_EXISTS, wire(set_queue_law(1)), "another controller has it"
        ),
        "error-queue-law-unknown": agent.error(1, ofp.OFPBRC_BAD_EXP_TYPE, wire(set_queue_law(1))),
        "error-queue-law-rule": agent.error(
            0xFFFF, window_law.ERROR_LAW_UNKNOWN, wire(flowmod.queue_rule(DATAPATH, 1, 1, 2))
        ),
        "error-law-rule": agent.error(0xFFFF, window_law.ERROR_LAW_UNKNOWN, wire(law_rule())),
    }
    cookies = {
        "syn": pipeline.COOKIE_TCP,
        "syn6": pipeline.COOKIE_HELD,
        "arp": pipeline.COOKIE_ARP,
        "vlan": pipeline.COOKIE_SOURCE,
    }
    for name, data in frames().items():
        found[f"packet-in-{name}"] = packet_in(data, cookies.get(name, pipeline.COOKIE_TCP))
    found["packet-in-dropped"] = dropped_packet.encode(dropped_packet.DroppedPacket(1, frames()["syn"], 1500))
    found["packet-in-copy"] = segment_copies.encode(segment_copies.SegmentCopy(1, frames()["syn"], 1500))
    found["packet-in-fields"] = packet_in(
        frames()["syn"], in_port=1, metadata=(5, 7), eth_type=0x0800, ip_proto=6, tcp_flags=(2, 2)
    )
    return found


def law_state(law, kind):
    return window_law.LawState(law, law, 30_000, 2920, 20_000, 31_250, 7, 2, 1, 1460, 4, 3, kind, 99, 1)


SEGMENT_COUNTS = segment_counts.SegmentCounts(
    {"lost": 9, "reinjected": 8}, {"wake": 3, "wake: addresses not known": 1, "reinject": 8}, 1
)


def acks_of(flow, tags=()):
    return Addressing(flow.reversed, "02:00:00:00:00:02", "02:00:00:00:00:01", tags)


PORTS = {
    1: PortSettings(VlanMode.ACCESS, 10),
    2: PortSettings(VlanMode.NATIVE_TAGGED, 7, ((0, 9), (20, 4095))),
    3: PortSettings(bond="bond0", standby=True, mirror=True),
}
DEADLINES = [deadlines.HandshakeDeadline(FLOW, 250_000), deadlines.HandshakeDeadline(FLOW6, None)]


def set_law(law, command=window_law.LawCommand.ADD, kind=FairQLaw, **more):
    return window_law.set_law(DATAPATH, command, law, kind(**more))


def set_queue_law(law, command=window_law.LawCommand.ADD, kind=AfcdLaw):
    return queue_law.set_queue_law(DATAPATH, command, law, kind())


def law_rule(law=1):
    change = RuleChange(RuleTarget(PortKey(1, law), None), WindowRule(WindowKind.LAW, law))
    return flowmod.window_rule(DATAPATH, change, 2)


def record(key):
    return flow_records.FlowRecord(
        key=key,
        wscale=7,
        mss=1460,
        port=1,
        flags=flow_records.KNOWN,
        bytes=1000,
        packets=10,
        rewritten=3,
        acked=4,
        idle_ms=5,
        rtt_us=600,
    )


def segment_of(key):
    return SegmentState(
        key=key,
        found=True,
        port=1,
        seq_next=5,
        ack=6,
        window=7,
        wscale=7,
        tsval=1,
        tsecr=2,
        has_timestamps=True,
        idle_ms=3,
        fin=False,
        rst=False,
    )


def from_controller():
    """Messages for the agent, by name."""
    window = RuleChange(RuleTarget(PortKey(1, 1), None), WindowRule(WindowKind.WINDOW, 20000))
    pool = RuleChange(RuleTarget(PortKey(1, 2), None), WindowRule(WindowKind.POOL, 60000))
    single = RuleChange(RuleTarget(PortKey(1, 1), FLOW), WindowRule(WindowKind.WINDOW, 3000))
    single6 = RuleChange(RuleTarget(PortKey(1, 1), FLOW6), WindowRule(WindowKind.WINDOW, 3000))
    tagged = FLOW._replace(vlan=7)
    in_vlan = RuleChange(RuleTarget(PortKey(1, 1), tagged), WindowRule(WindowKind.WINDOW, 3000))
    made = {
        "echo-request": parser.OFPEchoRequest(DATAPATH, b"data"),
        "features-request": parser.OFPFeaturesRequest(DATAPATH),
        "get-config": parser.OFPGetConfigRequest(DATAPATH),
        "set-config": parser.OFPSetConfig(DATAPATH, 0, 128),
        "barrier": parser.OFPBarrierRequest(DATAPATH),
        "role": parser.OFPRoleRequest(DATAPATH, ofp.OFPCR_ROLE_EQUAL, 0),
        "role-master": parser.OFPRoleRequest(DATAPATH, ofp.OFPCR_ROLE_MASTER, 1),
        "window": flowmod.window_rule(DATAPATH, window, 2),
        "pool": flowmod.window_rule(DATAPATH, pool, 2),
        "window-of-flow": flowmod.window_rule(DATAPATH, single, 2),
        "window-of-flow-6": flowmod.window_rule(DATAPATH, single6, 2),
        "copies": segment_copies.requests(DATAPATH, 2)[0],
        "copies-none": segment_copies.withdrawals(DATAPATH)[0],
        "clear": pipeline.clear(DATAPATH),
        "depths": queue_depth.request(DATAPATH),
        "records": flow_records.request(DATAPATH, 1000),
        "changes": flow_changes.request(DATAPATH, flow_changes.ChangeRequest(1, 1000, 512)),
        "segments": segment_state.request(DATAPATH, [FLOW, FLOW6]),
        "thresholds": congestion.set_thresholds(DATAPATH, 1, Thresholds(1000, 500, True)),
        "thresholds-none": congestion.set_thresholds(DATAPATH, 1, Thresholds(0, 0)),
        "law": set_law(1),
        "law-iqm": set_law(2, kind=IqmLaw),
        "law-fairswitch": set_law(4, kind=FairSwitchLaw),
        "law-las": set_law(3, kind=LasLaw, target_ppm=10_000),
        "law-changed": set_law(1, window_law.LawCommand.MODIFY, LasLaw),
        "law-deleted": window_law.set_law(DATAPATH, window_law.LawCommand.DELETE, 2),
        "laws-deleted": window_law.set_law(DATAPATH, window_law.LawCommand.DELETE, window_law.ALL_LAWS),
        "law-rule": law_rule(),
        "queue-law": set_queue_law(1),
        "queue-law-red": set_queue_law(2, kind=RedLaw),
        "queue-law-changed": set_queue_law(1, window_law.LawCommand.MODIFY, MarkLaw),
        "queue-law-deleted": queue_law.set_queue_law(DATAPATH, window_law.LawCommand.DELETE, 2),
        "queue-laws-deleted": queue_law.set_queue_law(
            DATAPATH, window_law.LawCommand.DELETE, window_law.ALL_LAWS
        ),
        "queue-law-rule": flowmod.queue_rule(DATAPATH, 1, 1, 2),
        "queue-law-rule-deleted": flowmod.queue_rule(DATAPATH, 1, None, 2),
        "queue-law-states": queue_law.request(DATAPATH),
        "wake": waking.wake(DATAPATH, [acks_of(FLOW, (7,)), acks_of(FLOW6)]),
        "deadlines": deadlines.set_deadlines(DATAPATH, DEADLINES),
        "port-settings": port_settings.request(DATAPATH),
        "window-in-vlan": flowmod.window_rule(DATAPATH, in_vlan, 2),
        "recovery": recovery.set_recovery(DATAPATH, recovery.SetRecovery(1, 3, 1 << 20, 1000, 500, 2)),
        "recovery-none": recovery.set_recovery(DATAPATH, recovery.SetRecovery(1, 0, 0, 0, 0, 0)),
        "segment-counts": segment_counts.request(DATAPATH),
        "law-states": window_law.request(DATAPATH),
        "desc": parser.OFPDescStatsRequest(DATAPATH, 0),
        "ports": parser.OFPPortDescStatsRequest(DATAPATH, 0),
        "flows": parser.OFPFlowStatsRequest(DATAPATH),
        "aggregate": parser.OFPAggregateStatsRequest(
            DATAPATH, 0, 0xFF, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0, parser.OFPMatch()
        ),
        "table": parser.OFPTableStatsRequest(DATAPATH, 0),
        "port-stats": parser.OFPPortStatsRequest(DATAPATH, 0, ofp.OFPP_ANY),
        "queue-stats": parser.OFPQueueStatsRequest(DATAPATH, 0, ofp.OFPP_ANY, ofp.OFPQ_ALL),
        "packet-out": pipeline.packet_out(DATAPATH, frames()["syn"], ofp.OFPP_CONTROLLER, [1]),
    }
    found = {name: wire(each) for name, each in made.items()}
    found["hello"] = HELLO
    found["hello-bare"] = message(ofp.OFPT_HELLO)
    found["error"] = agent.error(1, 6, message(14, bytes(60)))
    found["echo-reply"] = message(ofp.OFPT_ECHO_REPLY)
    return found
