"""FlowMods on the wire: those that Ryu encodes are decoded, and all others are refused with the right error.

Types and codes are those of OpenFlow 1.3.5, section 7.4.4, by Ryu's names. The messages are built from
numbers here, so that the decoder is not checked against itself.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.agent.rule_table import RuleTable
from fairq_ryu.channel import flowmod, oxm
from fairq_ryu.channel.flow_match import decode_match, match_fields, rule_target
from fairq_ryu.channel.flowmod_decoder import decode_flow_mod
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.model import FlowKey, PortKey, RuleChange, RuleTarget, WindowKind, WindowRule
from tests.support.fakes import DATAPATH, FakeDatapath, ryu_decode, wire

FLOW4 = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)
FLOW6 = FlowKey("2001:db8::1", "2001:db8::2", 33000, 80)


# Bytes by hand


def field(number: int, value: bytes, class_: int = 0x8000, mask: int = 0, length: int | None = None) -> bytes:
    """An OXM TLV."""
    return struct.pack("!HBB", class_, number << 1 | mask, len(value) if length is None else length) + value


IN_PORT = field(0, struct.pack("!I", 3))
ETH_IP, ETH_IPV6, TCP = field(5, b"\x08\x00"), field(5, b"\x86\xdd"), field(10, b"\x06")
IPV4 = field(11, bytes([10, 0, 0, 1])) + field(12, bytes([10, 0, 0, 2]))
IPV6 = field(26, bytes(16)) + field(27, bytes(15) + b"\x01")
PORTS = field(13, b"\x80\xe8") + field(14, b"\x00\x50")
TUPLE4, TUPLE6 = ETH_IP + TCP + IPV4 + PORTS, ETH_IPV6 + TCP + IPV6 + PORTS


def match(fields: bytes, kind: int = 1, length: int | None = None) -> bytes:
    """An ofp_match, padded to 8 bytes."""
    size = 4 + len(fields)
    return struct.pack("!HH", kind, size if length is None else length) + fields + bytes(-size % 8)


def window_field(number: int = 1, experimenter: int = 0x0002FA17, mask: int = 0, **more: Any) -> bytes:
    """The OXM of tcp_window (1) or tcp_window_pool (2), 3000 bytes."""
    return field(number, struct.pack("!II", experimenter, 3000), 0xFFFF, mask, **more)


def action(body: bytes, kind: int = 25, length: int | None = None) -> bytes:
    """An action; 25 is set_field."""
    size = 4 + len(body)
    return struct.pack("!HH", kind, size if length is None else length) + body


def instruction(body: bytes, kind: int = 4, length: int | None = None) -> bytes:
    """An instruction; 4 is apply_actions."""
    return struct.pack("!HH4x", kind, 8 + len(body) if length is None else length) + body


SET_WINDOW, SET_POOL = action(window_field(1)), action(window_field(2))


@dataclass(frozen=True)
class Mod:
    """A FlowMod built by hand; its defaults make a valid one."""

    match: bytes = match(IN_PORT)
    instructions: bytes = instruction(SET_WINDOW)
    command: int = 0
    table: int = 0
    cookie: int = 7
    cookie_mask: int = 0
    idle_timeout: int = 0
    hard_timeout: int = 2
    priority: int = 9
    buffer_id: int = 0xFFFFFFFF
    out_port: int = 0xFFFFFFFF
    out_group: int = 0xFFFFFFFF
    flags: int = 0

    def __bytes__(self) -> bytes:
        body = struct.pack(
            "!QQBBHHHIIIHxx",
            self.cookie,
            self.cookie_mask,
            self.table,
            self.command,
            self.idle_timeout,
            self.hard_timeout,
            self.priority,
            self.buffer_id,
            self.out_port,
            self.out_group,
            self.flags,
        )
        body += self.match + self.instructions
        return struct.pack("!BBHI", 4, 14, 8 + len(body), 1) + body


GOOD = Mod()
ADD, MODIFY, MODIFY_STRICT, DELETE, DELETE_STRICT = range(5)


def refusal(message: bytes) -> tuple[int, int]:
    with pytest.raises(OpenFlowError) as caught:
        decode_flow_mod(message)
    return caught.value.type, caught.value.code


# Accepted messages


def test_a_flowmod_made_by_hand():
    decoded = decode_flow_mod(bytes(GOOD))
    assert decoded.command == ADD
    assert decoded.match == {"in_port": 3}
    assert decoded.window == WindowRule(WindowKind.WINDOW, 3000)
    assert (decoded.cookie, decoded.hard_timeout, decoded.priority, decoded.flags) == (7, 2, 9, 0)


@pytest.mark.parametrize(("fields", "version"), [(TUPLE4, 4), (TUPLE6, 6)])
def test_a_whole_five_tuple(fields, version):
    decoded = decode_flow_mod(bytes(replace(GOOD, match=match(fields))))
    flow = rule_target(decoded.match)
    assert isinstance(flow, FlowKey)
    assert (flow.version, flow.sport, flow.dport) == (version, 33000, 80)


@pytest.mark.parametrize("command", [DELETE, DELETE_STRICT])
def test_deletions_need_few_fields(command):
    bare = Mod(match=match(b""), instructions=b"", command=command, table=0xFF, hard_timeout=0, buffer_id=1)
    assert decode_flow_mod(bytes(bare)).window is None
    # Fields that a deletion does not use are ignored.
    assert decode_flow_mod(bytes(replace(bare, idle_timeout=5, instructions=bytes(8)))).match == {}


@pytest.mark.parametrize("command", [MODIFY, MODIFY_STRICT])
def test_a_modification_needs_no_timeout(command):
    decoded = decode_flow_mod(bytes(replace(GOOD, command=command, hard_timeout=0)))
    assert decoded.window == WindowRule(WindowKind.WINDOW, 3000)


PORT_NUMBERS = st.integers(1, 0xFFFFFF00)
UINT16 = st.integers(0, 0xFFFF)
VLANS = st.integers(0, 4094)
FLOWS = st.one_of(
    st.builds(FlowKey, *[st.ip_addresses(v=4).map(str)] * 2, UINT16, UINT16, VLANS),
    st.builds(FlowKey, *[st.ip_addresses(v=6).map(str)] * 2, UINT16, UINT16, VLANS),
)
SIZES = st.integers(0, 0xFFFFFFFF)


@given(
    target=st.one_of(PORT_NUMBERS, FLOWS),
    size=SIZES,
    pool=st.booleans(),
    cookie=st.integers(0, 2**64 - 1),
    lease=st.integers(1, 0xFFFF),
    priority=UINT16,
    flags=st.integers(0, 31),
    command=st.sampled_from([ADD, MODIFY, MODIFY_STRICT]),
)
def test_flowmods_from_ryu_are_decoded(target, size, pool, cookie, lease, priority, flags, command):
    kind = WindowKind.POOL if pool and isinstance(target, int) else WindowKind.WINDOW
    name = "tcp_window_pool" if kind is WindowKind.POOL else "tcp_window"
    if isinstance(target, int):
        wanted: dict[str, Any] = {"in_port": target}
    else:
        ip = f"ipv{target.version}"
        wanted = {"eth_type": 0x0800 if target.version == 4 else 0x86DD, "ip_proto": 6}
        wanted |= {f"{ip}_src": target.src, f"{ip}_dst": target.dst}
        wanted |= {"tcp_src": target.sport, "tcp_dst": target.dport}
        wanted |= {"vlan_vid": 0x1000 | target.vlan} if target.vlan else {}
    message = parser.OFPFlowMod(
        DATAPATH,
        command=command,
        cookie=cookie,
        hard_timeout=lease,
        priority=priority,
        flags=flags,
        match=parser.OFPMatch(**wanted),
        instructions=[parser.OFPInstructionActions(4, [parser.OFPActionSetField(**{name: size})])],
    )
    decoded = decode_flow_mod(wire(message))
    assert decoded.match == wanted
    assert decoded.window == WindowRule(kind, size)
    assert (decoded.command, decoded.cookie, decoded.hard_timeout) == (command, cookie, lease)
    assert (decoded.priority, decoded.flags) == (priority, flags)
    assert rule_target(decoded.match) == target
    assert match_fields(target) == wanted


@given(st.one_of(st.none(), FLOWS), st.one_of(st.none(), SIZES), st.booleans(), st.integers(1, 60))
def test_flowmods_from_the_controller_are_decoded(flow, size, pool, lease):
    target = RuleTarget(PortKey(1, 5), flow)
    pool = pool and flow is None and size is not None
    kind = WindowKind.POOL if pool else WindowKind.WINDOW
    change = RuleChange(target, None if size is None else WindowRule(kind, size))
    decoded = decode_flow_mod(wire(flowmod.window_rule(DATAPATH, change, lease)))
    # A rule for a flow's data applies to its ACKs: the other direction.
    assert rule_target(decoded.match) == (5 if flow is None else flow.reversed)
    if size is None:
        assert (decoded.command, decoded.window, decoded.cookie_mask) == (DELETE_STRICT, None, 0)
    else:
        assert (decoded.command, decoded.hard_timeout) == (ADD, lease)
        assert decoded.window == WindowRule(kind, size)


def test_a_window_that_does_not_fit_is_the_largest():
    change = RuleChange(RuleTarget(PortKey(1, 5), None), WindowRule(WindowKind.WINDOW, 1 << 40))
    message = flowmod.window_rule(DATAPATH, change, 2)
    assert decode_flow_mod(wire(message)).window == WindowRule(WindowKind.WINDOW, 0xFFFFFFFF)


def test_the_controllers_deletion_of_all_rules_is_decoded():
    decoded = decode_flow_mod(wire(flowmod.clear(DATAPATH)))
    assert (decoded.command, decoded.match, decoded.cookie_mask) == (DELETE, {}, 0)


def test_the_window_fields_on_the_wire():
    data = bytearray()
    parser.OFPActionSetField(tcp_window_pool=0x01020304).serialize(data, 0)
    # set_field, 16 bytes; class 0xffff, field 2 without a mask, 8 bytes; experimenter; value.
    assert bytes(data).hex() == "00190010" + "ffff0408" + "0002fa17" + "01020304"
    oxm.register()  # a second registration changes nothing
    again = bytearray()
    parser.OFPActionSetField(tcp_window_pool=0x01020304).serialize(again, 0)
    assert again == data


def test_ryu_reads_the_window_fields_back():
    message = ryu_decode(bytes(replace(GOOD, instructions=instruction(SET_POOL))))
    (found,) = message.instructions[0].actions
    assert (found.key, found.value) == ("tcp_window_pool", 3000)


# Refused messages

BAD_REQUEST, BAD_ACTION, BAD_INSTRUCTION, BAD_MATCH, FLOW_MOD_FAILED = 1, 2, 3, 4, 5


def test_the_error_types_are_those_of_the_specification():
    assert ofp.OFPET_BAD_REQUEST == BAD_REQUEST
    assert ofp.OFPET_BAD_ACTION == BAD_ACTION
    assert ofp.OFPET_BAD_INSTRUCTION == BAD_INSTRUCTION
    assert ofp.OFPET_BAD_MATCH == BAD_MATCH
    assert ofp.OFPET_FLOW_MOD_FAILED == FLOW_MOD_FAILED


@pytest.mark.parametrize(
    ("changes", "error"),
    {
        "buffer_id": ({"buffer_id": 1}, (BAD_REQUEST, ofp.OFPBRC_BUFFER_UNKNOWN)),
        "no hard_timeout": ({"hard_timeout": 0}, (FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TIMEOUT)),
        "idle_timeout": ({"idle_timeout": 1}, (FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TIMEOUT)),
        "command": ({"command": 5}, (FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_COMMAND)),
        "table": ({"table": 2}, (FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TABLE_ID)),
        "add to all tables": ({"table": 0xFF}, (FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TABLE_ID)),
        "modify all tables": (
            {"command": MODIFY, "table": 0xFF},
            (FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TABLE_ID),
        ),
        "delete in a table": ({"command": DELETE, "table": 2}, (FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_TABLE_ID)),
        "flags": ({"flags": 32}, (FLOW_MOD_FAILED, ofp.OFPFMFC_BAD_FLAGS)),
    }.values(),
    ids=str,
)
def test_wrong_head(changes, error):
    assert refusal(bytes(replace(GOOD, **changes))) == error


def bad_match(code: str) -> tuple[int, int]:
    return BAD_MATCH, getattr(ofp, f"OFPBMC_{code}")


MATCHES = {
    "standard match of OpenFlow 1.0": (match(IN_PORT, kind=0), "BAD_TYPE"),
    "unknown match type": (match(IN_PORT, kind=2), "BAD_TYPE"),
    "shorter than its head": (match(IN_PORT, length=3), "BAD_LEN"),
    "longer than the message": (match(IN_PORT, length=500), "BAD_LEN"),
    "a field cut by the match's length": (match(IN_PORT, length=10), "BAD_LEN"),
    "a field's head cut": (match(IN_PORT, length=6), "BAD_LEN"),
    "masked": (match(field(0, bytes(8), mask=1)), "BAD_MASK"),
    "masked address": (match(ETH_IP + field(11, bytes(8), mask=1)), "BAD_MASK"),
    "twice": (match(IN_PORT + IN_PORT), "DUP_FIELD"),
    "too short a value": (match(field(0, bytes(3))), "BAD_LEN"),
    "too long a value": (match(field(0, bytes(5))), "BAD_LEN"),
    "no value": (match(field(0, b"")), "BAD_LEN"),
    "a field this table lacks": (match(field(3, bytes(6))), "BAD_FIELD"),
    "a field that nobody knows": (match(field(100, bytes(4))), "BAD_FIELD"),
    "a Nicira field": (match(field(0, bytes(2), class_=0)), "BAD_FIELD"),
    "the window field": (match(window_field()), "BAD_FIELD"),
    "addresses without eth_type": (match(TCP + IPV4 + PORTS), "BAD_PREREQ"),
    "v4 addresses in IPv6": (match(ETH_IPV6 + TCP + IPV4 + PORTS), "BAD_PREREQ"),
    "v6 addresses in IPv4": (match(ETH_IP + TCP + IPV6 + PORTS), "BAD_PREREQ"),
    "ports without ip_proto": (match(ETH_IP + IPV4 + PORTS), "BAD_PREREQ"),
    "ports of UDP": (match(ETH_IP + field(10, b"\x11") + IPV4 + PORTS), "BAD_PREREQ"),
    "ip_proto without eth_type": (match(TCP), "BAD_PREREQ"),
    "ARP": (match(field(5, b"\x08\x06")), "BAD_VALUE"),
    "UDP": (match(ETH_IP + field(10, b"\x11")), "BAD_VALUE"),
    "all there is": (match(b""), "BAD_WILDCARDS"),
    "a port and a flow": (match(IN_PORT + TUPLE4), "BAD_WILDCARDS"),
    "half a flow": (match(ETH_IP + TCP + IPV4), "BAD_WILDCARDS"),
    "a flow of both families": (match(ETH_IP + TCP + IPV4 + IPV6 + PORTS), "BAD_PREREQ"),
}


@pytest.mark.parametrize(("given", "code"), MATCHES.values(), ids=MATCHES)
def test_wrong_match(given, code):
    assert refusal(bytes(replace(GOOD, match=given))) == bad_match(code)


def bad_instruction(code: str) -> tuple[int, int]:
    return BAD_INSTRUCTION, getattr(ofp, f"OFPBIC_{code}")


INSTRUCTIONS = {
    "none": (b"", "UNSUP_INST"),
    "unknown": (instruction(b"", kind=77), "UNKNOWN_INST"),
    "goto_table": (instruction(b"", kind=1), "UNSUP_INST"),
    "write_metadata": (instruction(bytes(16), kind=2), "UNSUP_INST"),
    "write_actions": (instruction(SET_WINDOW, kind=3), "UNSUP_INST"),
    "clear_actions": (instruction(b"", kind=5), "UNSUP_INST"),
    "meter": (instruction(b"", kind=6), "UNSUP_INST"),
    "experimenter": (instruction(b"", kind=0xFFFF), "BAD_EXPERIMENTER"),
    "apply_actions twice": (instruction(SET_WINDOW) * 2, "UNSUP_INST"),
    "and a goto_table": (instruction(SET_WINDOW) + instruction(b"", kind=1), "UNSUP_INST"),
    "length 0": (instruction(SET_WINDOW, length=0), "BAD_LEN"),
    "length 4": (instruction(SET_WINDOW, length=4), "BAD_LEN"),
    "length no multiple of 8": (instruction(SET_WINDOW, length=23), "BAD_LEN"),
    "longer than the message": (instruction(SET_WINDOW, length=32), "BAD_LEN"),
    "some bytes behind": (instruction(SET_WINDOW) + bytes(4), "BAD_LEN"),
}


@pytest.mark.parametrize(("given", "code"), INSTRUCTIONS.values(), ids=INSTRUCTIONS)
def test_wrong_instructions(given, code):
    assert refusal(bytes(replace(GOOD, instructions=given))) == bad_instruction(code)


OUTPUT = action(struct.pack("!IHxxxxxx", 1, 0), kind=0)
ACTIONS = {
    "no action": (b"", "BAD_TYPE"),
    "output to a port": (OUTPUT, "BAD_OUT_PORT"),
    "a window and output": (SET_WINDOW + OUTPUT, "TOO_MANY"),
    "unknown": (action(bytes(4), kind=99), "BAD_TYPE"),
    "experimenter": (action(bytes(4), kind=0xFFFF), "BAD_EXPERIMENTER"),
    "two windows": (SET_WINDOW * 2, "TOO_MANY"),
    "a window and a pool": (SET_WINDOW + SET_POOL, "TOO_MANY"),
    "length 0": (action(window_field(), length=0), "BAD_LEN"),
    "longer than the instruction": (action(window_field(), length=24), "BAD_LEN"),
    "length no multiple of 8": (action(window_field(), length=12), "BAD_LEN"),
    "an ordinary field": (action(field(0, bytes(4)) + bytes(4)), "BAD_SET_TYPE"),
    "masked": (action(window_field(mask=1)), "BAD_SET_TYPE"),
    "a window field that does not exist": (action(window_field(4)), "BAD_SET_TYPE"),
    "another's field": (action(window_field(experimenter=0x00002320)), "BAD_SET_TYPE"),
    "value too short": (action(window_field(length=6)), "BAD_SET_LEN"),
    "value too long": (action(window_field(length=12) + bytes(8)), "BAD_SET_LEN"),
    "no value": (action(window_field()[:4]), "BAD_SET_LEN"),
    "bytes behind the field": (action(window_field() + bytes(8)), "BAD_SET_LEN"),
}


@pytest.mark.parametrize(("given", "code"), ACTIONS.values(), ids=ACTIONS)
def test_wrong_actions(given, code):
    expected = BAD_ACTION, getattr(ofp, f"OFPBAC_{code}")
    assert refusal(bytes(replace(GOOD, instructions=instruction(given)))) == expected


@pytest.mark.parametrize(
    ("command", "given"), [(ADD, TUPLE4), (ADD, TUPLE6), (MODIFY, TUPLE4), (MODIFY, ETH_IP), (MODIFY, b"")]
)
def test_a_pool_is_for_ports_only(command, given):
    mod = replace(GOOD, command=command, match=match(given), instructions=instruction(SET_POOL))
    assert refusal(bytes(mod)) == (BAD_ACTION, ofp.OFPBAC_MATCH_INCONSISTENT)
    lower = replace(mod, instructions=instruction(SET_WINDOW))
    assert decode_flow_mod(bytes(lower)).window is not None


@pytest.mark.parametrize("mod", [GOOD, replace(GOOD, match=match(TUPLE6))], ids=["port", "flow"])
def test_a_message_cut_anywhere_is_refused(mod):
    data = bytes(mod)
    head, behind_match = 48, 48 + len(mod.match)
    for length in range(8, len(data)):
        kind, code = refusal(data[:length])
        if length < head + 8:
            assert (kind, code) == (BAD_REQUEST, ofp.OFPBRC_BAD_LEN)
        elif length < behind_match:
            assert (kind, code) == bad_match("BAD_LEN")
        elif length == behind_match:
            assert (kind, code) == bad_instruction("UNSUP_INST")
        else:
            assert (kind, code) == bad_instruction("BAD_LEN")


def test_a_match_at_the_very_end_is_cut():
    with pytest.raises(OpenFlowError) as caught:
        decode_match(bytes(10), 4)
    assert (caught.value.type, caught.value.code) == bad_match("BAD_LEN")


MODS = [
    GOOD,
    replace(GOOD, match=match(TUPLE4)),
    replace(GOOD, match=match(TUPLE6), command=MODIFY),
    replace(GOOD, instructions=instruction(SET_POOL)),
    Mod(match=match(b""), instructions=b"", command=DELETE, table=0xFF),
]


@given(
    st.sampled_from(MODS),
    st.lists(st.tuples(st.integers(8, 300), st.integers(0, 255)), min_size=1, max_size=6),
)
def test_wrong_bytes_are_refused_or_decoded_and_a_refusal_changes_nothing(mod, changes):
    data = bytearray(bytes(mod))
    for at, value in changes:
        data[8 + at % (len(data) - 8)] = value
    sink = FakeDatapath(3)
    table = RuleTable(sink, 10)
    table.apply(decode_flow_mod(bytes(GOOD)), 0)
    before, writes = table.rules(), sink.writes
    try:
        table.apply(decode_flow_mod(bytes(data)), 1)
    except OpenFlowError as error:
        assert (table.rules(), sink.writes) == (before, writes)
        assert error.type in (BAD_REQUEST, BAD_ACTION, BAD_INSTRUCTION, BAD_MATCH, FLOW_MOD_FAILED)


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(data):
    with pytest.raises(OpenFlowError):
        decode_flow_mod(struct.pack("!BBHI", 4, 14, 8 + len(data), 1) + b"\xff" * 17 + data)
