"""Makes ``bpf/d2tcp_tables.h`` and ``bpf/hstcp_table.h``: ``python -m fairq_ryu.experiments.hostcc.tables``.

The headers are checked in; a test compares them with what this module makes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

BPF_DIR = Path(__file__).parent / "bpf"
STEPS = 256
"""Of the tables of log2(1 + x) and 2^-x, for x from 0 to 1."""
LOW_WINDOW, HIGH_WINDOW = 38, 83_000
"""RFC 3649: where HSTCP begins to differ from Reno, and the window for which its decrease is 0.1, segments"""
LARGEST_WINDOW = 100_000
"""Where the table of RFC 3649, appendix B, ends, segments."""
_MARK = "/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */"
_COLUMNS = 92
"""Of a line, after its tab."""


def logarithms() -> list[int]:
    """log2(1 + x) for x = 0, 1/256 ... 1, times 65536."""
    return [round(math.log2(1 + step / STEPS) * 65536) for step in range(STEPS + 1)]


def powers() -> list[int]:
    """2^-x for x = 0, 1/256 ... 1, times 32768."""
    return [round(2 ** (-step / STEPS) * 32768) for step in range(STEPS + 1)]


def decrease(window: float) -> float:
    """b(w) of RFC 3649, section 5: the share of a window that a loss costs."""
    if window <= LOW_WINDOW:
        return 0.5
    part = (math.log(window) - math.log(LOW_WINDOW)) / (math.log(HIGH_WINDOW) - math.log(LOW_WINDOW))
    return (0.1 - 0.5) * part + 0.5


def increase(window: float) -> float:
    """a(w) of RFC 3649, section 5: segments that a window gains in a round trip."""
    if window <= LOW_WINDOW:
        return 1.0
    b = decrease(window)
    p: float = 0.078125 / window**1.2
    return window**2 * p * 2 * b / (2 - b)


def hstcp_rows() -> Iterator[tuple[int, int, float]]:
    """Window, a(w) and b(w) of each row of the RFC's table, made as its appendix B makes them."""
    yield LOW_WINDOW, 1, 0.5
    last = 1.0
    rows = 1
    for window in range(LOW_WINDOW, LARGEST_WINDOW):
        if increase(window) > last + 1:
            last = increase(window)
            rows += 1
            yield window, rows, decrease(window)


def d2tcp_header() -> str:
    """The text of ``d2tcp_tables.h``."""
    return "\n".join(
        [
            _MARK,
            *_made_by("The tables of alpha^d, see d2tcp.h."),
            "#ifndef FAIRQ_D2TCP_TABLES_H",
            "#define FAIRQ_D2TCP_TABLES_H",
            "",
            "#include <linux/types.h>",
            "",
            f"/* log2(1 + step / {STEPS}) * 65536. */",
            f"static const __u32 d2tcp_log2[{STEPS + 1}] = {{",
            *_numbers(logarithms()),
            "};",
            "",
            f"/* 2^(-step / {STEPS}) * 32768. */",
            f"static const __u16 d2tcp_exp2[{STEPS + 1}] = {{",
            *_numbers(powers()),
            "};",
            "",
            "#endif",
            "",
        ]
    )


def hstcp_header() -> str:
    """The text of ``hstcp_table.h``."""
    rows = list(hstcp_rows())
    return "\n".join(
        [
            _MARK,
            *_made_by("The table of RFC 3649, appendix B: row k is the least window with a(w) = k + 1."),
            "#ifndef FAIRQ_HSTCP_TABLE_H",
            "#define FAIRQ_HSTCP_TABLE_H",
            "",
            "#include <linux/types.h>",
            "",
            f"#define HSTCP_ROWS {len(rows)}",
            "",
            "/* Segments. */",
            "static const __u32 hstcp_windows[HSTCP_ROWS] = {",
            *_numbers([window for window, _a, _b in rows]),
            "};",
            "",
            "/* b(w) * 1024. */",
            "static const __u16 hstcp_decreases[HSTCP_ROWS] = {",
            *_numbers([round(b * 1024) for _window, _a, b in rows]),
            "};",
            "",
            "#endif",
            "",
        ]
    )


def _made_by(what: str) -> list[str]:
    return [
        "/*",
        f" * {what}",
        " * Made by python -m fairq_ryu.experiments.hostcc.tables; do not edit.",
        " */",
        "/* clang-format off */",
    ]


def _numbers(values: Sequence[int]) -> Iterator[str]:
    line = ""
    for value in values:
        word = f"{value},"
        if line and len(line) + 1 + len(word) > _COLUMNS:
            yield f"\t{line}"
            line = word
        else:
            line = f"{line} {word}".strip()
    yield f"\t{line}"


HEADERS = {"d2tcp_tables.h": d2tcp_header, "hstcp_table.h": hstcp_header}
"""The headers that this module makes, by file name."""


def main() -> None:
    """Write the headers."""
    for name, text in HEADERS.items():
        (BPF_DIR / name).write_text(text())


if __name__ == "__main__":
    main()
