"""The law that docs/writing-a-law.md adds: the page shows its files, which work in a copy of the sources."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import ROOT, blocks, read
from tests.support.host_laws import WARNINGS

EXAMPLE = ROOT / "tests/data/relay"
FILES = sorted(str(path.relative_to(EXAMPLE)) for path in EXAMPLE.rglob("*.[hp]*") if path.suffix != ".pyc")
PAGE = read("docs/writing-a-law.md")
GENERIC = (
    "tests/unit/agent/bpf/laws/test_law.py",
    "tests/unit/agent/test_law_table.py",
    "tests/unit/channel/test_window_law.py",
    "tests/unit/laws/test_registry.py",
)


def run(tree: Path, *words: str) -> str:
    """The output of a command in the copy. AssertionError: it failed."""
    done = subprocess.run(words, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources with the law of the page."""
    root = tmp_path_factory.mktemp("source")
    left_out = shutil.ignore_patterns("*.o", "generated", "__pycache__", "conftest.py")
    for name in ("fairq_ryu", "tests/support", "tests/unit/agent/conftest.py", *GENERIC):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, root / name)
    shutil.copy(ROOT / "pyproject.toml", root)
    shutil.copytree(EXAMPLE, root, dirs_exist_ok=True)
    return root


def test_the_page_shows_the_files_of_the_example() -> None:
    assert [name for name in FILES if f"`{name}`" not in PAGE] == []
    shown = blocks(PAGE, "c") + blocks(PAGE, "python")
    assert sorted(shown) == sorted((EXAMPLE / name).read_text(encoding="utf-8") for name in FILES)


def test_every_file_but_the_test_is_in_its_folder() -> None:
    outside = [name for name in FILES if not name.startswith("fairq_ryu/laws/relay/")]
    assert outside == ["tests/unit/laws/relay/test_law.py"] and len(FILES) == 4


PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=ci")


def test_its_tests_and_those_of_all_laws_pass(tree: Path) -> None:
    run(tree, *PYTEST, "tests/unit/laws/relay", *GENERIC, "-k", "relay or no_event or number")


def test_its_test_finds_a_law_that_grants_too_much(tree: Path) -> None:
    header = tree / "fairq_ryu/laws/relay/law.h"
    right = header.read_text(encoding="utf-8")
    header.write_text(right.replace("? own->small : own->large", "? own->large : own->small"))
    try:
        with pytest.raises(AssertionError, match="2 failed"):
            run(tree, *PYTEST, "tests/unit/laws/relay")
    finally:
        header.write_text(right, encoding="utf-8")


@pytest.mark.parametrize("program", ["queue", "window"])
def test_the_programs_compile_with_it(tree: Path, program: str) -> None:
    made = tree / "generated"
    run(tree, sys.executable, "-m", "fairq_ryu.agent.law_header", str(made))
    assert "relay_tick" in (made / "fairq_laws.h").read_text()
    flags = ("-O2", "-g", "-target", "bpf", "-mcpu=v3", *WARNINGS)
    target = {"x86_64": "x86", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    places = (f"-I/usr/include/{platform.machine()}-linux-gnu", f"-I{made}", f"-D__TARGET_ARCH_{target}")
    source = f"fairq_ryu/agent/bpf/{program}.bpf.c"
    run(tree, "clang", *flags, *places, "-c", source, "-o", str(made / "object.o"))


def test_the_policy_requests_it(tree: Path) -> None:
    program = """
from fairq_ryu.channel.window_law import LawCommand, decode_set, encode_set
from fairq_ryu.laws.relay.policy import Relay
from fairq_ryu.model import PortKey
policy = Relay({"alpha": 0.3, "large": 0.5, "small": 0.1, "hold": 0.01})
asked = policy.switch_law(PortKey(1, 1))
assert decode_set(encode_set(LawCommand.ADD, 1, asked)).spec == asked
print(asked.kind, asked.target_ppm, asked.large_ppm, asked.small_ppm, asked.hold_us)
"""
    assert run(tree, sys.executable, "-c", program) == "7 300000 500000 100000 10000\n"
