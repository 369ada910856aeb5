"""Tests that need root fail without it, saying what is missing: a skipped test proves nothing."""

import os
import pathlib
import shutil
import subprocess

import hypothesis
import pytest
import xdist.scheduler
import xdist.workermanage

from mininet_topos.patience import patient
from tests.support.traces import mark_processes

TESTS = pathlib.Path(__file__).parent

mark_processes()
# The time that a machine needs to generate examples has no meaning for the code under test.
hypothesis.settings.register_profile(
    "fairq", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("fairq")


# Files that need nothing of the machine for themselves, so they run beside those that do. Those of
# tests/switch hand packets to the programs in a network namespace of their own. None of their figures comes
# from a tracepoint, which an agent that starts elsewhere interrupts for some milliseconds, and none of their
# tests fails because the machine is slow.
BESIDE = {
    "tests/e2e/test_refusals.py",
    *(
        f"tests/switch/test_{name}.py"
        for name in (
            *("attaching", "conversations", "copies", "forged", "hostile", "laws", "layout", "learning"),
            *("observe", "openings", "peers", "rewriting", "vlans"),
        )
    ),
}


def scope_of(nodeid):
    """The group of a test, whose tests run one after the other."""
    directory, file = nodeid.split("/")[1], nodeid.split("::")[0]
    if file in BESIDE:
        return file
    return {"unit": nodeid, "lint": "lint", "page": "page"}.get(directory, "machine")


class OneMachine(xdist.scheduler.LoadScopeScheduling):
    """Scheduler for tests that run in parallel (pytest-xdist): tests that use the machine's network, Open
    vSwitch or CPU time run one after the other; so do those that share a browser, and those of a file in
    `BESIDE`.
    """

    def _split_scope(self, nodeid):
        return scope_of(nodeid)


def pytest_xdist_make_scheduler(config, log):
    gone = sorted(name for name in BESIDE if not (TESTS.parent / name).is_file())
    assert not gone, f"BESIDE names files that do not exist: {', '.join(gone)}"
    return OneMachine(config, log)


def pytest_collection_modifyitems(config, items):
    """A slow machine has longer for each test, too."""
    for item in items:
        marker = item.get_closest_marker("timeout")
        seconds = marker.args[0] if marker else float(config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(patient(seconds)), append=False)


def pytest_configure():
    """Interrupted workers get the time to remove a fabric of 20 switches: pytest-xdist kills them after 10
    seconds by default.
    """
    xdist.workermanage.NodeManager.EXIT_TIMEOUT = 60


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """What runs beside the tests that share the machine, which take longest, leaves the processors to them.
    A browser is slow enough as it is.
    """
    if os.geteuid() == 0 and "PYTEST_XDIST_WORKER" in os.environ:
        nice = 0 if scope_of(item.nodeid) in ("machine", "page") else 10
        os.setpriority(os.PRIO_PROCESS, 0, nice)  # root may take it back


def missing():
    """What this machine lacks for the tests marked `root`; empty if nothing."""
    if os.geteuid() != 0:
        return "root (or run `make test-unit`)"
    for tool, remedy in (("ovs-vsctl", "make setup"), ("mn", "make setup"), ("tc", "make setup")):
        if shutil.which(tool) is None:
            return f"{tool} ({remedy})"
    if subprocess.run(["ovs-vsctl", "--timeout=5", "show"], capture_output=True, check=False).returncode:
        return "a running Open vSwitch (scripts/start-ovs.sh)"
    return ""


@pytest.fixture(scope="session")
def machine():
    return missing()


@pytest.fixture(autouse=True)
def _needs_root(request, machine):
    if request.node.get_closest_marker("root") and machine:
        pytest.fail(f"this test needs {machine}", pytrace=False)
