"""What `fairq doctor` tries: every eBPF program of the agent is loaded and attached to veth pairs, frames
pass through them, and the window of an ACK is read on the other side.

It runs as a process of its own in a network namespace of its own, with which all that it makes ends:
``unshare --net python -c 'from fairq_ryu.agent import trial; trial.main()'``. It prints one JSON object: by
the name of what was tried, the fault, "" if it works.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fairq_ryu.agent import layout
from fairq_ryu.agent.far_ports import with_far_queues
from fairq_ryu.agent.libbpf import BpfError, in_short
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.program import ProgramLimits
from fairq_ryu.agent.programs.taildrop import TailDrop
from fairq_ryu.agent.programs.turns import TurnProgram
from fairq_ryu.agent.shim import Shim
from fairq_ryu.agent.watched_ports import WindowDevice
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.model import WindowKind, WindowRule
from fairq_ryu.packet import build
from fairq_ryu.packet.headers import ACK, ETH_IP, SYN

OFFERED, LOWERED = 60_000, 10_000
"""The window of the ACK when it enters, and when it leaves; bytes."""
_BUFFER = 125_000
_LIMITS = ProgramLimits(flows=1024, rules=16, ports=16)
_LEASE_NS = 60 * 10**9
# A frame through a veth pair takes microseconds; on an emulated processor, milliseconds.
_PATIENCE_S = 10.0
_MSS = bytes.fromhex("020405b4")


class _End(NamedTuple):
    mac: bytes
    address: bytes
    port: int


_CLIENT = _End(bytes.fromhex("020000000001"), bytes((192, 0, 2, 1)), 40_000)
_SERVER = _End(bytes.fromhex("020000000002"), bytes((192, 0, 2, 2)), 80)


class _Fault(Exception):
    """Something does not work; the text says what."""


def main() -> None:
    """Try everything and print it."""
    print(json.dumps(faults()))


def faults() -> dict[str, str]:
    """Try everything, in the present network namespace. If the first does not work, there is nothing else."""
    with contextlib.ExitStack() as stack:
        try:
            _no_frames_of_the_kernel()
            # The client is behind port 1, the server behind port 2, by which its data leaves.
            client, server = _port(1), _port(2)
            host = HostPrograms(_LIMITS)
            stack.callback(host.close)
            host.load(())
            programs = BridgePrograms(host)
            for port in (client, server):
                programs.add_port(port)
        except (BpfError, UserError, OSError) as error:
            return {"programs": in_short(error)}
        return {
            "programs": "",
            "packets": _tried(lambda: _pass_frames(programs, client, server)),
            "drops": in_short(host.drops.reason),
            "queue laws": _tried(lambda: _try_queue_law(programs, server.ofport)),
            "turns": _tried(lambda: _try_turns(host.turn_program, server.ifindex)),
            "transmit queues": _tried(lambda: host.window.set_queues(server.ifindex, 2)),
            "ingress qdiscs": _tried(lambda: programs.add_port(_policed(4))),
            "internal ports": _tried(lambda: programs.add_device(_internal(3))),
            "far queues": _tried(lambda: _try_far_queue(programs, client)),
            "taildrop": _tried(lambda: _try_taildrop(server.ifindex)),
            "scale shim": _tried(lambda: Shim(f"{client.name}h", "reserved", 7).close()),
        }


def _tried(job: Callable[[], object]) -> str:
    try:
        job()
    except (BpfError, UserError, OSError, _Fault) as error:
        return in_short(error)
    return ""


def _no_frames_of_the_kernel() -> None:
    """Its own, for IPv6, would be among those that are looked at."""
    for path in Path("/proc/sys/net/ipv6/conf").glob("*/disable_ipv6"):
        path.write_text("1")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def _port(number: int) -> BridgePort:
    """A port with the queue of an experiment: one end of a veth pair, the other is its host's."""
    name = f"fqd{number}"
    _run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}h")
    for end in (name, f"{name}h"):
        _run("ip", "link", "set", end, "up")
    rate = "rate 200mbit burst 3080 peakrate 100gbit mtu 1540 limit 9000"
    shape = f"""qdisc add dev {name} root handle 1: tbf {rate}
qdisc add dev {name} parent 1:1 handle 10: bfifo limit {_BUFFER}"""
    for line in shape.splitlines():
        _run("tc", *line.split())
    return BridgePort(number, name, socket.if_nametoindex(name), "", True, True, 0)


