"""Mutated connections to running programs: ``python -m tests.fuzz.live controller --connections 100000``.

``controller`` starts ryu-manager on free ports of 127.0.0.1 and needs no root. ``agent`` starts an agent on a
bridge of its own, with many controllers that are all this program; it needs root and Open vSwitch. Meanwhile
a well-behaved peer stays connected and must be answered. The report has file descriptors and memory before
and after, the response times of the program, and what of it is a fault; then the exit status is 1.
"""

import argparse
import asyncio
import collections
import contextlib
import os
import random
import struct
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel import oxm
from fairq_ryu.experiments.free_ports import free_port
from tests.fuzz import corpus, messages
from tests.fuzz.mutate import Mutator
from tests.support.fakes import DATAPATH, wire
from tests.support.lab import BIN, FAIRQ, Process, output

_HEADER = struct.Struct("!BBHI")
_HONEST = 0x600D
_WARM_UP = 3000
_BRIDGE = "fqfuzz"
# Connections at a time.
_WORKERS = 32
# Controllers of the agent: it connects to each ten times a second.
_TARGETS = 64
# Limit for the end of a connection, seconds: some peers wait for it, others disconnect.
_PATIENCE = 5.0
# Everything must be answered within this time, seconds.
_ANSWER = 1.0
# Memory that may be more afterwards, KiB: the allocator's. What 100,000 connections keep is more.
_GROWTH_KIB = 16_384


def measured(pid):
    """File descriptors, and memory in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return len(os.listdir(f"/proc/{pid}/fd")), int(status.partition("VmRSS:")[2].split()[0])


async def settled(pid, before):
    """As :func:`least`; if there are more descriptors than before, ten seconds may pass."""
    found = await least(pid)
    for _ in range(9):
        if found[0] > before[0]:
            found = await least(pid)
    return found


async def least(pid):
    """As :func:`measured`, at the moment of a second at which it has fewest descriptors."""
    found = []
    for _ in range(50):
        found.append(measured(pid))
        await asyncio.sleep(0.02)
    return min(found)


class Peer:
    """One end of a connection that follows the protocol."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    async def message(self):
        head = await self.reader.readexactly(_HEADER.size)
        _, kind, length, xid = _HEADER.unpack(head)
        return kind, xid, head + await self.reader.readexactly(length - _HEADER.size)

    async def until(self, *kinds):
        """The next message of one of these types; echo requests are answered."""
        while True:
            kind, xid, data = await self.message()
            if kind == ofp.OFPT_ECHO_REQUEST:
                self.writer.write(messages.message(ofp.OFPT_ECHO_REPLY, data[8:], xid=xid))
            if kind in kinds:
                return xid, data


async def join(port, dpid):
    """Connect to the controller as a switch does; returns when the controller requests its rules or sends
    some.
    """
    peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
    peer.writer.write(messages.HELLO)
    await peer.until(ofp.OFPT_FEATURES_REQUEST)
    peer.writer.write(messages.features(dpid))
    await peer.until(ofp.OFPT_MULTIPART_REQUEST)
    peer.writer.write(messages.ports(1, 2))
    await peer.until(ofp.OFPT_MULTIPART_REQUEST, ofp.OFPT_FLOW_MOD)
    return peer


async def greet(peer):
    """Act as the controller of a connected agent; returns when the agent has sent its features."""
    peer.writer.write(messages.HELLO + wire(parser.OFPFeaturesRequest(DATAPATH)))
    await peer.until(ofp.OFPT_FEATURES_REPLY)


