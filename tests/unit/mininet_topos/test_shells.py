"""A node's shell survives a signal that arrives before it has its own session."""

import subprocess

from mininet_topos.shells import ShieldedShell


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
