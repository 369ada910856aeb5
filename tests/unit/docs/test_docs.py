"""The documents compared with the code: their lists, numbers and examples must be those of the code."""

from __future__ import annotations

import argparse
import inspect
import re
import shlex
import sys
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ryu.ofproto import ofproto_protocol
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu import controller_target
from fairq_ryu.agent import controller_connection, messages, turn_deadlines
from fairq_ryu.agent.layout import CONSTANTS
from fairq_ryu.agent.programs import flow_sweep, program
from fairq_ryu.channel import (
    congestion,
    deadlines,
    dropped_packet,
    flow_changes,
    flow_records,
    flowmod,
    oxm,
    port_mode,
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
from fairq_ryu.cli import main
from fairq_ryu.config import loader, schema, services
from fairq_ryu.experiments import baselines, checking, scenario
from fairq_ryu.experiments.measure import machine
from fairq_ryu.experiments.report import result
from fairq_ryu.experiments.workloads.common.rows import Shown
from fairq_ryu.experiments.workloads.registry import WORKLOADS
from fairq_ryu.fabric.topology import hosts
from fairq_ryu.law_spec import LAW_BOUNDS, Gain, LawFlags, LawKind, LawSpec
from fairq_ryu.model import (
    Announcement,
    Congestion,
    FlowInfo,
    FlowKey,
    FlowProgress,
    PortKey,
    QueueSample,
    RuleChange,
    RuleTarget,
    Thresholds,
    WindowKind,
    WindowRule,
)
from fairq_ryu.openflow import pipeline
from fairq_ryu.packet.tcp_build import Addressing
from fairq_ryu.policies import base, engine, governed_port
from fairq_ryu.policies.choice import make
from fairq_ryu.port_settings import PortSettings, VlanMode
from fairq_ryu.queue_law_spec import (
    ALL_QUEUE_FLAGS,
    QUEUE_LAW_BOUNDS,
    Limits,
    QueueLawKind,
    QueueLawSpec,
    Variant,
)
from tests.support.documents import ROOT, blocks, read, rows
from tests.switch import packets

PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")]
)


PEERS = ("red", "codel", "sfb", "mark")
"""The queue laws that share a page."""
IN_PAGE_OF = {"afq-paper": "afq", "afcd-paper": "afcd"}


# Settings


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return f"{value:g}" if isinstance(value, float) and value < 1000 else str(int(value))


def setting_row(setting: schema.Setting) -> list[str]:
    bounds = [
        "" if bound is None else shown(bound if bound < 1000 else int(bound))
        for bound in (setting.minimum, setting.maximum)
    ]
    return [f"`{setting.name}`", setting.unit, shown(setting.default), *bounds, setting.help]


def test_the_table_of_every_setting_is_the_code_s() -> None:
    sections = schema.sections()
    found = [row for row in rows(read("docs/operating.md")) if row[0] in {f"`{s}`" for s in sections}]
    every = [setting for settings in sections.values() for setting in settings.values()]
    assert found == [[f"`{s.section}`", *setting_row(s)] for s in every]


WITH_A_PAGE = ["acdc", "afcd", "afq", "fairq", "fairswitch", "fixed", "iqm", "las", "sed"]
WITH_A_PAGE += ["fairq-paper", "iqm-paper", "sed-paper", "rsed-paper"]


@pytest.mark.parametrize("policy", WITH_A_PAGE)
def test_the_table_of_a_policy_s_settings_is_the_code_s(policy: str) -> None:
    names = {f"`{name}`" for name in schema.sections()[policy]}
    found = [row for row in rows(read(f"docs/policies/{policy}.md")) if row[0] in names]
    assert found == [setting_row(s) for s in schema.sections()[policy].values()]


def test_the_tables_of_the_peers_settings_are_the_code_s() -> None:
    """Red, CoDel, SFB and marking share a page; each has a section with a table."""
    page = read("docs/policies/peers.md")
    for policy, title in {"red": "RED", "codel": "CoDel", "sfb": "SFB", "mark": "Marking"}.items():
        section = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
        found = [row for row in rows(section) if len(row) == 6 and row[0] != "setting"]
        assert found == [setting_row(setting) for setting in schema.sections()[policy].values()]


def test_the_table_of_rsed_s_own_settings_is_the_code_s() -> None:
    """The others are SED's, and on SED's page."""
    own = {name: s for name, s in schema.sections()["rsed"].items() if name not in schema.sections()["sed"]}
    found = [row for row in rows(read("docs/policies/rsed.md")) if len(row) == 6 and row[0] != "setting"]
    assert found == [setting_row(setting) for setting in own.values()]


