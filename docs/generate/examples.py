"""The messages of the window channel that its page shows byte by byte."""

from __future__ import annotations

import ipaddress
from typing import Any

from ryu.ofproto import ofproto_protocol
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent import messages
from fairq_ryu.channel import (
    congestion,
    deadlines,
    far_queues,
    flow_changes,
    flow_priorities,
    flowmod,
    hidden_queue,
    port_mode,
    port_settings,
    queue_depth,
    queue_law,
    recovery,
    segment_copies,
    segment_counts,
    segment_state,
    tenants,
    waking,
    window_law,
)
from fairq_ryu.channel.oxm import EXPERIMENTER_ID
from fairq_ryu.config.loader import Config
from fairq_ryu.far_queue import FAR, FarQueue, Why
from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import (
    Congestion,
    FlowKey,
    PortKey,
    RuleChange,
    RuleTarget,
    Thresholds,
    WindowKind,
    WindowRule,
)
from fairq_ryu.packet.tcp_build import Addressing
from fairq_ryu.policies import base
from fairq_ryu.policies.choice import make
from fairq_ryu.port_settings import PortSettings, VlanMode
from fairq_ryu.queue_law_spec import Limits, Variant
from fairq_ryu.tenants import Priorities

_PEER = ofproto_protocol.ProtocolDesc(ofp.OFP_VERSION)
_PORT = PortKey(1, 17)
_FLOW = FlowKey("10.0.0.1", "10.0.0.17", 5001, 40000)
# From 10.0.0.1:5001 to 10.0.0.17:40000, with MSS 1460 and window scale 7.
_SYN = bytes.fromhex(
    "020000000002 020000000001 0800 45000030 12344000 3f061583 0a000001 0a000011"
    "1389 9c40 000003e8 00000000 7002ffff bc550000 020405b4 01030307"
)
WINDOW_LAW = base.switch_law(make("las", Config()), _PORT)
QUEUE_LAW = base.queue_law(make("afcd", Config()), _PORT)
"""As the controller sends them by default."""
_FAR = FarQueue("eth0", 1_250_000_000, 1_000_000)
_TENANTS = tenants.SetTenants(
    3, 2000, {1: 2}, {ipaddress.ip_network("10.0.1.0/24"): 1}, Priorities({443: 200}, {46: 400})
)
_TENANT = tenants.TenantState(3, 17, 1, 4, 98_765, 123_456_789, 12, 43690, 40_000)
_DEPTH = queue_depth.QueueDepth(17, 9, 30280, 48448, 125000, 25000000, 3, 123456789012, 987654321098)
_HIDDEN = hidden_queue.HiddenQueue(
    FAR | 17, Why.OTHERS, 4100, 5200, 125_000_000, 74_900_000, 75_100_000, 1_234_567, 850
)
_LAW = window_law.LawState(
    law=17, port=17, pool=30500, window=0, queue=30280, target=31250, flows=9, young=3, beta=0, segment=1460,
    mode=0, limited_by=0, kind=FairQLaw.kind, updates=123456, late=7, waiting=12, held=256, released=240,
    overdue=3, overflowed=1,
)  # fmt: skip
_QUEUE_LAW = queue_law.QueueLawState(
    law=17, port=17, kind=AfcdLaw.kind, variant=Variant.OURS, limits=Limits.SHARE, judged=123456,
    dropped=789, marked=0, not_ect=123456, unmarked=0, fair_q16=1000 << 16, flows=2, samples=2000,
    sample_every=10, target_bytes=12500, delay_us=4200, target_us=500, interval_us=12000,
)  # fmt: skip
_COUNTS = segment_counts.SegmentCounts({"lost": 120, "reinjected": 118}, {"wake": 9, "reinject": 118}, 4)
_CHANGES = flow_changes.Changes(
    flow_changes.Chunk(83, flow_changes.ChunkFlags(0), 420, 1000, 2000, 40, 2),
    b"",
    segment_state.encode_key(_FLOW),
)
_SETTINGS = {
    1: PortSettings(VlanMode.ACCESS, 10),
    2: PortSettings(VlanMode.TRUNK, trunks=((10, 10), (20, 29))),
    3: PortSettings(bond="bond0", standby=True),
}


def _sent(message: Any, xid: int) -> bytes:
    """What Ryu sends."""
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


def _rule(xid: int, rule: WindowRule, flow: FlowKey | None = None) -> bytes:
    return _sent(flowmod.window_rule(_PEER, RuleChange(RuleTarget(_PORT, flow), rule), 2), xid)


def _reply(xid: int, number: int, *records: bytes) -> bytes:
    """The agent's answer to a multipart request."""
    prefix = EXPERIMENTER_ID.to_bytes(4, "big") + number.to_bytes(4, "big")
    return next(messages.multipart(xid, ofp.OFPMP_EXPERIMENTER, list(records), prefix))


