"""Published figures can be made again: beside each table is its commit and, in its section, the command; each
picture contains scenario, policies, commit and command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from docs.generate.marks import pages
from tests.support.documents import ROOT

TEXTS = {page: page.read_text(encoding="utf-8") for page in pages()}
COMMIT = re.compile(r"\bcommit [0-9a-f]{8,}")
COMMAND = re.compile(r"fairq (?:run|sweep|simulate|compare) |make (?:demo|bench|soak)|python3? -m |\[command")
RESULT = re.compile(
    r"^(?:drops at the bottleneck|queue mean|switch's thread|\d+ of \d+ rows|\d+ claims: )",
    re.MULTILINE,
)
INTERVAL = re.compile(r"\u00b1|\[-?[\d.,]+, -?[\d.,]+\]")
BELOW = 4
"""Lines below a table in which its commit may stand."""


def intervals(lines: list[str]) -> bool:
    """Whether there are intervals of measured figures: brackets in one line alone may be a setting."""
    return any("\u00b1" in line for line in lines) or sum(bool(INTERVAL.search(line)) for line in lines) > 1


def measured(text: str) -> Iterator[tuple[int, int]]:
    """The first line of each table of measured figures in a page, and the one after its last."""
    lines, start = text.split("\n"), 0
    while start < len(lines):
        end = start + 1
        if lines[start].startswith("```"):
            end = next(place for place in range(end, len(lines)) if lines[place].startswith("```")) + 1
            inside = lines[start + 1 : end]
            found = lines[start] == "```text" and (RESULT.search("\n".join(inside)) or intervals(inside))
        elif lines[start].startswith("|"):
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            found = intervals(lines[start:end])
        else:
            found = False
        if found:
            yield start, end
        start = end


def sections(text: str, place: int) -> Iterator[str]:
    """The section of a page in which a line is, and those that this one is a part of, the smallest first."""
    lines = text.split("\n")
    heads = [(number, len(found[1])) for number, line in enumerate(lines) if (found := _HEAD.match(line))]
    level = 7
    for number, depth in reversed([each for each in heads if each[0] < place]):
        if depth < level:
            level = depth
            after = (other for other, deep in heads if other > number and deep <= depth)
            yield "\n".join(lines[number : next(after, len(lines))])


_HEAD = re.compile(r"(#{1,6}) ")
TABLES = [
    pytest.param(text, start, end, id=f"{page.name}-{start + 1}")
    for page, text in TEXTS.items()
    for start, end in measured(text)
]


@pytest.mark.parametrize(("text", "start", "end"), TABLES)
def test_a_table_has_its_commit_and_its_command(text: str, start: int, end: int) -> None:
    beside = "\n".join(text.split("\n")[start : end + BELOW])
    assert COMMIT.search(beside), "no `commit 12345678` below it: see what `fairq report` prints last"
    *within, page = sections(text, start)
    assert any(map(COMMAND.search, within or [page])), "no command in its section"


def test_tables_are_found() -> None:
    assert len(TABLES) > 30


def charts() -> list[Path]:
    """The pictures that pages show, without photographs of the live page."""
    shown = {
        (page.parent / name).resolve()
        for page, text in TEXTS.items()
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+\.png)\)", text)
    }
    return sorted(each for each in shown if not each.name.startswith("live-page"))


@pytest.mark.parametrize("path", charts(), ids=lambda path: path.name)
def test_a_picture_contains_what_it_is_of(path: Path) -> None:
    about = Image.open(path).info.get("Description", "")
    for word in ("scenario ", "policies ", "commit ", "command "):
        assert word in about, f"{path.relative_to(ROOT)}: {about!r}; `fairq report` writes it"
    assert COMMIT.search(about)