def test_the_table_of_a_service_s_settings_is_the_code_s() -> None:
    section = read("docs/policies/sed.md").split("## Saying what flows need\n")[1].split("\n## ")[0]
    assert rows(section)[1:] == [setting_row(setting) for setting in services.SERVICE_SETTINGS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_configuration_examples_are_accepted(page: Path, tmp_path: Path) -> None:
    for text in blocks(page.read_text(encoding="utf-8"), "ini"):
        file = tmp_path / "example.conf"
        file.write_text(text)
        loader.load([file])


# The window channel


def test_the_numbers_of_the_channel_are_the_code_s() -> None:
    listed = {row[0]: row[1] for row in rows(read("docs/window-channel.md")) if len(row) == 2}
    wanted = {
        "experimenter id": f"`{oxm.EXPERIMENTER_ID:#010x}`",
        "datapath id marker": f"`{oxm.DPID_MARKER:#06x}`",
        **{f"OXM field `{kind.field}`": str(kind.oxm_number) for kind in WindowKind},
        "multipart type queue depth": str(queue_depth.EXP_TYPE_QUEUE_DEPTH),
        "multipart type flow records": str(flow_records.EXP_TYPE_FLOW_RECORDS),
        "multipart type segment states": str(segment_state.EXP_TYPE_SEGMENTS),
        "segment-state key": f"{segment_state.KEY_SIZE} bytes",
        "segment state": f"{segment_state.RECORD_SIZE} bytes",
        "message type SET_THRESHOLDS": str(congestion.EXP_TYPE_SET_THRESHOLDS),
        "message type congestion": str(congestion.EXP_TYPE_CONGESTION),
        "cookie of dropped packets": f"`{dropped_packet.COOKIE_DROPPED:#x}`",
        "cookie of copies of segments": f"`{segment_copies.COOKIE_COPY:#x}`",
        "queue-depth request body": f"{queue_depth.REQUEST_SIZE} bytes",
        "queue-depth record": f"{queue_depth.RECORD_SIZE} bytes",
        "flow-record request body": f"{flow_records.REQUEST_SIZE} bytes",
        "flow record": f"{flow_records.RECORD_SIZE} bytes",
        "message type SET_LAW": str(window_law.EXP_TYPE_SET_LAW),
        "multipart type law states": str(window_law.EXP_TYPE_LAW_STATS),
        "SET_LAW body": f"{window_law.SET_SIZE} bytes",
        "law-state request body": f"{window_law.REQUEST_SIZE} bytes",
        "law state": f"{window_law.RECORD_SIZE} bytes",
        "message type WAKE": str(waking.EXP_TYPE_WAKE),
        "message type SET_RECOVERY": str(recovery.EXP_TYPE_SET_RECOVERY),
        "multipart type segment counts": str(segment_counts.EXP_TYPE_SEGMENT_COUNTS),
        "WAKE record": f"{waking.RECORD_SIZE} bytes",
        "SET_RECOVERY body": f"{recovery.SET_SIZE} bytes",
        "segment count": f"{segment_counts.RECORD_SIZE} bytes",
        "message type SET_DEADLINES": str(deadlines.EXP_TYPE_SET_DEADLINES),
        "SET_DEADLINES record": f"{deadlines.RECORD_SIZE} bytes",
        "message type SET_PORT_MODE": str(port_mode.EXP_TYPE_PORT_MODE),
        "multipart type port modes": str(port_mode.EXP_TYPE_PORT_MODE),
        "SET_PORT_MODE body": f"{port_mode.SET_SIZE} bytes",
        "port-mode request body": f"{port_mode.REQUEST_SIZE} bytes",
        "port mode": f"{port_mode.RECORD_SIZE} bytes",
        "multipart type flow changes": str(flow_changes.EXP_TYPE_FLOW_CHANGES),
        "flow-change request body": f"{flow_changes.REQUEST_SIZE} bytes",
        "flow-change reply head": f"{flow_changes.HEAD_SIZE} bytes",
        "message type PORT_SETTINGS": str(port_settings.EXP_TYPE_PORT_SETTINGS),
        "PORT_SETTINGS head": f"{port_settings.HEAD_SIZE} bytes",
        "PORT_SETTINGS record": f"from {port_settings.RECORD_SIZE} bytes",
        "message type SET_QUEUE_LAW": str(queue_law.EXP_TYPE_SET_QUEUE_LAW),
        "multipart type queue-law states": str(queue_law.EXP_TYPE_QUEUE_LAW_STATES),
        "SET_QUEUE_LAW body": f"{queue_law.SET_SIZE} bytes",
        "queue-law request body": f"{queue_law.REQUEST_SIZE} bytes",
        "queue-law state": f"{queue_law.RECORD_SIZE} bytes",
    }
    assert wanted.items() <= listed.items()
    assert listed["bridge"] == "`0000000000000001`"
    assert listed["its agent"] == f"`{oxm.agent_dpid(1):016x}`"


def layout(heading: str) -> list[tuple[int, int]]:
    """(offset, size) of the fields in the last offset table under a heading."""
    section = read("docs/window-channel.md").split(f"### {heading}\n")[1].split("\n#")[0]
    found = [(int(row[0]), int(row[1])) for row in rows(section) if len(row) == 3 and row[0].isdigit()]
    starts = [place for place, (offset, _) in enumerate(found) if offset == 0]
    return found[starts[-1] :]


@pytest.mark.parametrize(
    ("heading", "size"),
    [
        ("Queue depth", queue_depth.RECORD_SIZE),
        ("Flow records", flow_records.RECORD_SIZE),
        ("Flow changes", flow_changes.HEAD_SIZE),
        ("Segment states", segment_state.RECORD_SIZE),
        ("SET_THRESHOLDS", congestion.SET_SIZE),
        ("Congestion messages", congestion.NOTICE_SIZE),
        ("SET_LAW", window_law.SET_SIZE),
        ("Law states", window_law.RECORD_SIZE),
        ("SET_QUEUE_LAW", queue_law.SET_SIZE),
        ("Queue-law states", queue_law.RECORD_SIZE),
        ("SET_DEADLINES", deadlines.RECORD_SIZE),
        ("WAKE", waking.RECORD_SIZE),
        ("SET_RECOVERY", recovery.SET_SIZE),
        ("Segment counts", segment_counts.RECORD_SIZE),
        ("SET_PORT_MODE", port_mode.SET_SIZE),
        ("Port modes", port_mode.RECORD_SIZE),
        ("PORT_SETTINGS", port_settings.RECORD_SIZE),
    ],
)
def test_record_layouts_have_no_gaps_and_the_right_size(heading: str, size: int) -> None:
    end = 0
    for offset, length in layout(heading):
        assert offset == end
        end = offset + length
    assert end == size


def test_queue_depth_offsets_name_the_right_fields() -> None:
    section = read("docs/window-channel.md").split("### Queue depth\n")[1].split("\n#")[0]
    found = [row for row in rows(section) if len(row) == 3 and row[0].isdigit()]
    values = queue_depth.QueueDepth(*range(1, 10))
    raw = queue_depth.encode_reply([values])
    named = found[-len(values) :]
    for row, name, value in zip(named, queue_depth.QueueDepth._fields, values, strict=True):
        assert re.split(r"[:\s]", row[2])[0] == name
        assert int.from_bytes(raw[int(row[0]) : int(row[0]) + int(row[1])], "big") == value


def fields_of(heading: str) -> list[tuple[int, int, str]]:
    """Offset, size and text of the fields in the last offset table under a heading."""
    section = read("docs/window-channel.md").split(f"### {heading}\n")[1].split("\n#")[0]
    found = [
        (int(row[0]), int(row[1]), row[2]) for row in rows(section) if len(row) == 3 and row[0].isdigit()
    ]
    return found[max(place for place, (offset, _, _) in enumerate(found) if offset == 0) :]


def test_the_fields_of_a_law_are_named_at_their_offsets() -> None:
    values = {name: 100 + number for number, name in enumerate(LAW_BOUNDS)}
    spec = LawSpec(LawKind.LAS, Gain.OURS, LawFlags(7), **values)
    values |= {"command": 1, "kind": 5, "gain": 2, "number of the law": 77, "flags": 7}
    raw = window_law.encode_set(1, 77, spec)
    named = set()
    for offset, size, text in fields_of("SET_LAW"):
        (name,) = [name for name in values if re.match(rf"{name}\b", text)]
        named.add(name)
        assert int.from_bytes(raw[offset : offset + size], "big") == values[name]
        if name in LAW_BOUNDS:
            low, high = (f"{bound:,}" for bound in LAW_BOUNDS[name])
            assert re.search(rf"\b{low} to ({high}|{high.replace(',', '')})$", text), name
    assert named == set(values)


def test_the_names_and_numbers_of_laws_are_the_code_s() -> None:
    kinds, gains = (text for _, _, text in fields_of("SET_LAW") if text.startswith(("kind", "gain")))
    words = {
        name.replace("-", "_").upper(): int(number) for number, name in re.findall(r"(\d) `(.+?)`", kinds)
    }
    assert words == {kind.name: kind.value for kind in LawKind}
    assert re.findall(r"\b(\d) (as|ours)", gains) == [("1", "as"), ("2", "ours")]
    assert [gain.value for gain in (Gain.PAPER, Gain.OURS)] == [1, 2]


def test_the_fields_of_law_states_are_named_at_their_offsets() -> None:
    values = window_law.LawState(*range(1, 21))
    raw = window_law.encode_reply([values])
    for (offset, size, text), name, value in zip(
        [field for field in fields_of("Law states") if field[2] != "padding"],
        window_law.LawState._fields,
        values,
        strict=True,
    ):
        assert text.split(":")[0] == name
        assert int.from_bytes(raw[offset : offset + size], "big") == value


def test_the_fields_of_a_queue_law_are_named_at_their_offsets() -> None:
    values = {name: 100 + number for number, name in enumerate(QUEUE_LAW_BOUNDS)}
    spec = QueueLawSpec(QueueLawKind.SFB, Variant.AUTHORS, ALL_QUEUE_FLAGS, **values)
    values |= {"command": 1, "kind": 5, "variant": 2, "number of the law": 77, "flags": 7, "padding": 0}
    raw = queue_law.encode_set(1, 77, spec)
    named = set()
    for offset, size, text in fields_of("SET_QUEUE_LAW"):
        (name,) = [name for name in values if re.match(rf"{name}\b", text)]
        named.add(name)
        assert int.from_bytes(raw[offset : offset + size], "big") == values[name]
        if name in QUEUE_LAW_BOUNDS:
            low, high = (f"{bound:,}" for bound in QUEUE_LAW_BOUNDS[name])
            assert text.endswith(f" {low} to {high}"), name
    assert named == set(values)


def test_the_names_and_numbers_of_queue_laws_are_the_code_s() -> None:
    texts = {text.split(":")[0]: text for _, _, text in fields_of("SET_QUEUE_LAW")}
    kinds = {name.upper(): int(number) for number, name in re.findall(r"(\d) `(\w+)`", texts["kind"])}
    assert kinds == {kind.name: kind.value for kind in QueueLawKind}
    (variants,) = (text for name, text in texts.items() if name.startswith("variant"))
    assert re.findall(r"\b(\d) (as the paper|as its authors|ours)", variants) == [
        ("1", "as the paper"),
        ("2", "as its authors"),
        ("3", "ours"),
    ]
    assert [each.value for each in (Variant.PAPER, Variant.AUTHORS, Variant.OURS)] == [1, 2, 3]


def test_the_fields_of_queue_law_states_are_named_at_their_offsets() -> None:
    values = queue_law.QueueLawState(*range(1, 18))
    raw = queue_law.encode_reply([values])
    for (offset, size, text), name, value in zip(
        fields_of("Queue-law states"), queue_law.QueueLawState._fields, values, strict=True
    ):
        assert text.split(":")[0] == name
        assert int.from_bytes(raw[offset : offset + size], "big") == value
    (limits,) = (text for _, _, text in fields_of("Queue-law states") if text.startswith("limits"))
    assert [int(number) for number in re.findall(r"\b(\d) \w", limits)] == [each.value for each in Limits]


def test_every_code_of_our_own_errors_is_listed() -> None:
    section = read("docs/window-channel.md").split("\n## Errors\n")[1].split("\n## ")[0]
    listed = [int(row[0]) for row in rows(section) if len(row) == 2 and row[0].isdigit()]
    assert listed == sorted(congestion.ERRORS | window_law.ERRORS | recovery.ERRORS | port_mode.ERRORS)


def dumps() -> list[bytes]:
    """The hex dumps of the page: those with an offset in each line and those with remarks."""
    found = []
    for block in blocks(read("docs/window-channel.md"), "text"):
        text = ""
        for line in block.splitlines():
            text += re.sub(r"^[0-9a-f]{4}  ", "", line).split("   ")[0] + " "
        found.append(bytes.fromhex(text))
    return found


def test_the_hex_dumps_equal_the_bytes_of_the_code() -> None:
    peer = ofproto_protocol.ProtocolDesc(ofp.OFP_VERSION)
    port = PortKey(1, 17)
    flow = FlowKey("10.0.0.1", "10.0.0.17", 5001, 40000)
    pool, window = WindowRule(WindowKind.POOL, 31250), WindowRule(WindowKind.WINDOW, 5840)

    def sent(message: Any, xid: int) -> bytes:
        message.set_xid(xid)
        message.serialize()
        return bytes(message.buf)

    prefix = oxm.EXPERIMENTER_ID.to_bytes(4, "big") + queue_depth.EXP_TYPE_QUEUE_DEPTH.to_bytes(4, "big")
    law, spec = WindowRule(WindowKind.LAW, 17), make("fairq", loader.Config()).switch_law(port)
    laws = prefix[:4] + window_law.EXP_TYPE_LAW_STATS.to_bytes(4, "big")
    state = window_law.LawState(
        law=17,
        port=17,
        pool=30500,
        window=0,
        queue=30280,
        target=31250,
        flows=9,
        young=3,
        beta=0,
        segment=1460,
        mode=0,
        limited_by=0,
        kind=LawKind.FAIRQ,
        updates=123456,
        late=7,
        waiting=12,
        held=256,
        released=240,
        overdue=3,
        overflowed=1,
    )
    queue_spec = make("afcd", loader.Config()).queue_law(port)
    queue_state = queue_law.QueueLawState(
        law=17,
        port=17,
        kind=QueueLawKind.AFCD,
        variant=Variant.OURS,
        limits=Limits.SHARE,
        judged=123456,
        dropped=789,
        marked=0,
        not_ect=123456,
        unmarked=0,
        fair_q16=1000 << 16,
        flows=2,
        samples=2000,
        sample_every=10,
        target_bytes=12500,
        delay_us=4200,
        target_us=500,
        interval_us=12000,
    )
    queue_laws = prefix[:4] + queue_law.EXP_TYPE_QUEUE_LAW_STATES.to_bytes(4, "big")
    options = packets.syn_options(1460, 7)
    ends = (flow.src, flow.dst, flow.sport, flow.dport)
    syn = packets.Segment(*ends, seq=1000, flags="S", options=options).frame()
    acks = Addressing(flow.reversed, "02:00:00:00:00:11", "02:00:00:00:00:01")
    counts = segment_counts.SegmentCounts({"lost": 120, "reinjected": 118}, {"wake": 9, "reinject": 118}, 4)
    counted = prefix[:4] + segment_counts.EXP_TYPE_SEGMENT_COUNTS.to_bytes(4, "big")
    modes = prefix[:4] + port_mode.EXP_TYPE_PORT_MODE.to_bytes(4, "big")
    windows = port_mode.PortWindows(17, port_mode.OBSERVE, 4618, 0, 4511)
    record = queue_depth.QueueDepth(17, 9, 30280, 48448, 125000, 25000000, 3, 123456789012, 987654321098)
    head = flow_changes.Chunk(83, flow_changes.ChunkFlags(0), 420, 1000, 2000, 40, 2)
    gone = flow_changes.Changes(head, b"", segment_state.encode_key(flow))
    changed = prefix[:4] + flow_changes.EXP_TYPE_FLOW_CHANGES.to_bytes(4, "big")
    assert dumps() == [
        messages.hello(1),
        messages.features(2, oxm.agent_dpid(1)),
        sent(flowmod.window_rule(peer, RuleChange(RuleTarget(port, None), pool), 2), 0x101),
        sent(flowmod.window_rule(peer, RuleChange(RuleTarget(port, flow), window), 2), 0x102),
        sent(flowmod.window_rule(peer, RuleChange(RuleTarget(port, None), law), 2), 0x107),
        sent(queue_depth.request(peer), 0x104),
        next(messages.multipart(0x104, ofp.OFPMP_EXPERIMENTER, [queue_depth.encode_reply([record])], prefix)),
        sent(flow_changes.request(peer, flow_changes.ChangeRequest(77, 1000, 512)), 0x110),
        next(messages.multipart(0x110, ofp.OFPMP_EXPERIMENTER, [flow_changes.encode_reply(gone)], changed)),
        sent(window_law.set_law(peer, window_law.LawCommand.ADD, 17, spec), 0x106),
        sent(window_law.request(peer, 17), 0x108),
        next(messages.multipart(0x108, ofp.OFPMP_EXPERIMENTER, [window_law.encode_reply([state])], laws)),
        sent(deadlines.set_deadlines(peer, [deadlines.HandshakeDeadline(flow, 250_000)]), 0x10C),
        sent(flowmod.queue_rule(peer, 17, 17, 2), 0x111),
        sent(queue_law.set_queue_law(peer, window_law.LawCommand.ADD, 17, queue_spec), 0x112),
        sent(queue_law.request(peer, 17), 0x113),
        next(
            messages.multipart(
                0x113, ofp.OFPMP_EXPERIMENTER, [queue_law.encode_reply([queue_state])], queue_laws
            )
        ),
        sent(congestion.set_thresholds(peer, 17, Thresholds(50000, 25000, True)), 0x105),
        congestion.notice_message(congestion.CongestionNotice(17, Congestion.CNG, 51482, 987654321098)),
        sent(segment_copies.requests(peer, 2)[0], 0x10D),
        segment_copies.encode(segment_copies.SegmentCopy(17, syn, len(syn))),
        sent(waking.wake(peer, [acks]), 0x109),
        sent(recovery.set_recovery(peer, recovery.SetRecovery(17, 2, 1 << 20, 1000, 50_000, 2)), 0x10A),
        sent(segment_counts.request(peer), 0x10B),
        next(messages.multipart(0x10B, ofp.OFPMP_EXPERIMENTER, segment_counts.encode_reply(counts), counted)),
        sent(port_mode.set_port_mode(peer, 17, port_mode.OBSERVE), 0x10D),
        sent(port_mode.request(peer), 0x10E),
        next(messages.multipart(0x10E, ofp.OFPMP_EXPERIMENTER, [port_mode.encode_reply([windows])], modes)),
        sent(port_settings.request(peer), 0x10D),
        *port_settings.messages(
            {
                1: PortSettings(VlanMode.ACCESS, 10),
                2: PortSettings(VlanMode.TRUNK, trunks=((10, 10), (20, 29))),
                3: PortSettings(bond="bond0", standby=True),
            }
        ),
    ]


def test_the_numbers_of_copies_are_the_code_s() -> None:
    section = read("docs/window-channel.md").split("\n## Copies of segments\n")[1].split("\n## ")[0]
    assert f"more than {segment_copies.COPY_BYTES} are never sent" in section
    for flag, name in zip(segment_copies.FLAGS, ("SYN", "FIN", "RST"), strict=True):
        assert f"`{flag:#05x}` ({name})" in section
    fields = {int(row[0], 16): row[1] for row in rows(section) if re.fullmatch(r"[0-9a-f]{2}", row[0])}
    (data,) = (dump for dump in dumps() if dump[8:16] == segment_copies.COOKIE_COPY.to_bytes(8, "big"))
    for offset, shown_bytes in fields.items():
        wanted = bytes.fromhex(shown_bytes.strip("`").replace(" ", ""))
        assert data[offset : offset + len(wanted)] == wanted


def test_the_limits_of_stored_deadlines_are_the_code_s() -> None:
    section = read("docs/window-channel.md").split("### SET_DEADLINES\n")[1].split("\n#")[0]
    assert f"1 to {deadlines.MAX_CONNECTIONS} of them" in section
    assert f"`{deadlines.NO_DEADLINE:#010x}`" in section
    assert f"stored for {turn_deadlines.KEEP_NS / 1e9:g} s" in section
    assert f"stores {turn_deadlines.CAPACITY:,} deadlines" in section


def test_the_limits_of_a_recovery_are_the_code_s() -> None:
    listed = {}
    for _, _, text in fields_of("SET_RECOVERY"):
        if found := re.search(r"^(\w+):.*?\b([\d,]+) to ([\d,]+)", text):
            listed[found[1]] = tuple(int(bound.replace(",", "")) for bound in found.groups()[1:])
    assert listed == recovery.BOUNDS


def test_the_groups_and_items_of_segment_counts_are_the_code_s() -> None:
    section = read("docs/window-channel.md").split("### Segment counts\n")[1].split("\n## ")[0]
    outcomes, sent, stored = (row for row in rows(section) if len(row) == 2 and row[0][:1].isdigit())
    assert outcomes[0].startswith(str(segment_counts.LOSSES)) and stored[0].startswith(
        str(segment_counts.STORED)
    )
    assert re.findall(r"(\d+) (\w+)", outcomes[1]) == [
        (str(item), name) for item, name in enumerate(segment_counts.OUTCOMES)
    ]
    assert [int(number) for number in re.findall(r"\d", sent[0])] == list(segment_counts.KINDS)
    reasons = sent[1].removeprefix("0 sent; not sent, because: ")
    assert reasons == ", ".join(f"{item} {reason}" for item, reason in segment_counts.REASONS.items())


_ERROR_CODES = {
    0: "OFPHFC",
    1: "OFPBRC",
    2: "OFPBAC",
    3: "OFPBIC",
    4: "OFPBMC",
    5: "OFPFMFC",
    9: "OFPQOFC",
    11: "OFPRRFC",
}


def listed_errors() -> Iterator[tuple[str, int, str, int]]:
    named = re.compile(r"^([A-Z_]+) \((\d+)\)$")
    for row in rows(read("docs/window-channel.md")):
        if len(row) == 3 and (kind := named.match(row[1])) and (code := named.match(row[2])):
            yield kind[1], int(kind[2]), code[1], int(code[2])


def test_error_names_and_numbers_belong_together() -> None:
    for kind, number, code, code_number in listed_errors():
        assert getattr(ofp, f"OFPET_{kind}") == number
        assert getattr(ofp, f"{_ERROR_CODES[number]}_{code}") == code_number


def test_every_error_that_the_agent_sends_is_listed() -> None:
    listed = {(kind, code) for kind, _, code, _ in listed_errors()}
    source = "".join(
        read(f"fairq_ryu/{name}.py")
        for name in (
            "channel/flow_match",
            "channel/flowmod_decoder",
            "agent/controller_session",
            "agent/requests",
            "agent/multipart",
            "agent/openflow_server",
            "agent/window_channel",
            "agent/rule_table",
            "agent/congestion_monitor",
            "agent/port_recovery",
            "agent/segment_copier",
            "channel/segment_copies",
        )
    )
    used = set(re.findall(r"ofp\.(OFP(?:HFC|BRC|BAC|BIC|BMC|FMFC|QOFC|RRFC)_\w+)", source))
    prefixes = {prefix: number for number, prefix in _ERROR_CODES.items()}
    kinds = {
        getattr(ofp, name): name.removeprefix("OFPET_") for name in dir(ofp) if name.startswith("OFPET_")
    }
    wanted = set()
    for name in used:
        prefix, _, code = name.partition("_")
        wanted.add((kinds[prefixes[prefix]], code))
    assert wanted == listed


# Commands


def subparsers() -> dict[str, argparse.ArgumentParser]:
    (action,) = (a for a in main.command_line()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every `fairq ...` command of every page, with its page."""
    names = "|".join(subparsers())
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [
            line
            for block in blocks(text, "(?:sh|console)")
            for line in block.replace("\\\n", " ").splitlines()
        ]
        lines += re.findall(r"`([^`\n]+)`", text)
        for line in lines:
            if found := re.search(rf"(?:^|[\s/])fairq ((?:{names})(?=\s|$)[^|&;>#]*)", line):
                yield page.name, shlex.split(found[1])


def test_the_files_that_the_tour_names_exist() -> None:
    named = re.findall(r"`((?:\w+/)+(?:[\w.]+\.\w+)?)`", read("docs/architecture.md"))
    assert len(set(named)) > 40
    # A module of a folder is named within the folder's row.
    places = [ROOT, ROOT / "fairq_ryu", *(ROOT / "fairq_ryu" / name for name in ("fabric", "experiments"))]
    assert [each for each in named if not any((place / each).exists() for place in places)] == []


def test_commands_and_options_in_the_pages_exist() -> None:
    known = subparsers()
    seen = set()
    for page, words in commands():
        seen.add(words[0])
        options = {option for action in known[words[0]]._actions for option in action.option_strings}
        for word in words[1:]:
            if word.startswith("--"):
                assert word.split("=")[0] in options, f"{page}: fairq {' '.join(words)}"
    assert seen == set(known), "a command is described nowhere"


def test_runs_in_the_pages_have_a_directory_for_the_result() -> None:
    """A block can be copied as it is; a command within a sentence may be a part of one."""
    runs = [
        line
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"), "(?:sh|console)")
        for line in block.replace("\\\n", " ").splitlines()
        if "/fairq run " in line and "--list" not in line
    ]
    assert runs and [line for line in runs if "--out" not in line] == []


def test_make_targets_in_the_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", read("Makefile"), re.M))
    for page in PAGES:
        for target in re.findall(r"`make ([a-z-]+)`", page.read_text(encoding="utf-8")):
            assert target in targets, f"{page.name}: make {target}"


def test_links_and_pictures_lead_somewhere() -> None:
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)]+)\)", text):
            if re.match(r"https?://", target):
                continue
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.M)
                slugs = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
                assert anchor in slugs, f"{page.name}: {target}"


# Experiments


def left_out(default: object) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "" if default is None else f"`{default}`" if isinstance(default, str) else f"{default:g}"


def test_the_tables_of_scenario_settings_are_the_code_s() -> None:
    page = rows(read("docs/experiments.md"))
    words = {
        "str": "text", "int": "whole number", "float": "number", "bool": "yes or no",
        "tuple[int, ...]": "list of whole numbers", "tuple[float, ...]": "list of numbers",
        "tuple[str, ...]": "list of texts",
    }  # fmt: skip
    everywhere = [each for each in checking.COMMON.values() if not each.metadata["topologies"]]
    of_topologies = [each for each in checking.COMMON.values() if each.metadata["topologies"]]
    of_workloads = [each for name, each in checking.KNOWN.items() if name not in checking.COMMON]
    for wanted, width in ((everywhere, 7), (of_topologies, 8), (of_workloads, 8)):
        names = {f"`{each.name}`" for each in wanted}
        expected = []
        for each in wanted:
            bounds = [
                "" if each.metadata[end] is None else str(each.metadata[end]) for end in ("low", "high")
            ]
            row = [f"`{each.name}`", words[scenario.type_of(each)], each.metadata["unit"], *bounds]
            default = each.metadata["default_text"] or left_out(each.metadata["default"])
            row += [default, each.metadata["help"]]
            owners = each.metadata["topologies"] or checking.workloads_with(each.name)
            expected.append([*row, *([", ".join(f"`{name}`" for name in owners)] if width == 8 else [])])
        assert [row for row in page if row[0] in names and len(row) == width] == expected


def test_every_stored_scenario_and_topology_is_described() -> None:
    section = read("docs/experiments.md").split("## Scenarios\n")[1].split("\n## ")[0]
    assert {f"`{name}`" for name in scenario.names()} <= {row[0] for row in rows(section)}
    described = [row[0].strip("`") for row in rows(read("docs/topologies.md")) if len(row) == 6]
    assert described[1:] == list(scenario.TOPOLOGIES)


def test_the_arguments_of_topologies_are_the_code_s() -> None:
    from mininet_topos.dumbbell import DumbbellTopo
    from mininet_topos.fat_tree import FatTreeTopo
    from mininet_topos.incast import IncastTopo
    from mininet_topos.leaf_spine import LeafSpineTopo

    sections = {
        "Incast": IncastTopo,
        "Dumbbell": DumbbellTopo,
        "Leaf and spine": LeafSpineTopo,
        "Fat tree": FatTreeTopo,
    }
    for heading, topology in sections.items():
        section = read("docs/topologies.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
        found = {row[0].strip("`"): row[2] for row in rows(section) if len(row) == 4 and row[0] != "argument"}
        arguments = dict(inspect.signature(topology.build).parameters)
        wanted = {
            name: each.default for name, each in arguments.items() if not name.startswith(("self", "_"))
        }
        assert list(found) == list(wanted)
        for name, default in wanted.items():
            # None is explained in the text.
            assert default is None or found[name] == str(default)


def test_scenario_examples_are_accepted(tmp_path: Path) -> None:
    examples = blocks(read("docs/experiments.md"), "toml")
    assert examples
    for text in examples:
        file = tmp_path / "example.toml"
        file.write_text(text)
        scenario.load(str(file))


def test_every_policy_is_listed_and_has_its_page() -> None:
    section = read("docs/experiments.md").split("## Policies\n")[1].split("\n## ")[0]
    known = set(machine.known_policies())
    assert {row[0].strip("`") for row in rows(section)[1:]} == known
    for policy in {baselines.of(name).policy for name in known} - {machine.BARE}:
        page = f"docs/policies/{'peers' if policy in PEERS else IN_PAGE_OF.get(policy, policy)}.md"
        assert (ROOT / page).exists()
        assert f"{base.app_of(policy)}`" in read(page)
        assert f"({page})" in read("README.md")


def test_the_schema_is_named_as_in_the_code() -> None:
    assert f"`{result.SCHEMA}`" in read("docs/experiments.md")


def test_result_tables_have_the_code_s_labels() -> None:
    """The figures are those of a run; their labels are those of the code. Remarks follow below them."""
    shown = [row for workload in WORKLOADS.values() for row in workload.table.rows]
    labels = {"queue law", "TCP"} | {f"{label} [{unit}]" if unit else label for label, unit, *_ in shown}
    for page in ("README.md", "docs/policies/fairq.md"):
        for block in blocks(read(page), "text"):
            if "droptail" in block:
                names = block.split("\n", 1)[0].split()
                lines = [line for line in block.splitlines()[1:] if line.strip()]
                table_ends = max(place for place, line in enumerate(lines) if re.search(r"\s{2,}", line))
                printed = [re.split(r"\s{2,}", line)[0] for line in lines[: table_ends + 1]]
                assert printed
                assert all(each in labels or " vs " in each for each in printed)
                for remark in lines[table_ends + 1 :]:
                    known = ("Means of ", *(f"{name}: " for name in names))
                    assert remark.startswith(known) or re.match(r"\d+ of \d+ rows; `fairq report", remark)


def test_the_table_of_the_first_screen_is_the_short_one() -> None:
    block = next(each for each in blocks(read("README.md"), "text") if "droptail" in each)
    table = WORKLOADS["incast"].table
    shown = {f"{row.label} [{row.unit}]" if row.unit else row.label: row.shown for row in table.rows}
    shown |= {f"{ratio.label} vs droptail": ratio.shown for ratio in table.ratios}
    printed = [re.split(r"\s{2,}", line)[0] for line in block.splitlines()[1:]]
    found = [label for label in printed if label in shown]
    assert [label for label in found if shown[label] is Shown.FULL] == []
    missing = {label for label in shown if shown[label] is Shown.SHORT} - set(found)
    assert missing == {"dropped by the queue law"}  # the demo has none


# A policy written as the page says


def test_the_policy_in_writing_a_policy_works() -> None:
    source = blocks(read("docs/writing-a-policy.md"), "python")[0]
    space: dict[str, Any] = {"__name__": "buffershare"}
    exec(compile(source, "writing-a-policy.md", "exec"), space)
    policy = space["BufferShare"]({"share": 0.5})
    run = engine.PolicyEngine(policy, lease=2)
    port = PortKey(1, 17)
    sample = QueueSample(0, 0, 125000, 25_000_000, 0, 0, 0.0)
    assert run.sampled(port, sample, 0.0) == []
    flow = FlowInfo(FlowKey("10.0.0.1", "10.0.0.2", 5001, 40000), 1460, 512, "10.0.0.1")
    (change,) = run.flow_started(port, flow, 0.1)
    assert (change.target.port, change.rule) == (port, WindowRule(WindowKind.POOL, 62500))
    assert run.sampled(port, sample._replace(active=1), 0.2) == []
    (renewed,) = run.sampled(port, sample._replace(active=1), 0.7)
    assert renewed == change
    (gone,) = run.flow_ended(port, flow.key, 0.8)
    assert gone.rule is None
    assert run.failures == 0


def test_the_app_the_test_and_the_package_in_writing_a_policy_work(monkeypatch: pytest.MonkeyPatch) -> None:
    page = read("docs/writing-a-policy.md")
    policy, app, test, eager = blocks(page, "python")
    compile(app, "buffershare_app.py", "exec")
    module = types.ModuleType("buffershare")
    exec(compile(policy, "buffershare.py", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "buffershare", module)
    space: dict[str, Any] = {}
    exec(compile(test, "test_buffershare.py", "exec"), space)
    space["test_the_pool_stands_while_there_are_flows"]()
    exec(compile(eager, "eager.py", "exec"), module.__dict__)
    run = engine.PolicyEngine(module.__dict__["Eager"]({"share": 0.5}), 2.0)
    (change,) = run.sampled(PortKey(1, 17), QueueSample(0, 0, 125000, 25_000_000, 0, 0, 0.0), 0.0)
    assert change.rule is not None and change.rule.law == LawSpec(LawKind.LAS, target_ppm=100_000)
    run.flow_started(
        PortKey(1, 17), FlowInfo(FlowKey("10.0.0.1", "10.0.0.2", 1, 2), 1460, 1, "10.0.0.1"), 0.1
    )
    (change,) = run.law_refused(PortKey(1, 17), "too fast", 0.2)
    assert change.rule is None and run.law_missing(PortKey(1, 17)) == "too fast"
    (package,) = blocks(page, "toml")
    entry = tomllib.loads(package)["project"]["entry-points"][base.ENTRY_POINT_GROUP]
    assert entry == {"buffershare": "buffershare:BufferShare"}


def test_the_interface_in_writing_a_policy_is_the_code_s() -> None:
    listed = {row[0] for row in rows(read("docs/writing-a-policy.md"))}
    for protocol in (base.PortLaw, base.Policy):
        for name, member in vars(protocol).items():
            if inspect.isfunction(member) and not name.startswith("_"):
                arguments = ", ".join(list(inspect.signature(member).parameters)[1:])
                assert f"`{name}({arguments})`" in listed
    fields_of = (QueueSample._fields, FlowInfo.__slots__, Announcement._fields, FlowProgress._fields)
    for shown_type in (*fields_of, Thresholds._fields, base.Display._fields):
        assert {f"`{name}`" for name in shown_type} <= listed


# Numbers in the running text


def test_numbers_in_the_text_are_the_code_s() -> None:
    how, operating, channel = (read(f"docs/{n}.md") for n in ("how-it-works", "operating", "window-channel"))
    priorities = (program.WINDOW_PRIORITY, program.TURN_PRIORITY, program.QUEUE_LAW_PRIORITY)
    for number in (*priorities, program.DROP_PRIORITY):
        assert f"pref {number}" in operating
    assert f"after {governed_port.REST_AFTER_FAILURE:g} s" in how
    assert f"drains, plus {CONSTANTS['FQ_MARGIN_NS'] / 1e6:g} ms" in how
    assert f"copy of {pipeline.COPY_BYTES} bytes" in how
    assert f"silent for {controller_connection.ECHO_INTERVAL:g} s" in channel
    assert f"after {controller_connection.SILENCE_TIMEOUT:g} s" in channel
    assert f"port {controller_target.DEFAULT_PORT}" in channel
    half_open = f"after {flow_sweep.HALF_OPEN_NS / 1e9:g} s"
    assert f"leaves the flow map {half_open}" in " ".join(channel.split())
    assert f"leaves the map {half_open}" in operating
    for page in (how, operating):
        assert f"at most {hosts.HostTable().capacity} hosts" in page
    incast = scenario.load("incast")
    assert f"`incast` has {incast.rounds} volleys" in read("docs/experiments.md")
