"""Writes the headers by which the eBPF programs know the laws.

``<fairq_laws.h>`` has the numbers of the window laws, includes their headers, and lists for each hook the
laws whose header defines it: ``LAWS_WITH_TICK(X)`` is ``X(FQ_LAW_FAIRQ, fairq_tick) ...``.
``<fairq_queue_laws.h>`` has the same of the queue laws. Set-up runs this before it compiles the programs, as
``python -m fairq_ryu.agent.law_header DIRECTORY``; it needs nothing but Python.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from fairq_ryu.law_spec import Parameters
from fairq_ryu.laws.registry import FOLDER, queue_laws, window_laws


class Header(NamedTuple):
    """What is in one of the headers. ``prefix`` of the numbers; ``lists``: of the hooks; ``hooks``: what
    ``laws/law.h`` or ``laws/queue_law.h`` calls; ``places``: where a law has a struct of its own in a common
    one, by the last words of its name.
    """

    name: str
    prefix: str
    lists: str
    hooks: tuple[str, ...]
    places: Mapping[str, str]

    def text(self, laws: Mapping[int, type[Parameters]], directory: Path) -> str:
        """The header for these laws, which is to be in a directory."""
        return "".join(f"{line}\n" for line in self._lines(laws, directory))

    def _lines(self, laws: Mapping[int, type[Parameters]], directory: Path) -> Iterator[str]:
        paths = {law.name: FOLDER / law.name / "law.h" for law in laws.values()}
        sources = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
        yield "/* Generated: fairq_ryu/agent/law_header.py. */"
        yield "#pragma once"
        for path in paths.values():
            yield f'#include "{os.path.relpath(path, directory)}"'
        for number, law in laws.items():
            yield f"#define {self.prefix}{law.name.upper()} {number}"
        for hook in self.hooks:
            calls = (
                f"X({self.prefix}{name.upper()}, {name}_{hook})"
                for name, source in sources.items()
                if re.search(rf"\b{name}_{hook}\(\s*(const )?struct ", source)
            )
            yield f"#define {self.lists}{hook.upper()}(X) {' '.join(calls)}"
        for name, source in sources.items():
            for last, common in self.places.items():
                if re.search(rf"^struct {name}_{last} \{{", source, re.MULTILINE):
                    size = f"sizeof(struct {name}_{last}) <= sizeof(((struct {common} *)0)->own)"
                    yield f'_Static_assert({size}, "{name}_{last}: more words in the layout");'


WINDOW = Header(
    "fairq_laws.h",
    "FQ_LAW_",
    "LAWS_WITH_",
    ("tick", "flow_began", "flow_ended", "window", "floor", "sent", "acked"),
    {"law": "fq_law", "state": "fq_law_state", "flow": "fq_law_flow"},
)
QUEUE = Header(
    "fairq_queue_laws.h",
    "FQ_QLAW_",
    "QUEUE_LAWS_WITH_",
    ("judge", "draws", "entered", "left"),
    {"law": "fq_queue_law", "state": "fq_queue_law_state"},
)


def write(directory: Path) -> None:
    """Write the headers into a directory. One that has not changed keeps its date."""
    directory.mkdir(parents=True, exist_ok=True)
    for path, made in (
        (directory / WINDOW.name, WINDOW.text(window_laws(), directory)),
        (directory / QUEUE.name, QUEUE.text(queue_laws(), directory)),
    ):
        if not path.exists() or path.read_text(encoding="utf-8") != made:
            path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
