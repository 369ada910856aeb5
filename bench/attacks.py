"""Floods through one port: what they do to established flows, hosts, links and the ARP of others.

Two bridges, one link. h1 sends to h4 on the other bridge as fast as the link carries; h2 attacks through its
one port; h5 asks for h1 by broadcast ARP ten times a second. Each attack is measured with fairq_ryu (paths,
agents, FairQ) and with bridges that forward by themselves (action NORMAL, neither controller nor agent), in
turn: a flood also costs the machine's processors, the kernel and Open vSwitch, and that is not the product's.
``python -m bench.attacks --way normal`` or ``windows`` measures the other ways, in which the bridges forward
by themselves with fairq_ryu, too.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bench import figures
from fairq_ryu.experiments.measure.machine import switch_ticks
from fairq_ryu.fabric.ways import Way
from fairq_ryu.packet import headers
from mininet_topos.commands import run
from mininet_topos.switch import remove_leftover
from tests.support import attacks
from tests.support.fabric import Fabric
from tests.support.lab import SINK, SOURCE, received, until
from tests.support.traffic import wait_until_reachable

ROUNDS = 2
BEFORE, FLOOD, PAUSE = 2.0, 3.0, 1.0  # seconds
# A process that floods has read its frames after this time; an answer by ARP comes within this one, if ever.
_START, _ANSWER = 1.5, 2.0
RATE, BUFFER = 50, 125_000  # of the link: Mbit/s, bytes
SENDER, ATTACKER, TARGET, RECEIVER, ASKER = "h1", "h2", "h3", "h4", "h5"
WANTED, WANTED_MS = 0.90, 100
_ETH_LLDP = 0x88CC

Frames = Callable[[Any, Sequence[bytes]], list[bytes]]


def _resets(fabric: Any, _: Sequence[bytes]) -> list[bytes]:
    return attacks.segments(fabric, ATTACKER, TARGET, headers.RST, count=20_000)


def _syns(fabric: Any, _: Sequence[bytes]) -> list[bytes]:
    return attacks.segments(fabric, ATTACKER, TARGET, headers.SYN, count=20_000, seed=2)


def _claims(fabric: Any, _: Sequence[bytes]) -> list[bytes]:
    return attacks.false_claims(fabric, ATTACKER, [SENDER, TARGET, RECEIVER, ASKER]) * 16


def _discovery(_: Any, genuine: Sequence[bytes]) -> list[bytes]:
    """Discovery frames of the controller, as they are, and with other ports and tags."""
    forged = [
        frame[:41] + struct.pack("!I", struct.unpack_from("!I", frame, 41)[0] + number) + frame[45:]
        for frame in genuine
        for number in range(16)
    ]
    return forged + [frame[:-1] + bytes([frame[-1] ^ 1]) for frame in forged]


@dataclass(frozen=True, slots=True)
class Attack:
    """``floods``: the frames, and how many a second; ``forwarded``: whether all are for the target."""

    name: str
    floods: tuple[tuple[Frames, int], ...]
    forwarded: bool = False

    @property
    def rate(self) -> int:
        """Frames a second in all."""
        return sum(rate for _, rate in self.floods)


class Measured(NamedTuple):
    """``flow``: the rate of the established flow during the flood, divided by that before; ``sent``: frames
    of the flood a second; ``passed``: those that left for their target, or -1; ``answer``: the slowest answer
    to an ARP request, seconds; ``switch``: the processor time of Open vSwitch per second; ``kept``: whether
    the controller knew the same hosts, links and roles of ports at the end.
    """

    flow: float
    sent: float
    passed: float
    answer: float
    switch: float
    kept: bool


@dataclass(slots=True)
class Row:
    """An attack, and its measurements: with fairq_ryu, and with bridges that forward by themselves."""

    attack: Attack
    governed: list[Measured] = field(default_factory=list)
    alone: list[Measured] = field(default_factory=list)


def rows(way: Way = Way.PATHS) -> list[Row]:
    """The attacks, in the order of measurement. Discovery frames are sent in ``paths`` only."""
    resets, syns = (_resets, 100_000), (_syns, 20_000)
    claims, discovery = (_claims, 10_000), (_discovery, 10_000)
    found = [
        Row(Attack("RST", (resets,), forwarded=True)),
        Row(Attack("SYN", (syns,), forwarded=True)),
        Row(Attack("forged ARP", (claims,))),
    ]
    if way is not Way.PATHS:
        return [*found, Row(Attack("all three", ((_resets, 20_000), syns, claims)))]
    return [
        *found,
        Row(Attack("forged LLDP", (discovery,))),
        Row(Attack("all four", ((_resets, 20_000), syns, claims, discovery))),
    ]


class Site:
    """The two bridges and their hosts."""

    def __init__(self, fabric: Any, way: Way) -> None:
        self.fabric, self.way = fabric, way
        self._genuine: list[bytes] = []

    def govern(self) -> None:
        """Start agents and a controller, and wait until all hosts reach each other."""
        paths = self.way is Way.PATHS
        for name in self.fabric.switches:
            run(["ovs-ofctl", "-O", "OpenFlow13", "del-flows", name])
            if not paths:
                self._forward(name)
            if not self.fabric[name].agentRunning():
                self.fabric[name].startAgent([])
        config = f"[fairq_ryu]\nway = {self.way.value}\n"
        self.fabric.start_controller(config, wait=paths, connect=self.way is not Way.WINDOWS)
        if not until(self._has_agents):
            raise SystemExit(f"bench: {self.fabric.controller_says()}")
        wait_until_reachable(self.fabric, self.fabric.pairs(across=False))
        if paths:
            self._genuine = [self._discovery_frame(host) for host in (ATTACKER, ASKER)]

    def _has_agents(self) -> bool:
        """Whether the controller has the agent of each bridge."""
        switches = self.fabric.rest("switches")
        return len(switches) == len(self.fabric.switches) and all(each["agent"] for each in switches)

    @staticmethod
    def _forward(bridge: str) -> None:
        """The bridge forwards by itself."""
        run(["ovs-ofctl", "-O", "OpenFlow13", "add-flow", bridge, "actions=NORMAL"])

    def release(self) -> None:
        """End controller and agents; the bridges forward by themselves."""
        self.fabric.end_controller()
        for name in self.fabric.switches:
            self.fabric[name].stopAgent()
            for command in ("del-flows", "del-meters"):
                run(["ovs-ofctl", "-O", "OpenFlow13", command, name])
            self._forward(name)

    def _discovery_frame(self, host: str) -> bytes:
        with self.fabric.inside(host):
            tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_LLDP))
        with tap:
            tap.bind((str(self.fabric[host].defaultIntf()), _ETH_LLDP))
            tap.settimeout(10)
            return tap.recv(2048)

    def known(self) -> object:
        """What the controller believes of the network; None without one."""
        if self.fabric.controller is None:
            return None
        return (
            sorted((each["mac"], each["at"], each["addresses"][:1]) for each in self.fabric.rest("hosts")),
            sorted((each["a"], each["b"]) for each in self.fabric.rest("links")),
            sorted((each["dpid"], each["port"], each["role"]) for each in self.fabric.rest("ports")),
        )

    def measure(self, attack: Attack) -> Measured:
        """One attack on an established flow. What bridges and hosts have learned from an earlier attack is
        forgotten first.
        """
        fabric = self.fabric
        if fabric.controller is None or self.way is not Way.PATHS:
            for name in fabric.switches:
                run(["ovs-appctl", "fdb/flush", name])
        fabric.forget_neighbours()
        wait_until_reachable(fabric, fabric.pairs(across=False))
        frames = [(make(fabric, self._genuine), rate) for make, rate in attack.floods]
        with contextlib.ExitStack() as stack:
            sink = fabric.run(RECEIVER, SINK, 5001, stdout=subprocess.PIPE, text=True)
            stack.callback(sink.kill)
            sink.stdout.readline()
            source = fabric.run(SENDER, SOURCE, fabric.address(RECEIVER), 5001)
            stack.callback(source.kill)
            asker = attacks.Asker(fabric, ASKER, SENDER)
            stack.callback(asker.close)
            time.sleep(PAUSE)
            before, known = self._rate(sink, asker, BEFORE), self.known()
            begin = time.monotonic() + _START
            floods = [attacks.Flood(fabric, ATTACKER, each, rate, FLOOD, begin) for each, rate in frames]
            while time.monotonic() < begin:
                asker.step()
                time.sleep(0.002)
            if any(not flood.running() for flood in floods):
                raise SystemExit("bench: a flood has ended before its time")
            answers, passed, spent = len(asker.answers), self._passed(), _switch_seconds()
            during = self._rate(sink, asker, FLOOD)
            passed, spent = self._passed() - passed, _switch_seconds() - spent
            kept = self.known() == known
            if not until(lambda: asker.step(math.inf) or len(asker.answers) == asker.asked, _ANSWER, 0.002):
                asker.answers.append((float("inf"), ""))
            return Measured(
                during / before,
                sum(flood.rate() for flood in floods),
                passed / FLOOD if attack.forwarded else -1,
                max(seconds for seconds, _ in asker.answers[answers:]),
                spent / FLOOD,
                kept and self.known() == known,
            )

    def _rate(self, sink: Any, asker: Any, seconds: float) -> float:
        """Bytes that the sink receives in a second."""
        began, first = time.monotonic(), received(sink)
        while time.monotonic() < began + seconds:
            asker.step()
            time.sleep(0.002)
        return float((received(sink) - first) / (time.monotonic() - began))

    def _passed(self) -> int:
        number = self.fabric.hosts.index(TARGET) + 1
        return int(Path(f"/sys/class/net/left-eth{number}/statistics/tx_packets").read_text())


def main(arguments: Sequence[str] = ()) -> None:
    """Print the figures."""
    from mininet_topos.dumbbell import DumbbellTopo

    parser = argparse.ArgumentParser(prog="python -m bench.attacks", description=__doc__)
    ways = [way.value for way in Way]
    parser.add_argument("--way", choices=ways, default=Way.PATHS.value, help="how bridges are governed")
    way = Way(parser.parse_args(arguments).way)
    measured = rows(way)
    with tempfile.TemporaryDirectory() as directory:
        topo = DumbbellTopo(n=3, right=2, rate=RATE, buffer=BUFFER)
        for name in topo.switches():
            remove_leftover(name)
        fabric = Fabric(Path(directory), topo, "")
        with contextlib.closing(fabric):
            fabric.start()
            site = Site(fabric, way)
            for _ in range(ROUNDS):
                site.govern()
                for row in measured:
                    row.governed.append(site.measure(row.attack))
                site.release()
                for row in measured:
                    row.alone.append(site.measure(row.attack))
    for row in measured:
        print(describe(row))


def describe(row: Row) -> str:
    """The line of text for an attack."""
    own, base = row.governed, row.alone
    flow, without = [each.flow for each in own], [each.flow for each in base]
    slowest, slowest_without = (max(each.answer for each in found) * 1e3 for found in (own, base))
    switch, switch_without = (statistics.median(each.switch for each in found) for found in (own, base))
    # A flow of bridges that have learned a forged address can stand still.
    ratio = figures.spread(figures.ratios(flow, without), ".2f") if min(without) else "without limit"
    text = (
        f"attacks, {row.attack.name:12} sent {_rates(own)} a second of {row.attack.rate}, "
        f"flow keeps {figures.spread(flow, '.2f')} of its rate, wanted {WANTED:.2f}; bridges alone: "
        f"sent {_rates(base)}, flow keeps {figures.spread(without, '.2f')}, "
        f"ratio {ratio}; "
        f"slowest ARP answer {slowest:.0f} ms, wanted {WANTED_MS} at most, "
        f"bridges alone {slowest_without:.0f}; "
        f"hosts, links and ports {'as before' if all(each.kept for each in own) else 'CHANGED'}; "
        f"Open vSwitch {switch:.2f} of a core, alone {switch_without:.2f}"
    )
    if own[0].passed >= 0:
        shares = (
            figures.share(sum(each.passed for each in found), sum(each.sent for each in found))
            for found in (own, base)
        )
        text += "; forwarded {}, alone {}".format(*shares)
    return text


def _switch_seconds() -> float:
    """The processor time that Open vSwitch has used."""
    return sum(switch_ticks().values()) / os.sysconf("SC_CLK_TCK")


def _rates(found: Sequence[Measured]) -> str:
    return figures.spread([each.sent for each in found], ".0f")


if __name__ == "__main__":
    main(sys.argv[1:])
