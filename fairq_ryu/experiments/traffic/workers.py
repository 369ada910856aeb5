"""The runner's side of the load generator: starts roles inside hosts, sends commands, receives answers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from mininet_topos.commands import child_setup
from mininet_topos.patience import patient

REPOSITORY = Path(__file__).resolve().parents[3]


class RunError(Exception):
    """A run failed; the text contains the step and the reason."""


class Place(Protocol):
    """Where a program can be started: a Mininet host."""

    name: str

    def popen(self, *args: Any, **kwargs: Any) -> subprocess.Popen[bytes]: ...


class Worker:
    """One process of the load generator."""

    def __init__(self, place: Place, role: str, log: Path, *arguments: str) -> None:
        """Start ``role`` inside ``place``; its stderr is appended to ``log``."""
        self.name = f"{role} on {place.name}"
        # -S and -s: no site-packages. The generator needs none, and two dozen generators start together.
        command = [
            sys.executable,
            "-S",
            "-s",
            "-m",
            "fairq_ryu.experiments.traffic.generator",
            role,
            *arguments,
        ]
        with log.open("ab") as errors, child_setup() as prepare:
            self.process = place.popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"},
                preexec_fn=prepare,
            )
        self._log = log
        self._pending = b""

    def send(self, cmd: str, **values: Any) -> None:
        """Send a command without waiting."""
        assert self.process.stdin is not None
        data = memoryview((json.dumps({"cmd": cmd, **values}) + "\n").encode())
        try:
            while data:
                data = data[self.process.stdin.write(data) :]
        except BrokenPipeError:
            raise RunError(f"{self.name} has ended: {self._last_log_line()}") from None

    def receive(self, re: str, timeout: float) -> dict[str, Any]:
        """The answer to command ``re``. ``RunError`` when it is late (``timeout`` s, `patient` ones),
        or an error.
        """
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        limit = patient(timeout)
        deadline = time.monotonic() + limit
        while b"\n" not in self._pending:
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise RunError(f"{self.name} did not answer {re!r} within {limit:g} s")
            data = os.read(descriptor, 1 << 16)
            if not data:
                raise RunError(f"{self.name} has ended: {self._last_log_line()}")
            self._pending += data
        line, self._pending = self._pending.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        if answer["re"] != re:
            raise RunError(f"{self.name}: {answer.get('message', answer)}")
        return answer

    def ask(self, cmd: str, timeout: float = 10.0, **values: Any) -> dict[str, Any]:
        """`send`, then `receive`."""
        self.send(cmd, **values)
        return self.receive(cmd, timeout)

    def end(self, patience: float = 2.0) -> None:
        """End the process: close its input, and kill it after ``patience`` s."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(patient(patience))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _last_log_line(self) -> str:
        text = self._log.read_text(errors="replace").strip() if self._log.exists() else ""
        return text.splitlines()[-1] if text else f"exit code {self.process.poll()}"


def ask_all(
    workers: Sequence[Worker], cmd: str, timeout: float = 10.0, **values: Any
) -> list[dict[str, Any]]:
    """Send every worker the same command, then collect the answers in order."""
    for worker in workers:
        worker.send(cmd, **values)
    return [worker.receive(cmd, timeout) for worker in workers]


def end_all(workers: Iterable[Worker]) -> None:
    """End many workers, closing every input first so that they end in parallel."""
    listed = list(workers)
    for worker in listed:
        assert worker.process.stdin is not None
        worker.process.stdin.close()
    for worker in listed:
        worker.end()
