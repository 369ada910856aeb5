"""The policy that docs/writing-a-policy.md shows works, also as a package that is installed and configured as
the page describes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

from fairq_ryu.laws.las import LasLaw
from fairq_ryu.model import FlowInfo, FlowKey, PortKey, QueueSample, WindowKind, WindowRule
from fairq_ryu.policies.engine import PolicyEngine
from tests.support.documents import ROOT, blocks, read

PAGE = read("docs/writing-a-policy.md")
POLICY, APP, TEST, EAGER = blocks(PAGE, "python")
(PACKAGE,) = blocks(PAGE, "toml")
PORT = PortKey(1, 17)
SAMPLE = QueueSample(0, 0, 125000, 25_000_000, 0, 0, 0.0)
FLOW = FlowInfo(FlowKey("10.0.0.1", "10.0.0.2", 5001, 40000), 1460, 512, "10.0.0.1")
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


@pytest.fixture
def buffershare(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The module with the policy."""
    module = types.ModuleType("buffershare")
    monkeypatch.setitem(sys.modules, "buffershare", module)
    exec(compile(POLICY, "buffershare.py", "exec"), module.__dict__)
    return module


def test_the_policy_sets_and_removes_its_pool(buffershare):
    run = PolicyEngine(buffershare.BufferShare({"share": 0.5}), lease=2)
    assert run.sampled(PORT, SAMPLE, 0.0) == []
    (change,) = run.flow_started(PORT, FLOW, 0.1)
    assert (change.target.port, change.rule) == (PORT, WindowRule(WindowKind.POOL, 62500))
    assert run.sampled(PORT, SAMPLE._replace(active=1), 0.2) == []
    (renewed,) = run.sampled(PORT, SAMPLE._replace(active=1), 0.7)
    assert renewed == change
    (gone,) = run.flow_ended(PORT, FLOW.key, 0.8)
    assert gone.rule is None
    assert run.failures == 0


def test_its_test_passes(buffershare):
    space = {}
    exec(compile(TEST, "test_buffershare.py", "exec"), space)
    space["test_the_pool_stands_while_there_are_flows"]()


def test_without_the_law_in_the_switch_the_port_has_no_windows(buffershare):
    exec(compile(EAGER, "eager.py", "exec"), buffershare.__dict__)
    run = PolicyEngine(buffershare.Eager({"share": 0.5}), 2.0)
    (change,) = run.sampled(PORT, SAMPLE, 0.0)
    assert change.rule is not None and change.rule.law == LasLaw(target_ppm=100_000)
    run.flow_started(PORT, FLOW, 0.1)
    (change,) = run.law_refused(PORT, "too fast", 0.2)
    assert change.rule is None and run.law_missing(PORT) == "too fast"


# Installed


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The package in its own directory, beside the installed packages."""
    source = tmp_path_factory.mktemp("buffershare")
    target = tmp_path_factory.mktemp("site")
    (source / "buffershare.py").write_text(POLICY)
    (source / "buffershare_app.py").write_text(APP)
    (source / "pyproject.toml").write_text(PACKAGE)
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
        "from fairq_ryu.experiments import runner; from fairq_ryu.experiments.measure import machine;"
        "runner.known_variants(['fairq', 'buffershare'], None);"
    )
    done = run(environment, "-c", program + "print(machine.app_of('buffershare'), machine.app_of('fairq'))")
    assert done.stdout.split() == ["fairq_ryu.apps.policy", "fairq_ryu.apps.fairq"], done.stderr
    assert "fairq run incast --policy droptail,fairq,buffershare" in PAGE


def test_without_the_package_its_name_is_unknown(tmp_path):
    file = tmp_path / "fabric.conf"
    file.write_text(CONFIG)
    done = run({**os.environ, "PYTHONPATH": str(ROOT)}, "-c", PROGRAM, str(file))
    assert "AssertionError" in done.stderr
