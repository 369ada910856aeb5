"""A round-trip delay between hosts: a delay line in the links of the hosts that send.

Kernels without netem cannot delay. So a small program (`delayline/delayline.c`) holds every frame that goes
to such a host for the whole round-trip time. Only what senders get is delayed: these are ACKs of what they
send, few and small, and the round trip is the same. Their own frames pass in the kernel.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from mininet.link import Link

from mininet_topos.commands import CommandError, child_setup, end_process, run
from mininet_topos.links import ShallowLink

PROGRAM = Path(__file__).resolve().parent / "delayline" / "delayline"
MOST_MS = 1000
# A program of one instruction for the filter: not every kernel has `matchall`.
_TAKE_ALL = "1,6 0 0 4294967295,"


class DelayError(Exception):
    """The delay line cannot be set up; the text says why and what to do."""


def check_rtt(rtt: float) -> None:
    """``ValueError`` unless ``rtt`` is from 0 (none) to `MOST_MS`."""
    if isinstance(rtt, bool) or not isinstance(rtt, (int, float)) or not 0 <= rtt <= MOST_MS:
        raise ValueError(f"rtt is {rtt!r}, must be a number of ms from 0 to {MOST_MS}")


class DelayLine:
    """One process that delays frames on any number of links. It starts with the first."""

    def __init__(self, rtt: float) -> None:
        """``rtt`` in ms. ``ValueError`` when it is out of bounds."""
        check_rtt(rtt)
        self.rtt = rtt
        self.log: Path | None = None
        """file for its log; None: no log"""
        self._process: subprocess.Popen[bytes] | None = None
        self._lines = 0

    def options(self) -> dict[str, Any]:
        """Options for the link of a host that sends: its class, and with a delay this line."""
        return {"cls": DelayedLink, "line": self} if self.rtt else {"cls": ShallowLink}

    def connect(self, host: tuple[str, int], port: tuple[str, int]) -> None:
        """Make the interfaces ``host`` and ``port``, each a name and the pid of the namespace it is for, and
        lay the line between. ``DelayError`` when that fails.
        """
        try:
            process = self._started()
            self._lines += 1
            inner, outer = f"line{self._lines}h", f"line{self._lines}p"
            there = process.pid
            for (name, pid), end in ((host, inner), (port, outer)):
                run(
                    ["ip", "link", "add", "name", name, "netns", str(pid), "type", "veth",
                     "peer", "name", end, "netns", str(there)]
                )  # fmt: skip
            inside = ["mnexec", "-a", str(there)]
            run([*inside, "ip", "-batch", "-"], stdin=f"link set {inner} up\nlink set {outer} up\n")
            # What the host sends goes on in the kernel.
            run([*inside, "tc", "qdisc", "add", "dev", inner, "clsact"])
            run(
                [*inside, *f"tc filter add dev {inner} ingress bpf bytecode".split(), _TAKE_ALL,
                 *f"action mirred egress redirect dev {outer}".split()]
            )  # fmt: skip
            self._say(process, f"{outer} {inner}")
        except CommandError as error:
            self.stop()
            raise DelayError(f"cannot lay a delay line to {host[0]}: {error}") from error

    def stop(self) -> None:
        """End the process, and with it its namespace and all its links; harmless when there is none."""
        if self._process is not None:
            process, self._process = self._process, None
            end_process(process)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            return self._process
        if not PROGRAM.is_file():
            raise DelayError(f"{PROGRAM} has not been compiled: run `make setup`")
        log: int | BinaryIO = subprocess.DEVNULL
        if self.log is not None:
            log = self.log.open("wb")
        try:
            with child_setup() as prepare:
                self._process = subprocess.Popen(
                    [str(PROGRAM), str(max(1, round(self.rtt * 1000)))],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    bufsize=0,
                    start_new_session=True,  # Ctrl-C on the terminal must not reach it
                    preexec_fn=prepare,
                )
        finally:
            if not isinstance(log, int):
                log.close()
        self._hear(self._process, b"ready\n")
        return self._process

    def _say(self, process: subprocess.Popen[bytes], words: str) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(words.encode() + b"\n")
        except BrokenPipeError:
            raise DelayError("the delay line has ended") from None
        self._hear(process, b"ok\n")

    def _hear(self, process: subprocess.Popen[bytes], expected: bytes) -> None:
        """Wait for its reply, or for its end."""
        assert process.stdout is not None
        if process.stdout.readline() != expected:
            self.stop()
            raise DelayError("the delay line has ended: is this root, and has the kernel packet sockets?")


class DelayedLink(ShallowLink):
    """A `ShallowLink` between a host (first) and a switch, with a delay line between the two."""

    def __init__(self, *args: Any, line: DelayLine, **kwargs: Any) -> None:
        self.line = line
        super().__init__(*args, **kwargs)

    def makeIntfPair(
        self,
        intfname1: str,
        intfname2: str,
        addr1: str | None = None,
        addr2: str | None = None,
        node1: Any = None,
        node2: Any = None,
        deleteIntfs: bool = True,
    ) -> None:
        """Two veth pairs, and the line between their other ends. ``DelayError`` when that fails."""
        self.line.connect((intfname1, node1.pid), (intfname2, node2.pid))

    def delete(self) -> None:
        """Removing the first link removes the whole line: Mininet removes all links together."""
        super().delete()
        self.line.stop()


def end_lines(links: Iterable[Link]) -> None:
    """End the delay lines of all ``links``; harmless where there is none."""
    for line in {link.line for link in links if isinstance(link, DelayedLink)}:
        line.stop()
