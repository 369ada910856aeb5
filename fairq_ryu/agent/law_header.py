"""Writes ``<fairq_laws.h>``, by which the eBPF programs know the laws.

It has the numbers of the laws, includes their headers, and lists for each hook the laws whose header defines
it: ``LAWS_WITH_TICK(X)`` is ``X(FQ_LAW_FAIRQ, fairq_tick) ...``. Set-up runs it before it compiles the
programs, as ``python -m fairq_ryu.agent.law_header DIRECTORY``; it needs nothing but Python.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairq_ryu.laws.registry import FOLDER, window_laws

NAME = "fairq_laws.h"
HOOKS = ("tick", "flow_began", "flow_ended", "window", "floor", "sent", "acked")
"""What ``laws/law.h`` calls."""
PLACES = {"law": "fq_law", "state": "fq_law_state", "flow": "fq_law_flow"}
"""Where a law has a struct of its own in a common one: the last words of its names, and the common ones."""


def header(numbers: Mapping[str, int], folder: Path, relative_to: Path) -> str:
    """The header for the laws of these names and numbers, whose folders are in ``folder``."""
    return "".join(f"{line}\n" for line in _lines(numbers, folder, relative_to))


def _lines(numbers: Mapping[str, int], folder: Path, relative_to: Path) -> Iterator[str]:
    sources = {name: (folder / name / "law.h").read_text(encoding="utf-8") for name in numbers}
    yield "/* Generated: fairq_ryu/agent/law_header.py. */"
    yield "#ifndef FAIRQ_LAWS_H"
    yield "#define FAIRQ_LAWS_H"
    for name in sources:
        yield f'#include "{os.path.relpath(folder / name / "law.h", relative_to)}"'
    for name, number in numbers.items():
        yield f"#define FQ_LAW_{name.upper()} {number}"
    for hook in HOOKS:
        calls = (
            f"X(FQ_LAW_{name.upper()}, {name}_{hook})"
            for name, source in sources.items()
            if re.search(rf"\b{name}_{hook}\(\s*const struct ", source)
        )
        yield f"#define LAWS_WITH_{hook.upper()}(X) {' '.join(calls)}"
    for name, source in sources.items():
        for last, common in PLACES.items():
            if re.search(rf"^struct {name}_{last} \{{", source, re.MULTILINE):
                size = f"sizeof(struct {name}_{last}) <= sizeof(((struct {common} *)0)->own)"
                yield f'_Static_assert({size}, "{name}_{last}: more words in layout.h");'
    yield "#endif"


def write(directory: Path, folder: Path = FOLDER) -> None:
    """Write the header into a directory. One that has not changed keeps its date."""
    numbers = {law.name: law.kind for law in window_laws().values()}
    made = header(numbers, folder, directory)
    path = directory / NAME
    directory.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != made:
        path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
