"""A node's shell survives a signal that arrives before it has its own session."""

import os
import signal
import subprocess

import mininet.node
import pytest

from mininet_topos.shells import ShellError, ShieldedShell


class Plain:
    """A node like Mininet's, which starts the given command."""

    def _popen(self, cmd, **params):
        return subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True, **params)


class Shielded(ShieldedShell, Plain):
    pass


# The first sh replaces mnexec, before its setsid; the second one is the shell.
COMMAND = [
    *("sh", "-c", 'kill -TERM $$; exec "$@"', "mnexec"),
    *("env", "PS1=x", "sh", "-c", "echo shell $PS1 $NO_COLOR; kill -TERM $$; echo never"),
]


def result(node):
    child = node._popen(COMMAND)
    return child.communicate(timeout=10)[0], child.returncode


def test_an_unprotected_shell_is_ended_before_its_prompt():
    assert result(Plain()) == ("", -15)


def test_a_protected_shell_starts_with_the_default_actions_and_without_colours():
    assert result(Shielded()) == ("shell x 1\n", -15)


def test_programs_in_a_node_are_started_as_before():
    node = Shielded()
    node.shell = object()
    assert result(node) == ("", -15)


class Node(ShieldedShell, mininet.node.Node):
    """A node whose shell runs in the machine's own namespaces, so that it needs no root."""


@pytest.fixture
def mnexec(tmp_path, monkeypatch):
    """Replace the program by a script."""

    def write(script):
        path = tmp_path / "mnexec"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return write


def test_a_shell_that_starts_is_read_as_before(mnexec):
    mnexec('shift; sleep 0.3; exec setsid "$@"')
    node = Node("h1", inNamespace=False)
    try:
        assert node.cmd("echo $((6 * 7))").strip() == "42"
    finally:
        node.terminate()


@pytest.mark.parametrize("late", ["", "sleep 0.3; "])
def test_a_namespace_that_cannot_be_made_is_an_error_and_no_wait_for_ever(mnexec, late):
    mnexec(f"echo unshare: Operation not permitted; {late}exit 3")
    with pytest.raises(ShellError, match=r"^h1: mnexec ended with code 3: unshare: Operation not permitted$"):
        Node("h1", inNamespace=False)


def test_an_interrupted_start_leaves_no_process(mnexec):
    mnexec("exec sleep 600")

    class Interruption(BaseException):
        pass

    def interrupt(*_args):
        raise Interruption

    class Watched(Node):
        def read(self, size=1024):
            started.append(self.shell)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            return super().read(size)

    started = []
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(Interruption):
            Watched("h1", inNamespace=False)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert started[0].wait(10) == -signal.SIGKILL
