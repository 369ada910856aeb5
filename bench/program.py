"""The cost of the eBPF program for one packet, beside that of an empty program."""

from __future__ import annotations

import statistics
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.program_run import LoadedProgram
from fairq_ryu.agent.far_ports import with_far_queues
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.program import FAR_PRIORITY, ProgramLimits
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.tc import INGRESS
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.laws.acdc import AcdcLaw
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.model import WindowKind, WindowRule

REPEAT = 200_000
ROUNDS = 7
PORTS = ("fqbench0", "fqbench1")
SYN, ACK, PSH = 2, 16, 8
ACDC = AcdcLaw(mark_packets=20, weight_shift=4)


def segment(
    src: int,
    dst: int,
    seq: int,
    ack: int,
    flags: int,
    options: bytes = b"",
    payload: int = 0,
    client_port: int = 40000,
) -> bytes:
    """A TCP segment between 10.0.0.``src`` and 10.0.0.``dst``; the client is host 1."""
    sport, dport = (client_port, 80) if src == 1 else (80, client_port)
    tcp = struct.pack("!HHIIBBHHH", sport, dport, seq, ack, (20 + len(options)) << 2, flags, 60000, 0, 0)
    tcp += options + bytes(payload)
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        0,
        20 + len(tcp),
        0,
        0,
        64,
        6,
        0,
        bytes([10, 0, 0, src]),
        bytes([10, 0, 0, dst]),
    )
    return bytes(12) + b"\x08\x00" + ip + tcp


@contextmanager
def bridge() -> Iterator[tuple[BridgePrograms, list[int]]]:
    """The agent's programs on both ends of a veth pair, and the interface indices of these ends. The pair is
    removed afterwards.
    """
    subprocess.run(["ip", "link", "add", PORTS[0], "type", "veth", "peer", "name", PORTS[1]], check=True)
    host = HostPrograms(ProgramLimits())
    try:
        indexes = [int(Path(f"/sys/class/net/{name}/ifindex").read_text()) for name in PORTS]
        ports = [
            BridgePort(n + 1, name, index, "02:00:00:00:00:01", True, True, 0)
            for n, (name, index) in enumerate(zip(PORTS, indexes, strict=True))
        ]
        host.load(indexes)
        datapath = BridgePrograms(host)
        for port in ports:
            datapath.add_port(port)
        yield datapath, indexes
    finally:
        host.close()
        subprocess.run(["ip", "link", "del", PORTS[0]], check=True)


def connect(window: LoadedProgram, indexes: list[int], client_port: int = 40000) -> bytes:
    """A handshake passes the window program. Host 1 is behind port 1 and receives; host 2 is behind port 2
    and sends the data. Returns a data segment.
    """
    to_1, to_2 = indexes
    options = bytes([2, 4, 5, 180, 1, 3, 3, 9])
    window.run(segment(1, 2, 100, 0, SYN, options, client_port=client_port), to_2)
    window.run(segment(2, 1, 500, 101, SYN | ACK, options, client_port=client_port), to_1)
    return segment(2, 1, 501, 101, ACK | PSH, payload=1448, client_port=client_port)


@contextmanager
def _far_queue(datapath: BridgePrograms, lease: int) -> Iterator[LoadedProgram]:
    """Port 2, by which the data of host 2 arrives, has a far queue with a law; its program at tc ingress."""
    port = datapath.ports[2]
    _, far = with_far_queues([port], {port.name: FarQueue(port.name, rate=1_250_000_000, buffer=1_000_000)})
    datapath.add_port(far)
    law = parameters(FairQLaw(), datapath.limits_of(far.ofport))
    datapath.install_law(far.ofport, 2, law, lease)
    datapath.install_rule(far.ofport, WindowRule(WindowKind.LAW, 2), lease, 1)
    with LoadedProgram.attached(port.ifindex, FAR_PRIORITY, INGRESS) as program:
        yield program
    datapath.remove_port(far.ofport)


def main() -> None:
    """Print the figures."""
    with (
        bridge() as (datapath, indexes),
        LoadedProgram.attached(indexes[0]) as ours,
        LoadedProgram.empty() as empty,
    ):
        _measure(datapath, ours, empty, indexes)


def _measure(datapath: BridgePrograms, ours: LoadedProgram, empty: LoadedProgram, indexes: list[int]) -> None:
    to_1, to_2 = indexes
    data = connect(ours, indexes)
    ack = segment(1, 2, 101, 1949, ACK)
    ours.run(data, to_1)

    def cost(program: LoadedProgram, packet: bytes, index: int) -> float:
        return statistics.median(program.run(packet, index, REPEAT).duration_ns for _ in range(ROUNDS))

    baseline = cost(empty, ack, to_2)
    print(f"empty program                     {baseline:7.0f} ns a packet")
    figures = [("frame that is no TCP", bytes(12) + b"\x08\x06" + bytes(46), to_2)]
    figures += [("data segment, no rule", data, to_1), ("ACK, no rule", ack, to_2)]
    stamps = bytes([1, 1, 8, 10]) + struct.pack("!II", 7, 9)
    blocks = bytes([1, 1, 5, 10]) + struct.pack("!II", 2000, 3448)
    figures += [("ACK with timestamps", segment(1, 2, 101, 1949, ACK, stamps), to_2)]
    figures += [("ACK with timestamps and SACK", segment(1, 2, 101, 1949, ACK, stamps + blocks), to_2)]
    for what, packet, index in figures:
        took = cost(ours, packet, index)
        print(f"{what:33} {took:7.0f} ns a packet   {took - baseline:5.0f} ns more than the empty program")
    lease = time.monotonic_ns() + 3600 * 10**9
    limits = QueueLimits("bench", 125_000, 6_250_000)
    rules = [("pool rule", WindowRule(WindowKind.POOL, 100_000), None)]
    rules += [
        (f"law {spec.name}", WindowRule(WindowKind.LAW, 1), spec) for spec in (FairQLaw(), LasLaw(), ACDC)
    ]
    for what, rule, law in rules:
        if law is not None:
            datapath.install_law(1, 1, parameters(law, limits), lease)
        datapath.install_rule(1, rule, lease, 0)
        took = cost(ours, ack, to_2)
        print(f"{f'ACK, {what}, already low':33} {took:7.0f} ns a packet   {took - baseline:5.0f} ns more")
    took = cost(ours, data, to_1)
    print(f"{'data segment, law acdc':33} {took:7.0f} ns a packet   {took - baseline:5.0f} ns more")
    with _far_queue(datapath, lease) as arrives:
        took = cost(arrives, data, to_2)
        print(f"{'data arrives, far queue':33} {took:7.0f} ns a packet   {took - baseline:5.0f} ns more")
        took = cost(ours, data, to_1)
        print(f"{'data segment, far queue':33} {took:7.0f} ns a packet   {took - baseline:5.0f} ns more")
        took = cost(ours, ack, to_2)
        print(f"{'ACK, two laws, already low':33} {took:7.0f} ns a packet   {took - baseline:5.0f} ns more")
    # Single runs, because a window is lowered only once. Both figures include the cost of reading the clock.
    fresh = statistics.median(ours.run(ack, to_2).duration_ns for _ in range(2000))
    idle = statistics.median(empty.run(ack, to_2).duration_ns for _ in range(2000))
    more = f"{fresh - idle:5.0f} ns more than empty, cold"
    print(f"{'ACK, lowered (single cold runs)':33} {fresh:7.0f} ns a packet   {more}")
