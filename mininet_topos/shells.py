"""The shells of Mininet's nodes: a signal to the process group cannot end one too early, and programs print
no colours there.
"""

from __future__ import annotations

from typing import Any

from mininet_topos.commands import END_SIGNALS, child_setup


class ShieldedShell:
    """Mixin for Mininet nodes, before the node's class.

    Mininet waits for the prompt of a node's shell without a limit. ``mnexec`` gives the shell a session of
    its own, but until then Ctrl-C or a signal to the group ends it, and Mininet waits for ever. Here the
    signals are ignored until ``env``, which follows ``mnexec``, gives the shell the default actions back.

    The shell has a terminal, for which iproute2 of Debian 13 prints colours. They would be among the words of
    what a program reads.
    """

    shell: Any = None

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        """Start the shell or a program, as :meth:`mininet.node.Node._popen` does."""
        start = super()._popen  # type: ignore[misc]
        if self.shell is not None:  # a program in the node: its caller sets the signal actions
            return start(cmd, **params)
        behind = cmd.index("env") + 1
        names = ",".join(number.name.removeprefix("SIG") for number in END_SIGNALS)
        with child_setup(ignore=True) as prepare:
            command = [*cmd[:behind], f"--default-signal={names}", "NO_COLOR=1", *cmd[behind:]]
            return start(command, preexec_fn=prepare, **params)