def dumps() -> dict[str, bytes]:
    """The messages by the names in the page's marks."""
    add = window_law.LawCommand.ADD
    notice = congestion.CongestionNotice(17, Congestion.CNG, 51482, 987654321098)
    acks = Addressing(_FLOW.reversed, "02:00:00:00:00:11", "02:00:00:00:00:01")
    windows = port_mode.PortWindows(17, port_mode.OBSERVE, 4618, 0, 4511)
    (settings,) = port_settings.messages(_SETTINGS)
    return {
        "pool-rule": _rule(0x101, WindowRule(WindowKind.POOL, 31250)),
        "window-rule": _rule(0x102, WindowRule(WindowKind.WINDOW, 5840), _FLOW),
        "law-rule": _rule(0x107, WindowRule(WindowKind.LAW, 17)),
        "queue-depth-request": _sent(queue_depth.request(_PEER), 0x104),
        "queue-depth-reply": _reply(
            0x104, queue_depth.EXP_TYPE_QUEUE_DEPTH, queue_depth.encode_reply([_DEPTH])
        ),
        "flow-change-request": _sent(
            flow_changes.request(_PEER, flow_changes.ChangeRequest(77, 1000, 512)), 0x110
        ),
        "flow-change-reply": _reply(
            0x110, flow_changes.EXP_TYPE_FLOW_CHANGES, flow_changes.encode_reply(_CHANGES)
        ),
        "set-law": _sent(window_law.set_law(_PEER, add, 17, WINDOW_LAW), 0x106),
        "law-request": _sent(window_law.request(_PEER, 17), 0x108),
        "law-reply": _reply(0x108, window_law.EXP_TYPE_LAW_STATS, window_law.encode_reply([_LAW])),
        "set-deadlines": _sent(
            deadlines.set_deadlines(_PEER, [deadlines.HandshakeDeadline(_FLOW, 250_000)]), 0x10C
        ),
        "set-tenants": _sent(tenants.set_tenants(_PEER, _TENANTS), 0x10D),
        "set-priorities": _sent(
            flow_priorities.set_priorities(_PEER, [flow_priorities.FlowPriority(_FLOW, 400)]), 0x118
        ),
        "tenants-request": _sent(tenants.request(_PEER, 17), 0x10E),
        "tenants-reply": _reply(0x10E, tenants.EXP_TYPE_TENANT_STATES, tenants.encode_reply([_TENANT])),
        "queue-law-rule": _sent(flowmod.queue_rule(_PEER, 17, 17, 2), 0x111),
        "set-queue-law": _sent(queue_law.set_queue_law(_PEER, add, 17, QUEUE_LAW), 0x112),
        "queue-law-request": _sent(queue_law.request(_PEER, 17), 0x113),
        "queue-law-reply": _reply(
            0x113, queue_law.EXP_TYPE_QUEUE_LAW_STATES, queue_law.encode_reply([_QUEUE_LAW])
        ),
        "set-thresholds": _sent(congestion.set_thresholds(_PEER, 17, Thresholds(50000, 25000, True)), 0x105),
        "congestion": congestion.notice_message(notice),
        "copy-rule": _sent(segment_copies.requests(_PEER, 2)[0], 0x10D),
        "copy": segment_copies.encode(segment_copies.SegmentCopy(17, _SYN, len(_SYN))),
        "wake": _sent(waking.wake(_PEER, [acks]), 0x109),
        "set-recovery": _sent(
            recovery.set_recovery(_PEER, recovery.SetRecovery(17, 2, 1 << 20, 1000, 50_000, 2)), 0x10A
        ),
        "segment-count-request": _sent(segment_counts.request(_PEER), 0x10B),
        "segment-count-reply": _reply(
            0x10B, segment_counts.EXP_TYPE_SEGMENT_COUNTS, *segment_counts.encode_reply(_COUNTS)
        ),
        "set-port-mode": _sent(port_mode.set_port_mode(_PEER, 17, port_mode.OBSERVE), 0x10D),
        "port-mode-request": _sent(port_mode.request(_PEER), 0x10E),
        "hidden-queue-request": _sent(hidden_queue.request(_PEER), 0x10F),
        "hidden-queue-reply": _reply(
            0x10F, hidden_queue.EXP_TYPE_HIDDEN_QUEUE, hidden_queue.encode_reply([_HIDDEN])
        ),
        "port-mode-reply": _reply(0x10E, port_mode.EXP_TYPE_PORT_MODE, port_mode.encode_reply([windows])),
        "set-far-queues": _sent(far_queues.set_far_queues(_PEER, {_FAR.port: _FAR}), 0x114),
        "far-queue-request": _sent(far_queues.request(_PEER), 0x115),
        "far-queue-reply": _reply(
            0x115,
            far_queues.EXP_TYPE_FAR_QUEUES,
            far_queues.encode_reply([far_queues.FarQueueState(_FAR, True, 17, _FAR.rate // 2)]),
        ),
        "lease-far-rates": _sent(
            far_queues.lease_far_rates(_PEER, far_queues.RateLease(2, {_FAR.port: _FAR.rate // 2})), 0x116
        ),
        "port-settings-request": _sent(port_settings.request(_PEER), 0x10D),
        "port-settings": settings,
    }
