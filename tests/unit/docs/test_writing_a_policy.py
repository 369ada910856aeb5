"""A policy of another package, written, installed and configured as the page describes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/writing-a-policy.md").read_text(encoding="utf-8")
CONFIG = "[ports]\nleaf1-eth* = buffershare\n[buffershare]\nshare = 0.3\n"

PROGRAM = """
import sys
from fairq_ryu.config import loader, schema
from fairq_ryu.model import FlowInfo, FlowKey, PortKey, QueueSample
from fairq_ryu.policies import base
from fairq_ryu.policies.choice import choose
from fairq_ryu.policies.engine import PolicyEngine

assert "buffershare" in base.available()
settings = loader.load([sys.argv[1]])
engine = PolicyEngine(choose("fairq", settings), 2.0)
port, other = PortKey(1, 1), PortKey(1, 2)
engine.named(port, "leaf1-eth1", "host", 0.0)
engine.named(other, "leaf2-eth1", "host", 0.0)
flow = FlowInfo(FlowKey("10.0.0.1", "10.0.0.2", 80, 1000), 1460, 512, "10.0.0.1")
engine.sampled(port, QueueSample(0, 0, 100_000, 0, 0, 0, 0.0), 0.0)
(change,) = engine.flow_started(port, flow, 0.1)
window = change.rule.bytes
print(engine.policy_of(port).name, engine.policy_of(other).name, window, engine.poll_interval([port]))
"""


def block(language: str, place: int = 0) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)[place]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The package in its own directory, beside the installed packages."""
    source = tmp_path_factory.mktemp("buffershare")
    target = tmp_path_factory.mktemp("site")
    (source / "buffershare.py").write_text(block("python"))
    (source / "buffershare_app.py").write_text(block("python", 1))
    (source / "pyproject.toml").write_text(block("toml"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index"]
    options = ["--no-deps", "--no-build-isolation", "--target", str(target), str(source)]
    done = subprocess.run(pip + options, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path = os.pathsep.join([str(target), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path}


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


def test_the_policy_is_found_loaded_and_configured(environment, tmp_path):
    file = tmp_path / "fabric.conf"
    file.write_text(CONFIG)
    done = run(environment, "-c", PROGRAM, str(file))
    assert done.stdout.split() == ["buffershare", "fairq", "30000", "0.05"], done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (CONFIG, "fine"),
        (CONFIG.replace("0.3", "3"), "[buffershare] share: 3 is more than 1"),
        (
            CONFIG.replace("share =", "shore ="),
            "[buffershare] has no setting shore. Remedy: did you mean share?",
        ),
    ],
)
def test_its_settings_are_checked(environment, tmp_path, text, words):
    file = tmp_path / "fabric.conf"
    file.write_text(text)
    program = "import sys; from fairq_ryu.cli.main import main; sys.exit(main())"
    done = run(environment, "-c", program, "check", str(file))
    assert words in done.stdout + done.stderr
    assert done.returncode == (0 if words == "fine" else 2)


def test_its_application_names_it(environment):
    done = run(environment, "-c", "import buffershare_app as app; print(app.BufferShareApp.policy_name)")
    assert done.stdout.split() == ["buffershare"], done.stderr


def test_experiments_take_it(environment):
    program = (
        "from fairq_ryu.experiments.measure import machine; machine.check_policies(['fairq', 'buffershare']);"
    )
    done = run(environment, "-c", program + "print(machine.app_of('buffershare'), machine.app_of('fairq'))")
    assert done.stdout.split() == ["fairq_ryu.apps.policy", "fairq_ryu.apps.fairq"], done.stderr
    assert "fairq run incast --policy droptail,fairq,buffershare" in PAGE


def test_without_the_package_its_name_is_unknown(tmp_path):
    file = tmp_path / "fabric.conf"
    file.write_text(CONFIG)
    done = run({**os.environ, "PYTHONPATH": str(ROOT)}, "-c", PROGRAM, str(file))
    assert "AssertionError" in done.stderr
