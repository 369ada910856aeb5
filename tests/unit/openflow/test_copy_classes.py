"""The actions that send frames to the controller, byte by byte."""

from fairq_ryu.openflow import copy_classes, pipeline
from fairq_ryu.openflow.copy_classes import CopyClass
from tests.support.fakes import DATAPATH, ryu_decode, wire


def encoded(action):
    buffer = bytearray()
    action.serialize(buffer, 0)
    return buffer.hex()


def test_a_metered_copy_is_as_open_vswitch_encodes_it():
    """``ovs-ofctl parse-actions`` says: controller(max_len=192,meter_id=4194500609)."""
    action = copy_classes.metered(192, copy_classes.meter_id(CopyClass.SYN, 1))
    assert encoded(action) == (
        "ffff0020"  # experimenter, 32 bytes
        "00002320"  # Nicira
        "0025000000000000"  # controller2
        "0000000800c00000"  # at most 192 bytes
        "00050008fa030001"  # the meter
    )


def test_a_shared_copy_names_its_class_and_continues_in_its_table():
    (rule, *_) = pipeline.copy_rules(DATAPATH, copy_classes.shared)
    (applied, goto) = ryu_decode(wire(rule)).instructions
    named, resubmit = applied.actions
    assert (named.key, named.value) == ("reg0", CopyClass.SYN)
    assert resubmit.table_id == pipeline.COPIES and goto.table_id == pipeline.SOURCE


def test_the_table_of_copies_is_the_last():
    assert pipeline.COPIES == pipeline.DESTINATION + 1


def test_rules_with_and_without_shares_replace_each_other():
    def places(rules):
        return [(rule.table_id, rule.priority, dict(rule.match.items()), rule.cookie) for rule in rules]

    there = pipeline.copy_rules(DATAPATH, copy_classes.shared)
    assert places(there) == places(pipeline.copy_rules(DATAPATH, copy_classes.plain))
    for plain in pipeline.pipeline(DATAPATH), pipeline.hold(DATAPATH, 3):
        assert not any("reg0" in str(rule) for rule in plain)
    held = pipeline.hold(DATAPATH, 3, copy_classes.shared)
    assert places(held) == places(pipeline.hold(DATAPATH, 3))


def test_each_class_has_the_cookie_and_size_of_its_rules():
    plain = {rule.cookie: rule for rule in pipeline.class_rules(DATAPATH)}
    for rule in [*pipeline.copy_rules(DATAPATH, copy_classes.plain), *pipeline.hold(DATAPATH, 3)]:
        (copy,) = rule.instructions[0].actions
        (same,) = plain[rule.cookie].instructions[0].actions
        assert (copy.port, copy.max_len) == (same.port, same.max_len)
