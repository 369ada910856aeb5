"""Tables and hex dumps of the documents are those that ``make docs`` writes, and none is missing."""

from __future__ import annotations

import difflib
import re
import struct

import pytest

from docs.generate import channel, examples, marks, reference
from docs.generate.__main__ import MAKERS, changed
from fairq_ryu.config import schema
from fairq_ryu.metrics import exporter

MARKS = marks.marks()
EMPTY = marks.Old((), ())


def of(kind: str) -> list[str]:
    """The first words of the marks of a kind."""
    return [words[1] for words in MARKS if words[0] == kind]


def test_the_pages_are_those_that_make_docs_writes() -> None:
    try:
        lines = [
            line
            for path, text in changed()
            for line in difflib.unified_diff(
                path.read_text(encoding="utf-8").splitlines(),
                text.splitlines(),
                path.name,
                "code",
                lineterm="",
            )
        ]
    except ValueError as error:
        pytest.fail(f"{error}; then run: make docs", pytrace=False)
    if lines:
        pytest.fail("\n".join(["The documents differ from the code. Run: make docs", *lines]), pytrace=False)


def test_nothing_is_left_out() -> None:
    """What is new needs a mark in its page (CONTRIBUTING.md)."""
    assert set(of("settings")) == set(schema.sections()) - set(schema.CORE)
    assert [each for group in of("metrics") for each in getattr(exporter, group)] == list(exporter.FAMILIES)
    rows = {
        name for name in reference.SCHEMAS if f"fields-of {name}" not in {" ".join(each) for each in MARKS}
    }
    # Answers that are a list of rows with a table of their own, and one that the text describes.
    assert rows == {
        *("Ports", "Flows", "Paths", "Switches", "Hosts", "Links", "Gif", "Tenants"),
        *("Announcements", "Events", "FarQueues", "ModeChanges", "Ready", "OneTenant"),
    }
    read = [path for path, item in reference.PATHS.items() if "get" in item]
    assert set(of("parameters")) == {path for path in read if reference.parameters(EMPTY, path)[1:]}
    assert {*MAKERS, *examples.dumps()} == {words[0] for words in MARKS}


def test_every_layout_of_the_channel_is_shown() -> None:
    modules = {row[-1].strip("`") for row in channel.messages(EMPTY)[1:]}
    structs = {
        f"{name}.{constant}"
        for name in modules
        for constant, value in vars(channel.MODULES[name]).items()
        if isinstance(value, struct.Struct)
    }
    shown = {word for words in MARKS if words[0] == "layout" for word in words[1:]}
    shown |= {f"{module}._SET" for module in of("law")}
    assert structs - shown == {"port_settings._RANGE"}  # two VLANs: the text says it


PAGE = """# A page
<!-- table named A B: make docs -->
| x | y |
|---|---|
| `A` | kept |
| `B` | too |
| `C` | out of date |
<!-- end of table -->
<!-- dump two: make docs -->
<!-- end of dump -->
<!-- table other: python3 -m other -->
| mine |
<!-- end of table -->
"""


def named(old: marks.Old, *names: str) -> marks.Rows:
    return [old.head, *((f"`{name}`", *old.texts(f"`{name}`")) for name in names)]


def test_only_what_is_between_the_marks_is_written_anew() -> None:
    dump = "```text\n0000  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f\n0010  10 11\n```\n"
    assert marks.written(PAGE, {"named": named}, {"two": bytes(range(18))}) == PAGE.replace(
        "| `C` | out of date |\n", ""
    ).replace("<!-- end of dump", dump + "<!-- end of dump")


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (PAGE.replace("A B", "A D"), "table named A D: no row describes `D`: add one, with its text"),
        (PAGE.replace("named A B", "nameless"), "table nameless: KeyError: 'nameless'"),
        (PAGE.replace("dump two", "dump three"), "dump three: KeyError: 'three'"),
        (PAGE.replace("<!-- end of dump -->\n", ""), "a mark has no end"),
    ],
)
def test_what_cannot_be_made_is_named(page: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        marks.written(page, {"named": named}, {"two": b""})
