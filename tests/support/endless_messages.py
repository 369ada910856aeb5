"""OpenFlow messages that keep Ryu's decoder in an endless loop: parts whose length is 0."""

from __future__ import annotations

import struct

from ryu.ofproto import ofproto_v1_3 as ofp

from tests.fuzz.messages import message, reply


def entry(instructions: bytes, length: int | None = None) -> bytes:
    size = 56 + len(instructions) if length is None else length
    return struct.pack("!H46x", size) + struct.pack("!HHI", 1, 4, 0) + instructions


def apply(actions: bytes) -> bytes:
    return entry(struct.pack("!HH4x", ofp.OFPIT_APPLY_ACTIONS, 8 + len(actions)) + actions)


NICIRA = struct.pack("!I", 0x2320)
# Each makes Ryu's decoder loop endlessly. HELLO, EXPERIMENTER (a bundle), QUEUE_GET_CONFIG_REPLY, and replies
# with flows, group statistics, groups, meter statistics, meters and table features.
ENDLESS = {
    "hello": message(ofp.OFPT_HELLO, struct.pack("!HHI", 9, 0, 0)),
    "hello-bitmap": message(ofp.OFPT_HELLO, struct.pack("!HHI", 1, 0, 0)),
    "bundle-property": message(
        ofp.OFPT_EXPERIMENTER, struct.pack("!IIIHH", 0x4F4E4600, 2300, 1, 0, 0) + struct.pack("!HHI", 1, 0, 0)
    ),
    "queue": message(ofp.OFPT_QUEUE_GET_CONFIG_REPLY, struct.pack("!I4xIIH6x", 1, 1, 1, 0)),
    "queue-property": message(
        ofp.OFPT_QUEUE_GET_CONFIG_REPLY, struct.pack("!I4xIIH6xHH4xH6x", 1, 1, 1, 32, 1, 0, 5)
    ),
    "queue-property-unknown": message(
        ofp.OFPT_QUEUE_GET_CONFIG_REPLY, struct.pack("!I4xIIH6xHH4xH6x", 1, 1, 1, 32, 9, 16, 5)
    ),
    "flow": reply(ofp.OFPMP_FLOW, entry(b"", 0)),
    "instruction": reply(ofp.OFPMP_FLOW, entry(struct.pack("!HHI", ofp.OFPIT_APPLY_ACTIONS, 0, 0))),
    "action": reply(ofp.OFPMP_FLOW, apply(struct.pack("!HHIHB", 25, 0, 0x80000004, 0, 1) + bytes(5))),
    "experimenter-action": reply(ofp.OFPMP_FLOW, apply(struct.pack("!HHI", 0xFFFF, 0, 1) + bytes(8))),
    "action-in-action": reply(
        ofp.OFPMP_FLOW,
        apply(
            struct.pack("!HH", 0xFFFF, 32)
            + NICIRA
            + struct.pack("!HHIHB3xH", 35, 0, 0, 0, 0, 0)
            + struct.pack("!HHI", 0xFFFF, 0, 1)
        ),
    ),
    "controller2-property": reply(
        ofp.OFPMP_FLOW,
        apply(struct.pack("!HH", 0xFFFF, 24) + NICIRA + struct.pack("!H6xHHI", 37, 3, 0, 0)),
    ),
    "group-statistics": reply(ofp.OFPMP_GROUP, bytes(40)),
    "group": reply(ofp.OFPMP_GROUP_DESC, bytes(8)),
    "bucket": reply(ofp.OFPMP_GROUP_DESC, struct.pack("!HBxI", 24, 1, 1) + bytes(16)),
    "bucket-action": reply(
        ofp.OFPMP_GROUP_DESC,
        struct.pack("!HBxIHHII4x", 40, 1, 1, 32, 1, 0, 0) + struct.pack("!HHIHB5x", 25, 0, 0x80000004, 0, 1),
    ),
    "meter-statistics": reply(ofp.OFPMP_METER, bytes(40)),
    "meter": reply(ofp.OFPMP_METER_CONFIG, bytes(8)),
    "table": reply(ofp.OFPMP_TABLE_FEATURES, bytes(64)),
    "table-property": reply(ofp.OFPMP_TABLE_FEATURES, struct.pack("!H62xHHI", 72, 2, 0, 0)),
    "table-property-id": reply(ofp.OFPMP_TABLE_FEATURES, struct.pack("!H62xHHHH", 72, 0, 8, 1, 0)),
}
