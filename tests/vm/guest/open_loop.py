"""In a virtual machine: RED, CoDel and SFB of Linux beside our queue laws, in open loop.

    python -m tests.vm.guest.open_loop [--repeat N] [--seconds S] [--law LAW]

Two ports of 4 Mbit/s get the same frames at the same times, those of a Poisson process, whatever is dropped.
One has Linux's qdisc as `fairq run` makes it, the other a FIFO and the policy's law with the same settings.
Each repetition has times of its own, so a difference is one within a repetition. It prints the table of
docs/policies/peers.md, and to stderr what each run has found.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import random
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fairq_ryu.agent.queue_law_table import parameters
from fairq_ryu.config.loader import Config
from fairq_ryu.experiments.kernel_qdiscs import QDISCS
from fairq_ryu.experiments.measure import intervals, stats
from fairq_ryu.experiments.measure.backlog import Backlog
from fairq_ryu.experiments.measure.queues import qdisc_counts, qdiscs, read_losses
from fairq_ryu.law_spec import FRAME
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import find, queue_law
from mininet_topos.commands import CommandError, run
from mininet_topos.qdiscs import PortQdisc, shaper
from tests.switch.packets import IPV4, Segment
from tests.switch.queue_rig import Watched, wait_empty, watching
from tests.switch.rig import make_port, namespace

RATE, BUFFER, MTU = 4, 125_000, 1500  # Mbit/s, bytes
FIFO = PortQdisc(f"bfifo limit {BUFFER}")
LINUX, OURS = PORTS = ("linux", "ours")
# Linux's RED is not gentle. No frame is ECN-capable, so nothing is marked.
CONFIG = Config().changed("red", {"gentle": False})
SAMPLED = 4  # the queues are read before one frame of so many: reading takes longer than sending
NAMES = {"red": "RED", "codel": "CoDel", "sfb": "SFB"}
_LEASE_NS = 24 * 3600 * 10**9
_SNDBUFFORCE = 32  # of Linux, which `socket` does not have


class Row(NamedTuple):
    """A law, and the load that so many flows are; ``before``: (load, seconds) that are not counted."""

    law: str
    load: float
    flows: int = 8
    before: tuple[tuple[float, float], ...] = ()
    words: str = ""


ROWS = [
    *(Row(law, load) for law in ("red", "codel") for load in (1.1, 1.3)),
    *(Row(law, 1.05, 8, ((1.3, 5), (0, 5)), ", after a pause") for law in ("red", "codel")),
    *(Row("sfb", load, 2) for load in (1.1, 2)),
    Row("sfb", 1.1, 2, ((10, 2),), ", flows that did not respond before"),
]


class Found(NamedTuple):
    """At a port: frames that its law has dropped, those that the full buffer has, and mean queue in bytes."""

    law: float
    full: float
    queue: float


class Load:
    """The frames of a repetition, which leave by both ports."""

    def __init__(self, seed: int, flows: int, stack: contextlib.ExitStack) -> None:
        self.random = random.Random(seed)
        payload = bytes(FRAME - len(Segment().frame()))
        self.frames = [Segment(sport=40000 + flow, payload=payload).frame() for flow in range(flows)]
        self.sockets = [stack.enter_context(_sender(name)) for name in PORTS]
        self.backlogs = [stack.enter_context(Backlog(name)) for name in PORTS]
        self.late = 0.0
        """How late a frame was at most, seconds, when it was offered last."""

    def offer(self, load: float, seconds: float) -> list[float]:
        """Send at this load, of the rate, for so long. Returns the mean of each queue meanwhile."""
        read: list[list[int]] = [[], []]
        start, self.late = time.monotonic(), 0.0
        for number, at in enumerate(self._times(load, seconds)):
            time.sleep(max(0.0, start + at - time.monotonic()))
            self.late = max(self.late, time.monotonic() - start - at)
            frame = self.random.choice(self.frames)
            order = (0, 1) if number // SAMPLED % 2 else (1, 0)  # meanwhile the other queue becomes shorter
            if number % SAMPLED == 0:
                for port in order:
                    read[port].append(self.backlogs[port].read())
            for port in order:
                _send(self.sockets[port], frame)
        time.sleep(max(0.0, start + seconds - time.monotonic()))
        return [stats.mean(samples or [0]) for samples in read]

    def _times(self, load: float, seconds: float) -> Iterator[float]:
        at, rate = 0.0, load * RATE * 1e6 / 8 / FRAME
        while rate and (at := at + self.random.expovariate(rate)) < seconds:
            yield at


def _sender(name: str) -> socket.socket:
    """A socket with room for more frames than the queue takes."""
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    made.setsockopt(socket.SOL_SOCKET, _SNDBUFFORCE, 1 << 22)
    made.bind((name, IPV4))
    return made


def _send(sender: socket.socket, frame: bytes) -> None:
    try:
        sender.send(frame)
    except OSError as error:
        if error.errno != errno.ENOBUFS:  # the queue has dropped it
            raise


def shape(name: str, qdisc: PortQdisc) -> None:
    """A new queue below tbf, as `mininet_topos.links` gives it to a port."""
    with contextlib.suppress(CommandError):  # it has none yet
        run(["tc", "qdisc", "del", "dev", name, "root"])
    made = f"qdisc add dev {name} root handle 1: {shaper(RATE, MTU, BUFFER)}\n"
    run(["tc", "-batch", "-"], stdin=made + qdisc.commands(name, "1:1"))


def install(watched: Watched, name: str) -> None:
    """Our law on our port, with nothing in its state."""
    spec, port = queue_law(find(name)(CONFIG.section(name)), PortKey(0, 0)), watched.port.ofport
    assert spec is not None
    law = parameters(spec, watched.datapath.limits_of(port))
    watched.datapath.remove_queue_law(port)
    watched.datapath.install_queue_law(port, 1, law, time.monotonic_ns() + _LEASE_NS)


def counted(watched: Watched, law: str) -> list[tuple[int, int]]:
    """What law and full buffer of each port have dropped until now."""
    linux = qdisc_counts(LINUX, QDISCS[law])
    ours = watched.datapath.queue_law_counts(watched.port.ofport)
    return [(linux.dropped, linux.full), (int(ours.dropped), read_losses(qdiscs(OURS)).refused)]


def once(watched: Watched, row: Row, seed: int, seconds: float) -> list[Found]:
    """A row of the table in one repetition: Linux's, and ours."""
    shape(LINUX, QDISCS[row.law].at(RATE, BUFFER, CONFIG))
    shape(OURS, FIFO)
    install(watched, row.law)
    with contextlib.ExitStack() as stack:
        load = Load(seed, row.flows, stack)
        for before in row.before:
            load.offer(*before)
        start = counted(watched, row.law)
        means = load.offer(row.load, seconds)
        both = zip(start, counted(watched, row.law), means, strict=True)
        found = [Found(end[0] - begin[0], end[1] - begin[1], mean) for begin, end, mean in both]
        for name in PORTS:
            wait_empty(name)
    print(row, seed, *found, f"{load.late * 1e3:.1f} ms late at most", file=sys.stderr, flush=True)
    return found


