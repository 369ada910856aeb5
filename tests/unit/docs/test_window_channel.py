"""The numbers in the text of docs/window-channel.md, and the bytes that it explains one by one."""

from __future__ import annotations

import dataclasses
import enum
import re

import pytest

from docs.generate import examples
from fairq_ryu.agent import messages, turn_deadlines
from fairq_ryu.channel import deadlines, description, oxm, segment_copies
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.law_spec import Mode
from fairq_ryu.queue_law_spec import Limits
from tests.support.documents import blocks, read, rows
from tests.support.host_laws import LimitedBy

PAGE = read("docs/window-channel.md")


def section(heading: str) -> str:
    return PAGE.split(f"{heading}\n")[1].split("\n#")[0]


def test_dumps_with_remarks_are_the_code_s() -> None:
    dumps = [
        bytes.fromhex("".join(line.split("   ")[0] for line in block.splitlines()))
        for block in blocks(section("## Hello and features"), "text")
    ]
    assert dumps == [messages.hello(1), messages.features(2, oxm.agent_dpid(1))]


@pytest.mark.parametrize("name", ["pool-rule", "copy-rule"])
def test_the_parts_of_a_message_are_those_of_its_dump(name: str) -> None:
    data = examples.dumps()[name]
    table = PAGE.split(f"<!-- dump {name}:")[1].split("| offset | bytes | meaning |\n")[1].split("\n\n")[0]
    parts = rows(table)
    assert len(parts) > 10
    for offset, shown, _ in parts:
        assert data[int(offset, 16) :].startswith(bytes.fromhex(shown.strip("`")))


def test_an_agent_s_datapath_id_is_the_code_s() -> None:
    listed = dict(row for row in rows(PAGE) if len(row) == 2)
    assert listed["bridge"] == "`0000000000000001`"
    assert listed["its agent"] == f"`{oxm.agent_dpid(1):016x}`"


def test_the_description_is_the_code_s() -> None:
    text = section("### Description")
    said = description.hardware(description.ALL)
    assert f"`{said.decode()}`" in text
    layout, bits = (rows(table) for table in text.split("| capability |"))
    places = [(int(row[0]), int(row[1])) for row in layout if row[0].isdigit()]
    parts = [said.ljust(ofp.DESC_STR_LEN, b"\0")[at : at + size] for at, size in places]
    numbers = f"{description.VERSION:04x}", f"{int(description.ALL):08x}"
    assert [each.decode() for each in parts[:4:2]] == ["window channel ", " capabilities "]
    assert (parts[1].decode(), parts[3].decode()) == numbers and not any(parts[4])
    named = [int(row[0].strip("`")) for row in bits if row[0].strip("`").isdigit()]
    assert named == [int(each) for each in description.Capability]


LAWS = {"### SET_LAW": examples.WINDOW_LAW, "### SET_QUEUE_LAW": examples.QUEUE_LAW}
NUMBERED = [
    ("### Law states", "mode", Mode),
    ("### Law states", "limited_by", LimitedBy),
    ("### Queue-law states", "limits", Limits),
    *(
        (heading, each.name, type(value))
        for heading, law in LAWS.items()
        for each in dataclasses.fields(law)
        if isinstance(value := getattr(law, each.name), enum.Enum)
    ),
]


@pytest.mark.parametrize(("heading", "name", "members"), NUMBERED)
def test_every_number_with_a_meaning_is_explained(heading, name, members) -> None:
    texts = {row[-1] for row in rows(section(heading)) if re.match(rf"{name}\b", row[-1])}
    (text,) = texts
    text = re.sub(r", \d+ to \d+$", "", text)  # its bounds
    assert re.findall(r"\b(\d) [a-z`]", text) == [str(each.value) for each in members]


def test_numbers_in_the_text_are_the_code_s() -> None:
    assert f"more than {segment_copies.COPY_BYTES} are never sent" in section("### Asking for copies")
    for flag, name in zip(segment_copies.FLAGS, ("SYN", "FIN", "RST"), strict=True):
        assert f"`{flag:#05x}` ({name})" in section("### Asking for copies")
    stored = section("### SET_DEADLINES")
    assert f"1 to {deadlines.MAX_CONNECTIONS} of them" in stored
    assert f"`{deadlines.NO_DEADLINE:#010x}`" in stored
    assert f"stored for {turn_deadlines.KEEP_NS / 1e9:g} s" in stored
    assert f"stores {turn_deadlines.CAPACITY:,} deadlines" in stored