class Run:
    """The connections of an attack, how they ended, and the longest wait of the well-behaved peer."""

    def __init__(self, name, connections, seed):
        self.name, self.left, self.made = name, connections, 0
        self.mutator = Mutator(seed)
        self.messages = list(corpus.load(name).values())
        self.longest = 0.0
        self.ends = collections.Counter()

    def stream(self):
        rng = self.mutator.rng
        opening = messages.HELLO
        if self.name == "controller":
            dpid = rng.getrandbits(48)
            opening = messages.handshake(oxm.agent_dpid(dpid) if rng.random() < 0.3 else dpid)
        return self.mutator.stream(self.messages, opening)

    async def one(self, reader, writer):
        """Send the stream; then wait for the end of the connection, or disconnect in one of several ways."""
        rng = self.mutator.rng
        self.made += 1
        try:
            data = self.stream()
            if rng.random() < 0.1:
                half = rng.randint(0, len(data))
                writer.write(data[:half])
                await asyncio.sleep(0.01)
                data = data[half:]
            writer.write(data)
            way = rng.choice(("wait", "wait", "eof", "leave", "reset"))
            self.ends[way] += 1
            if way == "reset":
                writer.transport.abort()
                return
            if way in ("wait", "eof"):
                if way == "eof":
                    writer.write_eof()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PATIENCE if way == "eof" else 0.05):
                        while await reader.read(1 << 16):
                            pass
        except OSError:
            pass
        finally:
            writer.close()

    async def honest(self, peer):
        """Send echo requests to the program during the attack."""
        while True:
            began = time.monotonic()
            peer.writer.write(messages.message(ofp.OFPT_ECHO_REQUEST, xid=99))
            while (await peer.until(ofp.OFPT_ECHO_REPLY))[0] != 99:
                pass
            self.longest = max(self.longest, time.monotonic() - began)
            await asyncio.sleep(0.05)


async def at_controller(run, port):
    """Connect repeatedly."""

    async def worker():
        while run.left > 0:
            run.left -= 1
            await run.one(*await asyncio.open_connection("127.0.0.1", port))

    honest = await join(port, _HONEST)
    asking = asyncio.create_task(run.honest(honest))
    await asyncio.gather(*(worker() for _ in range(_WORKERS)))
    if asking.done():
        asking.result()
    asking.cancel()
    honest.writer.close()


def rest(port, path="/v1/health"):
    began = time.monotonic()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        answer.read()
    return time.monotonic() - began


