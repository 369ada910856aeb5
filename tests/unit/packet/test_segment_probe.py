"""Probes of foreign segments: only the controller that has sent one believes it."""

import pytest

from fairq_ryu.model import PortKey
from fairq_ryu.packet import parse, segment_probe
from fairq_ryu.packet.segment_probe import SegmentProbe

KEY = bytes(range(16))
PROBE = SegmentProbe(PortKey(0xFFFF00000001, 7), 123_456)
FRAME = segment_probe.build(PROBE, KEY)


def test_a_probe_is_read_back():
    assert len(FRAME) == 60 and segment_probe.is_probe(FRAME)
    assert segment_probe.parse(FRAME, KEY) == PROBE
    frame = parse.parse(FRAME)
    assert frame is not None
    assert frame.dst == segment_probe.GROUP and int(frame.dst[:2], 16) & 1 and not int(frame.src[:2], 16) & 1


@pytest.mark.parametrize("at", [0, 12, 14, 25, 33, 34, 41])
def test_a_changed_probe_is_none(at):
    changed = bytearray(FRAME)
    changed[at] ^= 1
    assert segment_probe.parse(bytes(changed), KEY) is None


def test_a_probe_of_another_key_and_a_short_frame_are_none():
    assert segment_probe.parse(FRAME, bytes(16)) is None
    for size in range(42):
        assert segment_probe.parse(FRAME[:size], KEY) is None
