"""The network of the floods: that of the faults, with an attacker and its target beside the flows."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fairq_ryu.agent import status
from fairq_ryu.errors import UserError
from mininet_topos.patience import patient
from tests.faults.site import BRIDGE, SENDERS, Site, made_site
from tests.floods.frames import End
from tests.support.lab import ROOT, Process

_OTHERS = 2
_ASK_EVERY = 0.1
_ANSWER = 20.0
_START = 3.0
"""Seconds until a process that floods has read its frames."""


class Running(Protocol):
    """A flood that has been begun."""

    @property
    def begin(self) -> float:
        """When it begins, seconds of the monotonic clock."""

    def wait(self) -> float:
        """Wait until it has ended. How many a second it has sent."""


class Sender:
    """A process that sends frames out of a host."""

    def __init__(self, host: Any, frames: list[bytes], rate: float, seconds: float, begin: float) -> None:
        words = (str(host.defaultIntf()), str(rate), str(seconds), str(begin))
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
        self._process = host.popen([sys.executable, "-m", "bench.flood", *words], **options)
        self._process.stdin.write("\n".join(frame.hex() for frame in frames))
        self._process.stdin.close()

    def wait(self) -> float:
        """See :class:`Running`."""
        found = json.loads(self._process.stdout.read())
        assert self._process.wait(patient(30)) == 0
        return float(found["sent"] / found["seconds"])


@dataclass
class Senders:
    """Several, as one flood. ``begin``: when they begin to send, seconds of the monotonic clock."""

    begin: float
    senders: list[Sender]

    def wait(self) -> float:
        """See :class:`Running`."""
        return sum(each.wait() for each in self.senders)


@dataclass
class Answers:
    """How the controller and the agent have answered meanwhile, seconds."""

    controller: list[float] = field(default_factory=list)
    agent: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


class FloodSite:
    """A site, and what floods are made of."""

    def __init__(self, site: Site) -> None:
        self.site = site
        hosts = site.net.hosts
        self._attacker, self._helper, self._receiver = hosts[SENDERS], hosts[SENDERS + 1], hosts[-1]
        self._introduce()
        self.flows: list[tuple[str, int]] = []
        """Address and port of each elephant."""

    def _introduce(self) -> None:
        """Make attacker and helper known to the controller."""
        self._attacker.cmd(f"ping -c 3 -i 0.2 {self._helper.IP()}")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """See :meth:`tests.faults.site.Site.alone`."""
        with self.site.alone():
            yield
        self._introduce()

    @property
    def attacker(self) -> End:
        """Who sends the floods."""
        return End(self._attacker.MAC(), self._attacker.IP())

    @property
    def target(self) -> End:
        """Who gets most of them, and helps."""
        return End(self._helper.MAC(), self._helper.IP())

    @property
    def receiver(self) -> End:
        """Who gets the flows."""
        return End(self._receiver.MAC(), self._receiver.IP())

    def send(
        self,
        seconds: float,
        *floods: tuple[list[bytes], float],
        back: tuple[list[bytes], float] | None = None,
    ) -> Senders:
        """The attacker sends these frames, at these rates, and the target those that go back, 0.1 s later."""
        begin = time.monotonic() + patient(_START)
        senders = [Sender(self._attacker, frames, rate, seconds, begin) for frames, rate in floods]
        if back is not None:
            senders.append(Sender(self._helper, *back, seconds, begin + 0.1))
        return Senders(begin, senders)

    @contextlib.contextmanager
    def asked(self) -> Iterator[Answers]:
        """Meanwhile, controller and agent are asked ten times a second."""
        answers, end = Answers(), threading.Event()

        def ask() -> None:
            while not end.wait(_ASK_EVERY):
                self._ask(answers)

        # A thread has the network of the one that starts it.
        thread = threading.Thread(target=ask, name="asks", daemon=True)
        thread.start()
        try:
            yield answers
        finally:
            end.set()
            thread.join()

    def _ask(self, answers: Answers) -> None:
        questions: tuple[tuple[Callable[[], object], list[float]], ...] = (
            (lambda: self.site.rest("health"), answers.controller),
            (lambda: self.site.rest("flows?limit=1"), answers.controller),
            (lambda: status.ask(BRIDGE, patient(_ANSWER)), answers.agent),
        )
        for question, times in questions:
            began = time.monotonic()
            try:
                question()
            except (OSError, UserError) as error:
                answers.failed.append(f"after {time.monotonic() - began:.1f} s: {error!r}")
            times.append(time.monotonic() - began)

    def known(self) -> Mapping[str, str]:
        """Where the controller knows each host of the network to be."""
        own = {host.MAC() for host in self.site.net.hosts}
        return {row["mac"]: str(row["at"]) for row in self.site.rest("hosts")["hosts"] if row["mac"] in own}

    def memory(self) -> tuple[float, float]:
        """Of controller and agent, MB."""
        return resident(self.site.controller), resident(self.site.agent)


def resident(program: Process) -> float:
    """The memory of a process, MB."""
    lines = Path(f"/proc/{program.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmRSS"))


@contextlib.contextmanager
def made_flood_site() -> Iterator[FloodSite]:
    """A site on a machine of its own, and this thread on it."""
    with made_site(_OTHERS) as site:
        yield FloodSite(site)