async def controller(options, directory):
    port, rest_port = free_port(), free_port()
    process = Process(
        directory / "controller.log",
        *(str(BIN / "ryu-manager"), "--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(port)),
        *("--wsapi-host", "127.0.0.1", "--wsapi-port", str(rest_port), "fairq_ryu.apps.fairq"),
    )
    try:
        process.wait_for("REST:", 60)
        await asyncio.sleep(1)
        await at_controller(Run("controller", _WARM_UP, options.seed + 1), port)
        await asyncio.sleep(3)
        before = await least(process.process.pid)
        run, began = Run("controller", options.connections, options.seed), time.monotonic()
        await at_controller(run, port)
        took = time.monotonic() - began
        answered = rest(rest_port)
        began = time.monotonic()
        peer = await join(port, 0xAF7E4)
        joined = time.monotonic() - began
        peer.writer.close()
        await asyncio.sleep(3)
        after = await settled(process.process.pid, before)
    finally:
        process.end()
    waits = {"REST": answered, "a new switch's handshake": joined}
    return report(run, options.connections, took, before, after, waits, process)


async def agent(options, directory):
    output("ovs-vsctl", "--may-exist", "add-br", _BRIDGE, "--", "set", "bridge", _BRIDGE,
           "datapath_type=netdev", "fail_mode=secure")  # fmt: skip
    for number in (1, 2):
        output(
            "ip", "link", "add", f"{_BRIDGE}{number}", "type", "veth", "peer", "name", f"{_BRIDGE}{number}p"
        )
        output("ip", "link", "set", f"{_BRIDGE}{number}", "up")
        output("ovs-vsctl", "add-port", _BRIDGE, f"{_BRIDGE}{number}")
    run = Run("agent", 0, options.seed)
    finished, honest_there = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def attack(reader, writer):
        if run.left <= 0:
            finished.set()
            writer.close()
            return
        run.left -= 1
        await run.one(reader, writer)

    async def honest(reader, writer):
        if not honest_there.done():
            peer = Peer(reader, writer)
            await greet(peer)
            honest_there.set_result(peer)

    servers = [await asyncio.start_server(attack, "127.0.0.1", 0) for _ in range(_TARGETS)]
    servers.append(await asyncio.start_server(honest, "127.0.0.1", 0))
    targets = [f"tcp:127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers]
    arguments = [word for target in targets for word in ("--controller", target)]
    hasty = ("-m", "tests.support.hasty", "fairq", "agent")
    process = Process(directory / "agent.log", sys.executable, *hasty, "--bridge", _BRIDGE, *arguments)
    try:
        process.wait_for("ready", 60)
        peer = await honest_there
        asking = asyncio.create_task(run.honest(peer))
        figures = []
        for connections in (_WARM_UP, options.connections):
            run.left, run.made = connections, 0
            finished.clear()
            began = time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(options.seconds):
                    await finished.wait()
            run.left = 0
            took = time.monotonic() - began
            await asyncio.sleep(2)
            pid = process.process.pid
            figures.append(await settled(pid, figures[0]) if figures else await least(pid))
        if asking.done():
            asking.result()
        asking.cancel()
        began = time.monotonic()
        output(FAIRQ, "status", "--bridge", _BRIDGE)
        status = time.monotonic() - began
        began = time.monotonic()
        peer.writer.write(wire(parser.OFPBarrierRequest(DATAPATH)))
        await peer.until(ofp.OFPT_BARRIER_REPLY)
        answered = time.monotonic() - began
    finally:
        process.end()
        for server in servers:
            server.close()
        output("ovs-vsctl", "del-br", _BRIDGE)
        for number in (1, 2):
            output("ip", "link", "del", f"{_BRIDGE}{number}")
    before, after = figures
    waits = {"the honest controller's barrier": answered, "fairq status, with its start": status}
    return report(run, options.connections, took, before, after, waits, process)


def report(run, wanted, took, before, after, waits, process):
    """Print what was found; returns whether nothing of it is a fault."""
    print(f"{run.name}: {run.made:,} connections in {took:.0f} s ({run.made / took:.0f} a second)")
    print(f"file descriptors: {before[0]} before, {after[0]} after")
    print(f"resident memory: {before[1]:,} KiB before, {after[1]:,} KiB after")
    print(f"the honest peer waited {run.longest * 1000:.0f} ms for an echo at most")
    for what, seconds in waits.items():
        print(f"{what}: {seconds * 1000:.0f} ms")
    lines = process.text.splitlines()
    tracebacks = sum("Traceback" in line for line in lines)
    print(f"log: {len(lines)} lines, {tracebacks} tracebacks")
    faults = {
        f"{wanted - run.made:,} connections were not made": run.made < wanted,
        f"{after[0] - before[0]} file descriptors are kept": after[0] > before[0],
        f"more than {_GROWTH_KIB:,} KiB of memory are kept": after[1] > before[1] + _GROWTH_KIB,
        "there are tracebacks in the log": tracebacks > 0,
        f"an answer took more than {_ANSWER:g} s": max(run.longest, *waits.values()) > _ANSWER,
    }
    for what, holds in faults.items():
        if holds:
            print(f"fault: {what}")
    return not any(faults.values())


def main():
    arguments = argparse.ArgumentParser(prog="python -m tests.fuzz.live")
    arguments.add_argument("program", choices=("controller", "agent"))
    arguments.add_argument("--connections", type=int, default=100_000)
    arguments.add_argument("--seconds", type=float, default=600.0, help="agent: end then at the latest")
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments.add_argument("--log", type=Path, help="keep the program's log in this directory")
    options = arguments.parse_args()
    print(f"seed {options.seed}", flush=True)
    with contextlib.ExitStack() as stack:
        directory = options.log or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fine = asyncio.run((controller if options.program == "controller" else agent)(options, directory))
    print("fine" if fine else "not fine")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
