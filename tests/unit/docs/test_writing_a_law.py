"""The law that docs/writing-a-law.md adds: its C code, its twin and its policy work as the page says."""

from __future__ import annotations

import re
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.model import PortKey, QueueSample, WindowKind
from fairq_ryu.policies.governed_port import GovernedPort
from tests.support.documents import ROOT, blocks, read
from tests.support.host_laws import TRACES, CompiledLaw, build, parameters, steps_agree

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
    (root / "fairq_ryu/policies").mkdir()
    for name in ("law_spec.py", "policies/switch_laws.py"):
        shutil.copy(ROOT / "fairq_ryu" / name, root / "fairq_ryu" / name)
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
def laws(tree: Path) -> Iterator[Any]:
    """``law_spec`` and ``switch_laws`` with the law of the page."""
    spec = module("example_law_spec", (tree / "fairq_ryu/law_spec.py").read_text())
    text = (tree / "fairq_ryu/policies/switch_laws.py").read_text()
    twin = module("example_laws", text.replace("from fairq_ryu.law_spec ", "from example_law_spec "))
    yield types.SimpleNamespace(spec=spec, twin=twin)
    for name in ("example_law_spec", "example_laws"):
        del sys.modules[name]


@pytest.fixture(scope="module")
def library(tree: Path) -> Any:
    return build(tree / "fairq_ryu/agent/bpf", tree)


def test_the_page_shows_the_files_of_the_example() -> None:
    (code,), diffs, (policy,) = blocks(PAGE, "c"), blocks(PAGE, "diff"), blocks(PAGE, "python")
    assert code == (EXAMPLE / "fixed_pool.h").read_text()
    assert diffs == [(EXAMPLE / name).read_text() for name in ("c.diff", "python.diff")]
    assert policy == (EXAMPLE / "policy.py").read_text()


@settings(max_examples=100)
@given(st.data())
def test_the_c_code_and_its_twin_agree(library: Any, laws: Any, data: Any) -> None:
    values = data.draw(parameters(laws.twin.LawParameters, [laws.spec.LawKind.FIXED_POOL]))
    trace = data.draw(TRACES)
    steps_agree(laws.twin.Law(values), CompiledLaw(library, values), trace, laws.twin.LawInput)


def test_a_twin_that_differs_by_one_byte_is_found(library: Any, laws: Any) -> None:
    kind, twin = laws.spec.LawKind.FIXED_POOL, laws.twin

    class Wrong(twin.Law):  # type: ignore[name-defined,misc]
        def window(self, flows: int, young: int, sent: int, mss: int) -> int:
            return int(super().window(flows, young, sent, mss)) + 1

    values = twin.LawParameters(kind=kind, rate=25_000_000, limit=125_000, target=62_500)
    trace: list[Any] = [("tick", 200_000, 1000, 5, 0), ("window", 5, 0, 0, 1460)]
    steps_agree(twin.Law(values), CompiledLaw(library, values), trace, twin.LawInput)
    with pytest.raises(AssertionError, match="window"):
        steps_agree(Wrong(values), CompiledLaw(library, values), trace, twin.LawInput)


def test_the_pool_is_the_target_whatever_the_queue_does(library: Any, laws: Any) -> None:
    values = laws.twin.LawParameters(
        kind=laws.spec.LawKind.FIXED_POOL, rate=25_000_000, limit=125_000, target=62_500
    )
    law = CompiledLaw(library, values)
    for tick, backlog in enumerate((0, 10_000, 125_000), 1):
        assert law.tick(laws.twin.LawInput(tick * 1_000_000, tick * backlog * 1_000_000, backlog, 5))
        assert law.state.granted == 62_500
        assert (law.window(5, 0, 0), law.window(20, 0, 0)) == (12_500, 3_125)
    # 60 flows: one segment each is more than the pool, and two more than the buffer.
    assert law.window(60, 0, 0) == 1460


def test_the_policy_requests_it_and_has_the_same_law_in_the_controller(laws: Any) -> None:
    source = (EXAMPLE / "policy.py").read_text().replace("fairq_ryu.law_spec", "example_law_spec")
    policy = module("example_policy", source).__dict__["FixedPool"]({"alpha": 0.5})
    del sys.modules["example_policy"]
    spec = policy.switch_law(PortKey(1, 1))
    assert (spec.kind, spec.target_ppm) == (laws.spec.LawKind.FIXED_POOL, 500_000)
    policy.switch_law = lambda _: None
    port = GovernedPort(PortKey(1, 1), policy, 0.5, 2.0)
    (change,) = port.sampled(QueueSample(0, 0, 125_000, 25_000_000, 0, 0, 0.0), 0.0)
    assert change.rule is not None and (change.rule.kind, change.rule.bytes) == (WindowKind.POOL, 62_500)
