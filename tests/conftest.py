"""Tests that need root fail without it, saying what is missing: a skipped test proves nothing."""

import contextlib
import fcntl
import functools
import os
import pathlib
import shutil
import subprocess
import sys

import hypothesis
import pytest
import xdist.scheduler
import xdist.workermanage

from mininet_topos.patience import patient
from tests.support.own_machine import OwnMachine, cubic_allowed
from tests.support.traces import mark_processes

TESTS = pathlib.Path(__file__).parent
# What tests copy and change.
collect_ignore = ["data"]
WORKER = "PYTEST_XDIST_WORKER" in os.environ

mark_processes()
# Every program that tests start would compile the project for itself otherwise.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# The time that a machine needs to generate examples has no meaning for the code under test.
hypothesis.settings.register_profile(
    "fairq", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("fairq")


def _files(names):
    return tuple(f"tests/{each.replace('/', '/test_')}.py" for each in names.split())


# Files that need nothing of the machine for themselves, so they run beside those that do. Those of
# tests/switch hand packets to the programs in a network namespace of their own. None of their figures comes
# from a tracepoint, which an agent that starts elsewhere interrupts for some milliseconds, and none of their
# tests fails because the machine is slow.
BESIDE = _files("""
    e2e/refusals fabric/cluster_database switch/acdc switch/attaching switch/bridges switch/conversations
    switch/copies switch/forged switch/hostile switch/laws switch/layout switch/learning switch/observe
    switch/openings switch/peers switch/rewriting switch/shim switch/shim_live switch/signed switch/tenants
    switch/unify switch/vlans
""")
# Files that use bridges, hosts, agents and controllers, but do not fail because the machine is slow: in a
# parallel run each worker has an own machine for them. Those that take longest are first.
ON_OWN_MACHINE = _files("""
    e2e/experiments switch/coupling fabric/agent e2e/policies fabric/topo e2e/owners e2e/tenants
    fabric/topologies e2e/controller e2e/fabric e2e/incast e2e/far e2e/turns e2e/fabric_life
    e2e/ports_of_ovs e2e/metrics e2e/fabric_changes e2e/switch_laws fabric/ports e2e/page fabric/bridges
    e2e/ways e2e/release e2e/loops e2e/sweep e2e/attacks e2e/observe e2e/far_queues e2e/kernel_qdiscs
    e2e/shim fabric/delay fabric/drops
""")


def scope_of(nodeid):
    """The group of a test, whose tests run one after the other."""
    directory, file = nodeid.split("/")[1], nodeid.split("::")[0]
    if file in BESIDE or file in ON_OWN_MACHINE:
        return file
    # What a file's tests share is then made once, and not once in each worker.
    scopes = {"unit": file, "lint": "lint", "page": "page", "faults": "faults", "floods": "faults"}
    return scopes.get(directory, "machine")


def turn_of(scope):
    """The order of the groups. Beside the tests that have the machine for themselves run those that do not
    mind; when all of them have begun, tests on own machines follow.
    """
    if scope in ON_OWN_MACHINE:
        return 4 + ON_OWN_MACHINE.index(scope)
    if scope == "faults":
        return 3
    if scope == "machine":
        return 0
    return 1 if scope in BESIDE or scope in ("lint", "page") else 2


class OneMachine(xdist.scheduler.LoadScopeScheduling):
    """Scheduler for tests that run in parallel (pytest-xdist): tests that use the machine's network, Open
    vSwitch or CPU time run one after the other; so do those that share a browser, and those of a file in
    `BESIDE` or `ON_OWN_MACHINE`.
    """

    def _split_scope(self, nodeid):
        return scope_of(nodeid)


def pytest_xdist_make_scheduler(config, log):
    gone = sorted(name for name in (*BESIDE, *ON_OWN_MACHINE) if not (TESTS.parent / name).is_file())
    assert not gone, f"tests/conftest.py names files that do not exist: {', '.join(gone)}"
    config.option.loadscopereorder = False  # the order is that of the collection
    return OneMachine(config, log)


own_machine = OwnMachine()
# Of all workers: whether the machine is free for one test, and whose turn it is to ask.
FREE, TURN = (os.open(path, os.O_RDONLY) for path in (TESTS, TESTS / "conftest.py"))


@contextlib.contextmanager
def place_of(nodeid):
    """Where a test runs: tests on own machines only while no test has the machine for itself. The browser has
    an own machine at any time: it interrupts what it loads when somebody adds a network interface. The faults
    make their own machine themselves, because they end its programs.
    """
    scope = scope_of(nodeid)
    if not WORKER or scope not in ("machine", "page", "faults", *ON_OWN_MACHINE) or missing():
        yield
        return
    if scope != "page":
        fcntl.flock(TURN, fcntl.LOCK_EX)
        fcntl.flock(FREE, fcntl.LOCK_EX if scope == "machine" else fcntl.LOCK_SH)
        fcntl.flock(TURN, fcntl.LOCK_UN)
    try:
        with contextlib.nullcontext() if scope in ("machine", "faults") else own_machine.used():
            yield
    finally:
        fcntl.flock(FREE, fcntl.LOCK_UN)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    with place_of(item.nodeid):
        return (yield)


def pytest_sessionfinish():
    own_machine.close()


def pytest_collection_modifyitems(config, items):
    """A slow machine has longer for each test, too; and parallel runs have their order."""
    if WORKER:
        items.sort(key=lambda item: turn_of(scope_of(item.nodeid)))
    for item in items:
        marker = item.get_closest_marker("timeout")
        seconds = marker.args[0] if marker else float(config.getini("timeout"))
        item.add_marker(pytest.mark.timeout(patient(seconds)), append=False)


def pytest_configure(config):
    """Interrupted workers get the time to remove a fabric of 20 switches: pytest-xdist kills them after 10
    seconds by default.
    """
    xdist.workermanage.NodeManager.EXIT_TIMEOUT = 60
    if not WORKER and os.geteuid() == 0:
        allowed = cubic_allowed()
        allowed.__enter__()
        config.add_cleanup(lambda: allowed.__exit__(None, None, None))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """What runs beside the tests that share the machine, which take longest, leaves the processors to them.
    A browser is slow enough as it is.
    """
    if os.geteuid() == 0 and WORKER:
        nice = 0 if scope_of(item.nodeid) in ("machine", "page", "faults", *ON_OWN_MACHINE) else 10
        os.setpriority(os.PRIO_PROCESS, 0, nice)  # root may take it back


@functools.cache
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
