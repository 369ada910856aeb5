"""A round-trip delay between hosts: a delay line in the links of the hosts that send.

Kernels without netem cannot delay packets. So a small program (`delayline/delayline.c`) delays every frame to
a sending host by the whole round-trip time. Only this direction is delayed: it carries ACKs, which are few
and small, and the round-trip time is the same. The kernel forwards the host's own frames. Receivers whose
round trips differ (`DumbbellTopo`) have lines, too, which delay data.
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
MAX_RTT_MS = 1000
# A filter program of one instruction that matches every frame: not every kernel has `matchall`.
_MATCH_ALL = "1,6 0 0 4294967295,"


class DelayError(Exception):
    """The delay line cannot be set up; the text contains the reason and the remedy."""


def check_rtt(rtt: float) -> None:
    """``ValueError`` unless ``rtt`` is from 0 (none) to `MAX_RTT_MS`."""
    if isinstance(rtt, bool) or not isinstance(rtt, (int, float)) or not 0 <= rtt <= MAX_RTT_MS:
        raise ValueError(f"rtt is {rtt!r}, must be a number of ms from 0 to {MAX_RTT_MS}")


class DelayLine:
    """A process that delays frames on any number of links. It starts with the first link."""

    def __init__(self, rtt: float) -> None:
        """``rtt`` in ms. ``ValueError`` if it is out of bounds."""
        check_rtt(rtt)
        self.rtt = rtt
        self.offloads = False if rtt else None
        """of all hosts, as `FairQHost` takes them: a line passes no packet that is longer than a frame, or
        whose checksum is not finished
        """
        self.log: Path | None = None
        """file for its log; None: no log"""
        self._process: subprocess.Popen[bytes] | None = None
        self._lines = 0

    def options(self) -> dict[str, Any]:
        """Options for the link of a host that sends: the link's class, and this line if there is a delay."""
        return {"cls": DelayedLink, "line": self} if self.rtt else {"cls": ShallowLink}

    def connect(self, host: tuple[str, int], port: tuple[str, int]) -> None:
        """Create the interfaces ``host`` and ``port``, each given as a name and the pid of its namespace, and
        connect them by the delay line. ``DelayError`` if that fails.
        """
        try:
            process = self._running()
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
            # The kernel forwards the frames that the host sends.
            run([*inside, "tc", "qdisc", "add", "dev", inner, "clsact"])
            run(
                [*inside, *f"tc filter add dev {inner} ingress bpf bytecode".split(), _MATCH_ALL,
                 *f"action mirred egress redirect dev {outer}".split()]
            )  # fmt: skip
            self._add_link(process, f"{outer} {inner}")
        except CommandError as error:
            self.stop()
            raise DelayError(f"cannot set up a delay line to {host[0]}: {error}") from error

    def stop(self) -> None:
        """End the process, and thereby its namespace and all its links. No effect without a process."""
        if self._process is not None:
            process, self._process = self._process, None
            end_process(process)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _running(self) -> subprocess.Popen[bytes]:
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
        self._await_reply(self._process, b"ready\n")
        return self._process

    def _add_link(self, process: subprocess.Popen[bytes], names: str) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(names.encode() + b"\n")
        except BrokenPipeError:
            raise DelayError("the delay line has ended") from None
        self._await_reply(process, b"ok\n")

    def _await_reply(self, process: subprocess.Popen[bytes], expected: bytes) -> None:
        """Wait for the reply ``expected``. ``DelayError`` if the process ends or replies otherwise."""
        assert process.stdout is not None
        if process.stdout.readline() != expected:
            self.stop()
            raise DelayError("the delay line has ended: it needs root and a kernel with packet sockets")


class DelayedLink(ShallowLink):
    """A `ShallowLink` between a host (first) and a switch, with a delay line in it."""

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
        """Create two veth pairs and connect their outer ends by the delay line. ``DelayError`` if that
        fails.
        """
        self.line.connect((intfname1, node1.pid), (intfname2, node2.pid))

    def delete(self) -> None:
        """Remove the link and end the whole delay line, because Mininet removes all links together."""
        super().delete()
        self.line.stop()


def end_lines(links: Iterable[Link]) -> None:
    """End the delay lines of all ``links``. No effect for links without one."""
    for line in {link.line for link in links if isinstance(link, DelayedLink)}:
        line.stop()