def _policed(number: int) -> BridgePort:
    port = _port(number)
    _run("tc", "qdisc", "add", "dev", port.name, "ingress")
    return port


def _internal(number: int) -> WindowDevice:
    port = _port(number)
    return WindowDevice(port.ifindex, (port.name,), True, "")


def _frame(src: _End, dst: _End, seq: int, ack: int, flags: int, window: int, options: bytes = b"") -> bytes:
    ends = src.address + dst.address, (src.port, dst.port)
    segment = build.tcp(*ends, seq, ack, flags, window, options)
    return build.tcp_frame((src.mac, dst.mac), (src.address, dst.address), segment)


def _pass_frames(programs: BridgePrograms, client: BridgePort, server: BridgePort) -> None:
    """A handshake, and an ACK of the server whose window a rule lowers, without a change of another bit. The
    tracepoints have to count the packets of the server's queue.
    """
    rule = WindowRule(WindowKind.WINDOW, LOWERED)
    programs.install_rule(server.ofport, rule, time.monotonic_ns() + _LEASE_NS, 0)
    steps = [
        (server, _frame(_CLIENT, _SERVER, 1000, 0, SYN, OFFERED, _MSS)),
        (client, _frame(_SERVER, _CLIENT, 5000, 1001, SYN | ACK, OFFERED, _MSS)),
        (server, _frame(_CLIENT, _SERVER, 1001, 5001, ACK, OFFERED)),
    ]
    for port, frame in steps:
        _sent(programs, port, frame)
    left = _sent(programs, client, _frame(_SERVER, _CLIENT, 5001, 1001, ACK, OFFERED))
    if left != _frame(_SERVER, _CLIENT, 5001, 1001, ACK, LOWERED):
        window = int.from_bytes(left[48:50], "big")
        raise _Fault(f"an ACK with a window of {OFFERED:,} bytes left with {window:,}, not {LOWERED:,} alone")
    counted = programs.queue(server).packets
    if counted != 2:
        raise _Fault(f"the tracepoints counted {counted} of the 2 packets of a queue")


def _sent(programs: BridgePrograms, port: BridgePort, frame: bytes) -> bytes:
    """Send a frame by a port; what arrives at its host."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_IP)) as host:
        host.bind((f"{port.name}h", ETH_IP))
        host.settimeout(_PATIENCE_S)
        if not programs.send_frame(port.ofport, frame):
            raise _Fault("a frame cannot be sent through a veth pair")
        try:
            return host.recv(2048)
        except TimeoutError:
            raise _Fault("a frame does not come out of a veth pair") from None


def _try_queue_law(programs: BridgePrograms, port: int) -> None:
    law = layout.fq_queue_law(kind=min(queue_laws()), limit_bytes=_BUFFER)
    programs.install_queue_law(port, 1, law, time.monotonic_ns() + _LEASE_NS)


def _try_turns(program: TurnProgram, ifindex: int) -> None:
    if not program.start(ifindex):
        raise _Fault(program.reason or "the program cannot be attached")


def _try_far_queue(programs: BridgePrograms, port: BridgePort) -> None:
    queue = FarQueue(port.name, rate=_BUFFER, buffer=_BUFFER)
    (_, far) = with_far_queues([port], {port.name: queue})
    programs.add_port(far)


def _try_taildrop(ifindex: int) -> None:
    with contextlib.closing(TailDrop({ifindex: _BUFFER})) as taildrop:
        taildrop.load()
        taildrop.add_port(ifindex)
