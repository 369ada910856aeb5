"""A node's shell survives a signal that arrives before it has a session of its own."""

import subprocess

from mininet_topos.shells import ShieldedShell


class Plain:
    """As Mininet's node: it starts what it is told to."""

    def _popen(self, cmd, **params):
        return subprocess.Popen(cmd, stdout=subprocess.PIPE, text=True, **params)


class Shielded(ShieldedShell, Plain):
    pass


# The first sh stands for mnexec, before its setsid; the second one for the shell.
COMMAND = [
    *("sh", "-c", 'kill -TERM $$; exec "$@"', "mnexec"),
    *("env", "PS1=x", "sh", "-c", "echo shell $PS1; kill -TERM $$; echo never"),
]


def result(node):
    child = node._popen(COMMAND)
    return child.communicate(timeout=10)[0], child.returncode


def test_without_it_the_signal_ends_the_shell_before_its_prompt():
    assert result(Plain()) == ("", -15)


def test_the_shell_starts_all_the_same_and_has_the_default_actions():
    assert result(Shielded()) == ("shell x\n", -15)


def test_programs_in_a_node_are_started_as_ever():
    node = Shielded()
    node.shell = object()
    assert result(node) == ("", -15)
