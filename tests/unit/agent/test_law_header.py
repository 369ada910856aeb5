"""The headers by which the eBPF programs know the laws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairq_ryu.agent import law_header, layout
from fairq_ryu.laws.registry import FOLDER, queue_laws, window_laws

HEADERS = [(law_header.WINDOW, window_laws()), (law_header.QUEUE, queue_laws())]


def lists(text: str) -> dict[str, list[str]]:
    """The calls in each list of a header."""
    found = re.findall(r"^#define \w*LAWS_WITH_(\w+)\(X\) ?(.*)$", text, re.M)
    return {hook.lower(): re.findall(r"X\(\w+, (\w+)\)", calls) for hook, calls in found}


def defines(name: str, hook: str) -> bool:
    """Whether the header of a law has the definition of this function, by its text alone."""
    text = (FOLDER / name / "law.h").read_text(encoding="utf-8")
    return re.search(rf"^LAW_INLINE [^;{{]*\b{name}_{hook}\([^;{{]*\)\n{{", text, re.M) is not None


@pytest.mark.parametrize(("header", "laws"), HEADERS, ids=["window", "queue"])
def test_every_law_is_included_and_has_its_number(header, laws):
    text = header.text(laws, Path("/made"))
    assert re.findall(rf"^#define {header.prefix}(\w+) (\d+)$", text, re.M) == [
        (law.name.upper(), str(number)) for number, law in laws.items()
    ]
    assert len(re.findall(r"^#include ", text, re.M)) == len(laws)


def test_a_hook_is_called_of_the_laws_whose_header_defines_it():
    window, queue = (lists(header.text(laws, Path("/made"))) for header, laws in HEADERS)
    for hook, calls in window.items():
        defined = [f"{law.name}_{hook}" for law in window_laws().values() if defines(law.name, hook)]
        assert calls == defined, hook
    assert window["window"] == [f"{law.name}_window" for law in window_laws().values()]
    assert {"iqm_tick", "sed_tick"} <= set(window["tick"]) and "acdc_sent" in window["sent"]
    assert queue["judge"] == [f"{law.name}_judge" for law in queue_laws().values()]


@pytest.mark.parametrize("law", window_laws().values(), ids=lambda law: law.name)
def test_a_law_that_keeps_flows_has_the_hooks_and_the_struct_for_them(law):
    hooks = lists(law_header.WINDOW.text({law.kind: law}, Path("/made")))
    assert [bool(hooks[name]) for name in ("sent", "acked")] == [law.keeps_flows] * 2
    assert (f"{law.name}_flow" in layout.STRUCTS) == law.keeps_flows


@pytest.mark.parametrize("law", queue_laws().values(), ids=lambda law: law.name)
def test_a_law_with_bins_has_the_hooks_for_them(law):
    """``sfb_entered`` and ``sfb_left`` are of the bins, so their first argument is no law."""
    hooks = lists(law_header.QUEUE.text({law.kind: law}, Path("/made")))
    assert [bool(hooks[name]) for name in ("entered", "left")] == [law.keeps_bins] * 2


def test_every_struct_of_a_law_has_a_check_that_it_fits():
    text = "".join(header.text(laws, Path("/made")) for header, laws in HEADERS)
    structs = {
        name
        for path in FOLDER.glob("*/law.h")
        for name in re.findall(r"^struct (\w+) \{", path.read_text(encoding="utf-8"), re.M)
    }
    assert set(re.findall(r"_Static_assert\(sizeof\(struct (\w+)\)", text)) == structs


def test_a_header_that_has_not_changed_keeps_its_date(tmp_path):
    law_header.write(tmp_path)
    (header,) = tmp_path.glob("fairq_laws.h")
    before = header.stat().st_mtime_ns
    law_header.write(tmp_path)
    assert header.stat().st_mtime_ns == before
    header.write_text("another")
    law_header.write(tmp_path)
    assert "#define FQ_LAW_FAIRQ 1" in header.read_text()
