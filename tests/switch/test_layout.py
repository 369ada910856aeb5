"""The header that C and Python share, compared with the compiler's view; and the bins of the histogram."""

from __future__ import annotations

import ctypes
import itertools
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.agent import law_header, layout

TYPES = "#include <linux/types.h>\n"
BINS = layout.CONSTANTS["FQ_HIST_BINS"]


def compile_c(source: Path, *arguments: str) -> None:
    include = f"-I/usr/include/{platform.machine()}-linux-gnu"
    done = subprocess.run(
        ["clang", "-O1", "-Wall", "-Werror", include, f"-I{layout.BPF_DIR}", str(source), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def claims() -> list[str]:
    """The layout that Python computes, as C assertions."""
    found = [f"{name} == {value}" for name, value in layout.CONSTANTS.items()]
    for name, struct in layout.STRUCTS.items():
        found.append(f"sizeof(struct {name}) == {ctypes.sizeof(struct)}")
        for field, kind in struct._fields_:  # type: ignore[misc]
            where: Any = getattr(struct, field)
            found.append(f"__builtin_offsetof(struct {name}, {field}) == {where.offset}")
            found.append(f"sizeof(((struct {name} *)0)->{field}) == {ctypes.sizeof(kind)}")
    return found


@pytest.mark.parametrize("target", [[], ["-target", "bpf"]], ids=["host", "bpf"])
def test_python_and_c_agree(tmp_path: Path, target: list[str]) -> None:
    source = tmp_path / "claims.c"
    lines = [f'_Static_assert({claim}, "");' for claim in claims()]
    law_header.write(tmp_path)
    assert len(lines) > 100
    source.write_text(TYPES + "#include <fairq_laws.h>\n#include <fairq_queue_laws.h>\n" + "\n".join(lines))
    compile_c(source, *target, f"-I{tmp_path}", "-c", "-o", str(tmp_path / "claims.o"))


def test_every_struct_and_member_of_the_header_is_known(tmp_path: Path) -> None:
    """From the compiler's own list, so that nothing that the parser missed stays missed."""
    source = tmp_path / "dump.c"
    law_header.write(tmp_path)
    source.write_text(TYPES + "#include <fairq_laws.h>\n#include <fairq_queue_laws.h>\n")
    dump = subprocess.run(
        [
            *("clang", "-fsyntax-only", "-Xclang", "-ast-dump", "-fno-color-diagnostics"),
            *(f"-I/usr/include/{platform.machine()}-linux-gnu", f"-I{tmp_path}", str(source)),
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    members: dict[str, list[str]] = {}
    current = ""
    for line in dump.splitlines():
        if record := re.search(r"RecordDecl .* struct (\w+) definition", line):
            current = record[1]
            members[current] = []
        elif current and (field := re.search(r"FieldDecl .* (\w+) '", line)):
            members[current].append(field[1])
    ours = {
        name: fields for name, fields in members.items() if re.fullmatch(r"fq_\w+|\w+_(law|state|flow)", name)
    }
    assert ours == {name: [f[0] for f in struct._fields_] for name, struct in layout.STRUCTS.items()}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("struct a { __u8 x; __u32 y; };", "hidden padding"),
        ("struct a { int x; };", "unknown type int"),
        ("struct a { struct b x; };", "unknown type b"),
        ("struct a { __u8 x : 3; };", "cannot read member"),
        ("struct a { __u8 *x; };", "cannot read member"),
    ],
)
def test_a_header_that_the_parser_does_not_understand(text: str, complaint: str) -> None:
    with pytest.raises(layout.LayoutError, match=complaint):
        layout.read_layout(text)


def test_histogram_bins_and_bounds_are_inverse(tmp_path: Path) -> None:
    text = (layout.BPF_DIR / "lib/histogram.h").read_text(encoding="utf-8")
    function = re.search(r"^static __always_inline __u32 fq_bin\(.*?^}\n", text, re.M | re.S)
    assert function is not None
    source = tmp_path / "bins.c"
    source.write_text(
        "#include <stdio.h>\n"
        + TYPES
        + '#include "layout.h"\n#undef __always_inline\n#define __always_inline inline\n'
        + function[0]
        + 'int main(void) { unsigned d; while (scanf("%u", &d) == 1) printf("%u\\n", fq_bin(d)); }\n'
    )
    compile_c(source, "-o", str(tmp_path / "bins"))
    bounds = [layout.histogram_bounds(i) for i in range(BINS)]
    depths = [depth for pair in bounds for depth in pair] + [2**32 - 1] + list(range(70_000))
    answer = subprocess.run(
        [str(tmp_path / "bins")],
        input="\n".join(map(str, depths)),
        capture_output=True,
        text=True,
        check=True,
    )
    bins = list(map(int, answer.stdout.split()))
    edges = 2 * BINS
    assert bins[:edges] == [i for i in range(BINS) for _ in "lh"]
    assert bins[edges] == BINS - 1, "the last bin takes all that is deeper"
    for depth, index in enumerate(bins[edges + 1 :]):
        low, high = bounds[index]
        assert low <= depth <= high
    # No gap, no overlap, and never coarser than documented.
    for (_, high), (low, _) in itertools.pairwise(bounds):
        assert low == high + 1
    assert all(high - low + 1 <= max(1, low / 16) for low, high in bounds)
