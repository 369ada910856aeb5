"""Shared by the tests of the eBPF programs: namespaces, ports, a loaded datapath, connections."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from bench.program_run import UNSPEC, LoadedProgram, Segments, can_sum
from fairq_ryu.agent import layout
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.program import ProgramLimits
from fairq_ryu.model import FlowKey, WindowKind, WindowRule
from tests.switch import packets
from tests.switch.packets import Segment

CLONE_NEWNET = 0x40000000
# After this long Linux repeats a SYN for the last time: 4 times after a second, then after 1, 2, 4 ... 32 s.
LAST_SYN_S = 4 + sum(1 << n for n in range(6))
# Long enough that no flow becomes idle during a test, however slow the machine.
PATIENT = ProgramLimits(flows=65536, rules=2048, ports=16, active_timeout=600)
_libc = ctypes.CDLL(None, use_errno=True)


def run(*command: str) -> str:
    """Run a command; returns its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@contextmanager
def namespace() -> Iterator[None]:
    """This thread is in a new network namespace, which is removed afterwards with its interfaces. The kernel
    sends no packets of its own there, which programs would count.
    """
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _check(_libc.unshare(CLONE_NEWNET))
        try:
            run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1", "net.ipv6.conf.all.disable_ipv6=1")
            yield
        finally:
            _check(_libc.setns(home, CLONE_NEWNET))
    finally:
        os.close(home)


MOST_MTU = 65535  # of veth


def set_mtu(port: str, mtu: int) -> None:
    """The MTU of a port that `make_port` has made, and of its host."""
    for end in (port, f"{port}h"):
        run("ip", "link", "set", end, "mtu", str(mtu))


def make_port(ofport: int, name: str) -> BridgePort:
    """A veth pair in this namespace; one end is the port, the other (its name with an ``h``) a host's."""
    run("ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}h")
    for end in (name, f"{name}h"):
        run("ip", "link", "set", end, "up")
    return BridgePort(ofport, name, socket.if_nametoindex(name), "02:00:00:00:00:00", True, True, 0)


@dataclass
class Switch:
    """A loaded datapath and its ports, by OpenFlow number."""

    datapath: BridgePrograms
    ports: dict[int, BridgePort]
    program: LoadedProgram

    def leave(
        self, port: int, what: Segment | bytes, segments: Segments | None = None, arrived: int | None = None
    ) -> bytes:
        """A frame leaves by a port; returns it as it left. ``segments``: it is a packet of several.
        ``arrived``: the port by which it has arrived, as the kernel's datapath knows it. Its sum by a network
        card has to be right afterwards, where the kernel looks at that.
        """
        frame = what.frame() if isinstance(what, Segment) else what
        by = 0 if arrived is None else self.ports[arrived].ifindex
        result = self.program.run(
            frame, self.ports[port].ifindex, segments=segments, arrived_by=by, summed=can_sum()
        )
        assert result.verdict == UNSPEC
        return result.packet

    def state(self, port: int) -> Any:
        """The port's counters, an ``fq_port``."""
        return self.datapath.port_state(self.ports[port])

    def active(self, port: int) -> int:
        return self.datapath.active_flows(self.ports[port])

    def rule(
        self,
        target: int | FlowKey,
        bytes: int,
        kind: WindowKind = WindowKind.WINDOW,
        lease: float = 3600,
        slot: int = 0,
    ) -> None:
        """Install a rule for ``lease`` seconds from now."""
        expires = time.monotonic_ns() + int(lease * 1e9)
        self.datapath.install_rule(target, WindowRule(kind, bytes), max(0, expires), slot)

    def pool(self, port: int, bytes: int, slot: int = 0) -> None:
        self.rule(port, bytes, WindowKind.POOL, slot=slot)

    def flow(self, key: FlowKey) -> tuple[Any, Any] | None:
        """The entry of a flow: ``fq_dir`` of ``key``'s own direction, and of the other."""
        found = self.datapath.window.flows.get(flow_key(key))
        if found is None:
            return None
        forward = flow_key(key, directed=True).dir
        return found.dir[forward], found.dir[1 - forward]

    def reset(self) -> None:
        """Remove rules, flows and counters."""
        datapath = self.datapath
        for port in self.ports:
            datapath.remove_rule(port)
        for port in datapath.observed:
            datapath.observe(port, False)
        window = datapath.window
        for key in list(window.flow_rules._table.keys()):
            window.flow_rules._remove(key)
        for flows in (window.flows, window.silent, window.rivals, window.law_flows):
            for key in list(flows.keys()):
                flows.delete(key)
        for bridge_port in self.ports.values():
            slot = ctypes.c_uint32(window.slots[bridge_port.ifindex])
            window._port_states.set(slot, layout.fq_port(ifindex=bridge_port.ifindex))
        for number in range(4):
            datapath.reset_counters(number)


