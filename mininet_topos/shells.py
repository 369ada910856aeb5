"""The shells of Mininet's nodes: no signal to the process group ends one too early, one that does not start
is an error, and programs print no colours there.
"""

from __future__ import annotations

import select
from typing import Any

from mininet_topos.commands import END_SIGNALS, child_setup

_PROMPT = chr(127)
_LOOK_MS = 200


class ShellError(Exception):
    """The shell of a node has ended before its prompt; the text has the reason."""


class ShieldedShell:
    """Mixin for Mininet nodes, before the node's class.

    Mininet waits for the prompt of a node's shell without a limit. ``mnexec`` gives the shell a session of
    its own, but until then Ctrl-C or a signal to the group ends it, and Mininet waits for ever. Here the
    signals are ignored until ``env``, which follows ``mnexec``, gives the shell the default actions back. A
    shell that ends nevertheless, because ``mnexec`` cannot make its namespace, is a ``ShellError``.

    The shell has a terminal, for which iproute2 of Debian 13 prints colours. They would be among the words of
    what a program reads.
    """

    name: str
    shell: Any = None
    stdout: Any = None
    _has_prompt = False

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

    def read(self, size: int = 1024) -> str:
        """Read as Mininet does, but at first all that comes until the prompt. ``ShellError`` if the shell
        ends before.
        """
        if self._has_prompt:
            return str(super().read(size))  # type: ignore[misc]
        text = ""
        readable = select.poll()  # Mininet's own also reports that it could write
        readable.register(self.stdout, select.POLLIN)
        try:
            while not text.endswith(_PROMPT):
                if readable.poll(_LOOK_MS):
                    text += super().read(size)  # type: ignore[misc]
                elif self.shell.poll() is not None and not readable.poll(0):
                    reason = "".join(f": {line}" for line in text.strip().splitlines()[-1:])
                    raise ShellError(f"{self.name}: mnexec ended with code {self.shell.returncode}{reason}")
        except BaseException:
            self.shell.kill()  # Mininet does not know this node yet, so nobody else would
            raise
        self._has_prompt = True
        return text
