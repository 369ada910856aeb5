"""The parts of a page that follow from code, between two marks::

    <!-- table KIND ARGUMENTS: make docs -->
    <!-- end of table -->

and the same with ``dump`` for hex dumps. What is between the marks is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[2]
_MARKED = re.compile(
    r"^(?P<mark><!-- (?P<what>table|dump) (?P<words>[^:>]+): make docs -->\n)(?P<old>(?:(?!<!--).)*)"
    r"(?P<end><!-- end of (?P=what) -->)$",
    re.DOTALL | re.MULTILINE,
)
_BEGIN = re.compile(r"^<!-- .*: make docs -->$", re.MULTILINE)

Row: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Old:
    """The table that stands in the page. Its texts stay where the code has none."""

    head: Row
    rows: tuple[Row, ...]

    @classmethod
    def read(cls, text: str) -> Old:
        """The table in ``text``; without one, a table without rows."""
        lines = [line for line in text.splitlines() if line.startswith("|")]
        head, *rows = [tuple(cell.strip() for cell in line[1:-1].split("|")) for line in lines] or [()]
        return cls(head, tuple(rows[1:]))

    def keys(self, names: Iterable[str]) -> list[str]:
        """The names as code, in the order of the table; those that are not there last."""
        order = {row[0]: place for place, row in enumerate(self.rows)}
        return sorted((f"`{name}`" for name in names), key=lambda key: order.get(key, len(order)))

    def texts(self, key: str) -> Row:
        """The cells behind the first one, which is ``key``. ValueError: there is no such row."""
        for first, *texts in self.rows:
            if first == key:
                return tuple(texts)
        raise ValueError(f"no row describes {key}: add one, with its text")


Rows: TypeAlias = list[Row]
"""The head of a table, and its rows."""
Maker: TypeAlias = Callable[..., Rows]
"""What makes a table: of the old one, and the words of the mark behind its kind. ValueError: it cannot."""


def table(rows: Rows) -> str:
    """The table in Markdown."""
    head, *body = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *body, ""])


def dump(data: bytes) -> str:
    """The bytes in Markdown: 16 in a line, after their offset."""
    lines = [f"{at:04x}  {data[at : at + 16].hex(' ')}\n" for at in range(0, len(data), 16)]
    return f"```text\n{''.join(lines)}```\n"


def pages() -> list[Path]:
    """The pages that may have marks."""
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def marks() -> list[Row]:
    """The words of each mark of all pages."""
    texts = [path.read_text(encoding="utf-8") for path in pages()]
    return [tuple(found["words"].split()) for text in texts for found in _MARKED.finditer(text)]


def written(text: str, makers: Mapping[str, Maker], dumps: Mapping[str, bytes]) -> str:
    """The text of a page, with what is between its marks made anew. ValueError, with the mark, if one cannot
    be made.
    """

    def fill(found: re.Match[str]) -> str:
        kind, *arguments = found["words"].split()
        try:
            if found["what"] == "dump":
                new = dump(dumps[kind])
            else:
                new = table(makers[kind](Old.read(found["old"]), *arguments))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
            raise ValueError(f"{found['what']} {found['words']}: {reason}") from error
        return found["mark"] + new + found["end"]

    if len(_MARKED.findall(text)) != len(_BEGIN.findall(text)):
        raise ValueError("a mark has no end")
    return _MARKED.sub(fill, text)