def cells(linux: Sequence[float], ours: Sequence[float]) -> list[str]:
    """Means of a figure, and their difference: bold if its interval does not contain 0."""
    less = [one - other for one, other in zip(ours, linux, strict=True)]
    both, mean = f"{stats.mean(linux):,.0f}, {stats.mean(ours):,.0f}", stats.mean(less)
    if len(less) < 2 or not any(less):
        return [both, f"{mean:,.0f}"]
    half = intervals.half_width(less)
    text = f"{mean:,.0f} ± {half:,.0f}"
    return [both, text if abs(mean) <= half else f"**{text}**"]


def main() -> None:
    """Run all rows, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.vm.guest.open_loop")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions; intervals need two")
    parser.add_argument("--seconds", type=float, default=20, help="for which each row is counted")
    parser.add_argument("--law", choices=NAMES, action="append", help="only its rows (repeatable)")
    options = parser.parse_args()
    rows = [row for name in options.law or NAMES for row in ROWS if row.law == name]
    figures = ("dropped by the law", "by the full buffer", "mean queue, bytes")
    lines = [f"| law | load |{''.join(f' {figure}: Linux, ours | ours − Linux |' for figure in figures)}"]
    lines.append("|---" * (2 + 2 * len(figures)) + "|")
    with namespace():
        port, _ = make_port(1, OURS), make_port(2, LINUX)
        shape(OURS, FIFO)
        with watching(port) as watched:
            for row in rows:
                runs = [once(watched, row, seed, options.seconds) for seed in range(options.repeat)]
                linux, ours = (list(zip(*side, strict=True)) for side in zip(*runs, strict=True))
                found = [cell for pair in zip(linux, ours, strict=True) for cell in cells(*pair)]
                lines.append(f"| {' | '.join([NAMES[row.law], f'{row.load:g}{row.words}', *found])} |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