@contextmanager
def loaded(limits: ProgramLimits = PATIENT) -> Iterator[Switch]:
    """A switch with three ports in the current namespace, which carry segments of any size; they are removed
    afterwards.
    """
    ports = {n: make_port(n, f"p{n}") for n in (1, 2, 3)}
    for port in ports.values():
        set_mtu(port.name, MOST_MTU)
    host = HostPrograms(limits)
    try:
        host.load([port.ifindex for port in ports.values()])
        datapath = BridgePrograms(host)
        for port in ports.values():
            datapath.add_port(port)
        with LoadedProgram.attached(ports[1].ifindex) as program:
            yield Switch(datapath, ports, program)
    finally:
        host.close()
        for port in ports.values():
            run("ip", "link", "del", port.name)


_fresh = count(20000)


@dataclass
class Connection:
    """A TCP connection through the switch: the client is behind port 1, the server behind port 2.

    ``shape`` sets the outer headers of each segment (VLAN tags, IP options, ...); scales and MSS are those
    that each end announces, None for no option.
    """

    switch: Switch
    client: str = "10.0.0.1"
    server: str = "10.0.0.2"
    client_scale: int | None = 7
    server_scale: int | None = 7
    client_mss: int | None = 1460
    server_mss: int | None = 1460
    shape: dict[str, Any] | None = None
    client_isn: int = 1000
    server_isn: int = 5000
    sport: int = 0
    dport: int = 80
    server_port: int = 2

    def __post_init__(self) -> None:
        if not self.sport:
            self.sport = next(_fresh) % 40000 + 20000

    @property
    def data_key(self) -> FlowKey:
        """The direction from client to server: its data leaves by port 2."""
        tags = (self.shape or {}).get("vlans", ())
        vlan = tags[0][1] & 0xFFF if tags else 0
        return FlowKey(self.client, self.server, self.sport, self.dport, vlan)

    @property
    def ack_key(self) -> FlowKey:
        return self.data_key.reversed

    def from_client(self, **what: Any) -> Segment:
        settings: dict[str, Any] = {"seq": (self.client_isn + 1) % 2**32, "ack": self.server_isn + 1}
        settings |= (self.shape or {}) | what
        return Segment(self.client, self.server, self.sport, self.dport, **settings)

    def from_server(self, **what: Any) -> Segment:
        settings: dict[str, Any] = {"seq": self.server_isn + 1, "ack": (self.client_isn + 1) % 2**32}
        settings |= (self.shape or {}) | what
        return Segment(self.server, self.client, self.dport, self.sport, **settings)

    def syn(self, **what: Any) -> bytes:
        options = packets.syn_options(self.client_mss, self.client_scale, packets.sack_permitted())
        settings = {"seq": self.client_isn, "ack": 0, "flags": "S", "options": options} | what
        return self.switch.leave(self.server_port, self.from_client(**settings))

    def syn_ack_segment(self, **what: Any) -> Segment:
        options = packets.syn_options(self.server_mss, self.server_scale, packets.sack_permitted())
        settings = {"seq": self.server_isn, "flags": "SA", "options": options} | what
        return self.from_server(**settings)

    def syn_ack(self, **what: Any) -> bytes:
        return self.switch.leave(1, self.syn_ack_segment(**what))

    def open(self) -> Connection:
        self.syn()
        self.syn_ack()
        return self

    def data(self, payload: int = 1000, **what: Any) -> bytes:
        """The client sends data."""
        return self.switch.leave(self.server_port, self.from_client(payload=b"d" * payload, **what))

    def ack(self, window: int = 65535, **what: Any) -> bytes:
        """The server acknowledges; the frame as it leaves towards the client."""
        return self.switch.leave(1, self.from_server(window=window, **what))

    def granted(self, window: int = 65535, **what: Any) -> int:
        """The window of such an ACK when it leaves; all other fields must be unchanged."""
        before = self.from_server(window=window, **what).frame()
        after = self.switch.leave(1, before)
        packets.check_sound(before, after)
        return packets.window(after)


def lowered(advertised: int, bytes: int, scale: int, mss: int, pauses: bool = True) -> int:
    """The rule of the window laws: min(advertised, W) on the wire, in steps of ``1 << scale``, at least
    one MSS rounded up to a step; a window rule of 0 pauses.
    """
    if bytes == 0 and pauses:
        return 0
    step = 1 << scale
    floor = -(-mss // step)
    return min(advertised, max(bytes // step, floor))
