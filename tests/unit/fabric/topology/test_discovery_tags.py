"""Nobody but the controller makes a tag, and a tag is for one port and one time."""

import pytest

from fairq_ryu.fabric.topology import discovery_tags
from fairq_ryu.fabric.topology.discovery_tags import SLOT, DiscoveryTags
from fairq_ryu.model import PortKey
from fairq_ryu.packet import lldp

PORT, NOW = PortKey(1, 2), 1000.0
TAGS = DiscoveryTags(b"k" * 32)
SLOT_NOW = TAGS.slot(NOW)
TAG = TAGS.tag(PORT, SLOT_NOW)


def test_a_tag_is_as_long_as_its_field():
    assert len(TAG) == discovery_tags.TAG_SIZE == lldp.TAG_SIZE


def test_a_fresh_tag_is_valid():
    assert TAGS.valid(PORT, SLOT_NOW, TAG, NOW)
    assert TAGS.valid(PORT, SLOT_NOW, TAG, NOW + 4 * SLOT)


@pytest.mark.parametrize(
    ("port", "slot", "tag", "now"),
    [
        (PORT, SLOT_NOW, TAG, NOW + 5 * SLOT),
        (PORT, SLOT_NOW, TAG, NOW - SLOT),
        (PORT, SLOT_NOW + 1, TAG, NOW + SLOT),
        (PortKey(1, 3), SLOT_NOW, TAG, NOW),
        (PortKey(2, 2), SLOT_NOW, TAG, NOW),
        (PORT, SLOT_NOW, bytes(16), NOW),
        (PORT, SLOT_NOW, TAG[:8], NOW),
        (PORT, SLOT_NOW, DiscoveryTags(b"j" * 32).tag(PORT, SLOT_NOW), NOW),
    ],
    ids=["old", "of the future", "newer slot", "other port", "other bridge", "none", "short", "other key"],
)
def test_any_other_is_not(port, slot, tag, now):
    assert not TAGS.valid(port, slot, tag, now)
