"""The law that docs/writing-a-law.md adds: its C code, its test and its policy work as the page says."""

from __future__ import annotations

import re
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.model import PortKey
from tests.support.documents import ROOT, blocks, read
from tests.support.host_laws import build

EXAMPLE = ROOT / "tests/data/fixed_pool"
PAGE = read("docs/writing-a-law.md")


def hunks(diff: str) -> Iterator[tuple[str, str, str]]:
    """The file of each change, the lines before and the lines after it."""
    for part in re.split(r"^(?=--- a/)", diff, flags=re.M)[1:]:
        path = re.match(r"--- a/(.+)\n\+\+\+ b/\1\n", part)
        assert path, "the file before and after the change has one name"
        for hunk in re.split(r"^@@\n", part, flags=re.M)[1:]:
            lines = hunk.splitlines()
            before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
            yield path[1], before, "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with the law of the page."""
    root = tmp_path_factory.mktemp("source")
    shutil.copytree(layout.BPF_DIR, root / "fairq_ryu/agent/bpf", ignore=shutil.ignore_patterns("*.o"))
    shutil.copy(ROOT / "fairq_ryu/law_spec.py", root / "fairq_ryu")
    shutil.copy(EXAMPLE / "fixed_pool.h", root / "fairq_ryu/agent/bpf/laws")
    for name in ("c.diff", "python.diff"):
        for path, before, after in hunks((EXAMPLE / name).read_text()):
            text = (root / path).read_text()
            assert text.count(before) == 1, f"{path}: the code of the page is not there once:\n{before}"
            (root / path).write_text(text.replace(before, after))
    return root


def module(name: str, source: str) -> types.ModuleType:
    made = types.ModuleType(name)
    sys.modules[name] = made  # dataclasses look their module up
    exec(compile(source, f"{name}.py", "exec"), made.__dict__)
    return made


@pytest.fixture(scope="module")
def spec(tree: Path) -> Iterator[Any]:
    """``law_spec`` with the law of the page."""
    yield module("example_law_spec", (tree / "fairq_ryu/law_spec.py").read_text())
    del sys.modules["example_law_spec"]


def test_the_page_shows_the_files_of_the_example() -> None:
    (code,), diffs, (test, policy) = blocks(PAGE, "c"), blocks(PAGE, "diff"), blocks(PAGE, "python")
    assert code == (EXAMPLE / "fixed_pool.h").read_text()
    assert diffs == [(EXAMPLE / name).read_text() for name in ("c.diff", "python.diff")]
    assert test == (EXAMPLE / "example_fixed_pool.py").read_text()
    assert policy == (EXAMPLE / "policy.py").read_text()


@pytest.fixture
def tests_of_the_page(tree: Path, spec: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The tests of the page, with the law in place of those that are installed."""
    compiled = build(tree / "fairq_ryu/agent/bpf", tree)
    monkeypatch.setattr("tests.support.host_laws.library", lambda checked=True: compiled)
    source = (EXAMPLE / "example_fixed_pool.py").read_text().replace("fairq_ryu.law_spec", "example_law_spec")
    found = dict(vars(module("example_test", source)))
    del sys.modules["example_test"]
    return found


def test_the_tests_of_the_page_pass(tests_of_the_page: dict[str, Any]) -> None:
    ran = [each() for name, each in tests_of_the_page.items() if name.startswith("test_")]
    assert len(ran) == 2


def test_the_tests_of_the_page_find_a_law_that_grants_too_much(
    tests_of_the_page: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    law = tests_of_the_page["HostLaw"]
    right = law.window
    monkeypatch.setattr(law, "window", lambda self, flows, *more: right(self, flows, *more) + 1500)
    with pytest.raises(AssertionError):
        tests_of_the_page["test_the_pool_is_the_target_whatever_the_queue_does"]()


def test_the_policy_requests_it(spec: Any) -> None:
    source = (EXAMPLE / "policy.py").read_text().replace("fairq_ryu.law_spec", "example_law_spec")
    policy = module("example_policy", source).__dict__["FixedPool"]({"alpha": 0.5})
    del sys.modules["example_policy"]
    asked = policy.switch_law(PortKey(1, 1))
    assert (asked.kind, asked.target_ppm) == (spec.LawKind.FIXED_POOL, 500_000)
