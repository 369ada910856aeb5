"""Starting programs: signals that a child gets between fork and exec."""

import os
import signal
import subprocess

import pytest

from mininet_topos.commands import child_setup

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Arrived(BaseException):
    pass


@pytest.fixture
def raising():
    """The parent's handlers raise, as those of a run do."""

    def arrived(_number, _frame):
        raise Arrived

    before = {number: signal.signal(number, arrived) for number in ENDS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_before_exec_reaches_the_parent_and_one_after_it_ends_the_child(raising, number):
    with child_setup() as prepare:

        def late():
            os.kill(os.getpid(), number)
            prepare()

        command = ["sh", "-c", "echo started; exec sleep 60"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        child = subprocess.Popen(command, preexec_fn=late, text=True, **pipes)
    try:
        assert child.stdout.readline() == "started\n"
        child.send_signal(number)
        assert child.communicate(timeout=10)[1] == ""
        assert child.returncode == -number
    finally:
        child.kill()
        child.wait()


def test_a_child_can_be_started_that_ignores_them(raising):
    with child_setup(ignore=True) as prepare:
        child = subprocess.Popen(
            ["sh", "-c", "kill -TERM $$; echo on"], stdout=subprocess.PIPE, preexec_fn=prepare
        )
    assert child.communicate(timeout=10)[0] == b"on\n"


def test_the_parent_gets_its_signal_when_the_child_runs(raising):
    reached = []
    with pytest.raises(Arrived), child_setup():
        signal.raise_signal(signal.SIGTERM)  # to this thread: kill() may choose one of the test runner's
        reached.append("the end of the block")
    assert reached == ["the end of the block"]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()).isdisjoint(ENDS)


def test_a_signal_that_the_parent_ignores_is_ignored_by_the_child():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with child_setup() as prepare:
            child = subprocess.Popen(
                ["grep", "SigIgn", "/proc/self/status"], stdout=subprocess.PIPE, preexec_fn=prepare
            )
        assert int(child.communicate(timeout=10)[0].split()[1], 16) & 1 << signal.SIGINT - 1
    finally:
        signal.signal(signal.SIGINT, before)
