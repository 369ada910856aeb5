"""The hosts' own TCP through a bridge with the programs on its ports: nothing of it is taken for forged."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.model import FlowKey, WindowKind, WindowRule
from fairq_ryu.packet.tcp_build import Addressing, duplicates
from tests.support.lab import until
from tests.switch.rig import CLONE_NEWNET, PATIENT, _check, _libc, make_port, namespace, run

C = layout.CONSTANTS
CLIENT, SERVER = "10.7.0.1", "10.7.0.2"
POOL = 20_000
TCP_MD5SIG, TCP_FASTOPEN, TCP_REPAIR, TCPI_OPT_SYN_DATA = 14, 23, 19, 32
MSG_FASTOPEN = 0x20000000
TCP_CA_RECOVERY = 3


class Hosts:
    """Two hosts behind ports 1 and 2 of a Linux bridge, each in a namespace of its own."""

    def __init__(self) -> None:
        self.home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self.make_bridge()
        self.spaces: dict[str, int] = {}
        self.sports = count(40_000)
        self.ports = {n: make_port(n, f"p{n}") for n in (1, 2)}
        for n, address in ((1, CLIENT), (2, SERVER)):
            self.connect_port(f"p{n}")
            with namespace():
                space = self.spaces[address] = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            run("ip", "link", "set", f"p{n}h", "netns", f"/proc/{os.getpid()}/fd/{space}")
            self.enter(address)
            run("ip", "addr", "add", f"{address}/24", "dev", f"p{n}h")
            run("ip", "link", "set", f"p{n}h", "up")
            run("sysctl", "-qw", "net.ipv4.tcp_fastopen=3", "net.ipv4.tcp_fin_timeout=5")
            self.enter()
        host = HostPrograms(PATIENT)
        host.load([port.ifindex for port in self.ports.values()])
        self.programs = BridgePrograms(host)
        for port in self.ports.values():
            self.programs.add_port(port)

    def make_bridge(self) -> None:
        run("ip", "link", "add", "name", "bridge0", "type", "bridge")
        run("ip", "link", "set", "bridge0", "up")

    def connect_port(self, name: str) -> None:
        run("ip", "link", "set", name, "master", "bridge0")

    def enter(self, address: str | None = None) -> None:
        _check(_libc.setns(self.spaces[address] if address else self.home, CLONE_NEWNET))

    def socket(self, address: str) -> socket.socket:
        """A socket of this host."""
        self.enter(address)
        try:
            made = socket.socket()
        finally:
            self.enter()
        made.settimeout(20)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return made

    def listen(self, port: int) -> socket.socket:
        listener = self.socket(SERVER)
        listener.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN, 16)
        listener.bind((SERVER, port))
        listener.listen(64)
        return listener

    def connect(self, port: int, sport: int = 0) -> socket.socket:
        # A port that the kernel chose could be that of a connection before, whose entry it would take.
        client = self.socket(CLIENT)
        client.bind((CLIENT, sport or next(self.sports)))
        client.connect((SERVER, port))
        return client

    def flows(self) -> list[Any]:
        return [flow for _, flow in self.programs.window.flows.items()]

    def rivals(self) -> int:
        return len(list(self.programs.window.rivals.keys()))

    def close(self) -> None:
        self.programs.host.close()
        for space in (*self.spaces.values(), self.home):
            os.close(space)


@pytest.fixture
def hosts(own_namespace: None) -> Iterator[Hosts]:
    with namespace():
        found = Hosts()
        try:
            for port in (1, 2):
                expires = 2**63
                found.programs.install_rule(port, WindowRule(WindowKind.POOL, POOL), expires, port)
            yield found
        finally:
            found.close()


def ended(flow: Any) -> str:
    flags = [each.flags for each in flow.dir]
    if any(each & C["FQ_RST"] for each in flags):
        return "reset"
    if all(each & C["FQ_FIN"] for each in flags):
        return "closed"
    return "half closed" if any(each & C["FQ_FIN"] for each in flags) else "open"


def md5_key(peer: str, key: bytes) -> bytes:
    """``struct tcp_md5sig`` of linux/tcp.h."""
    address = struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(peer)).ljust(128, b"\0")
    return address + struct.pack("=BBHI", 0, 0, len(key), 0) + key.ljust(80, b"\0")


def echo(server: socket.socket) -> None:
    """Send back what comes, until the end."""
    with server:
        while data := server.recv(65536):
            server.sendall(data)


def exchange(hosts: Hosts, listener: socket.socket, client: socket.socket, size: int) -> None:
    """``size`` bytes there and back; both sides close."""
    server, _ = listener.accept()
    thread = threading.Thread(target=echo, args=(server,))
    thread.start()
    reader_got = 0
    sender = threading.Thread(target=client.sendall, args=(b"d" * size,))
    sender.start()
    while reader_got < size:
        reader_got += len(client.recv(65536))
    sender.join()
    client.close()
    thread.join()


def test_connections_that_end_in_order(hosts: Hosts) -> None:
    listener = hosts.listen(80)
    sizes = [1, 1448, 11_500, 300_000, 2_000_000]
    for size in sizes:
        exchange(hosts, listener, hosts.connect(80), size)
    # The last segment may still be under way.
    assert until(lambda: Counter(map(ended, hosts.flows())) == {"closed": len(sizes)})
    assert until(
        lambda: sorted(flow.dir[side].acked for flow in hosts.flows() for side in (0, 1)) == sorted(sizes * 2)
    )
    for port in hosts.ports.values():
        state = hosts.programs.port_state(port)
        assert state.unknown_scale == 0 and state.rewritten > 100
        assert hosts.programs.active_flows(port) == 0
    assert hosts.rivals() == 0, "every segment belonged to its connection"


@pytest.mark.parametrize("side", ["client", "server"])
def test_connections_that_are_reset_with_data_under_way(hosts: Hosts, side: str) -> None:
    """Behind a window that was lowered, Linux resets at the window's edge and not at its next number: the
    receiver asks back, and the second reset is exact.
    """
    listener = hosts.listen(80)
    for _ in range(10):
        client = hosts.connect(80)
        server, _ = listener.accept()
        sender, receiver = (client, server) if side == "client" else (server, client)
        sender.setblocking(False)
        while True:
            try:
                sender.send(b"d" * 100_000)
            except BlockingIOError:
                break
        receiver.recv(50_000)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sender.close()
        with pytest.raises(ConnectionResetError):
            while receiver.recv(1_000_000):
                pass
        receiver.close()
    assert until(lambda: Counter(map(ended, hosts.flows())) == {"reset": 10})
    assert [hosts.programs.active_flows(port) for port in hosts.ports.values()] == [0, 0]
    assert hosts.rivals() == 0


def test_a_closed_port_and_a_closed_reader(hosts: Hosts) -> None:
    with pytest.raises(ConnectionRefusedError):
        hosts.connect(81)
    listener = hosts.listen(80)
    client = hosts.connect(80)
    server, _ = listener.accept()
    server.sendall(b"d" * 10_000)
    client.recv(100)
    client.close()  # with data that was not read: a reset
    with pytest.raises(ConnectionError):
        for _ in range(100):
            server.sendall(b"d" * 10_000)
    assert until(lambda: Counter(map(ended, hosts.flows())) == {"reset": 2})


def test_fast_open(hosts: Hosts) -> None:
    listener = hosts.listen(80)
    for turn in range(2):  # the first asks for the cookie
        client = hosts.socket(CLIENT)
        client.settimeout(None)  # without a cookie it must wait for the SYN-ACK
        assert client.sendto(b"d" * 500, MSG_FASTOPEN, (SERVER, 80)) == 500
        server, _ = listener.accept()
        assert len(server.recv(1000)) == 500
        server.sendall(b"e" * 5000)
        got = 0
        while got < 5000:
            got += len(client.recv(5000))
        assert hosts.programs.port_state(hosts.ports[2]).unknown_scale == 0, turn
        options = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[5]
        assert bool(options & TCPI_OPT_SYN_DATA) == (turn == 1), "the SYN's data was accepted"
        client.close()
        server.close()
    assert until(lambda: sum(each.acked for flow in hosts.flows() for each in flow.dir) == 2 * 5500)
    assert hosts.rivals() == 0


def test_tcp_md5(hosts: Hosts) -> None:
    """The hosts sign with TCP-MD5, as BGP does: what the switch alters, the other end discards."""
    client, listener = hosts.socket(CLIENT), hosts.socket(SERVER)
    try:
        for end, other in ((client, SERVER), (listener, CLIENT)):
            end.setsockopt(socket.IPPROTO_TCP, TCP_MD5SIG, md5_key(other, b"secret"))
    except OSError as error:
        pytest.skip(f"this kernel has no TCP-MD5: {error}")
    listener.bind((SERVER, 179))
    listener.listen()
    client.connect((SERVER, 179))
    exchange(hosts, listener, client, 300_000)
    for port in hosts.ports.values():
        state = hosts.programs.port_state(port)
        assert state.rewritten == 0 and state.signed_acks == state.acks > 100
        assert hosts.programs.active_flows(port) == 0
    exchange(hosts, hosts.listen(80), hosts.connect(80), 300_000)
    assert all(hosts.programs.port_state(port).rewritten > 0 for port in hosts.ports.values())


def test_the_ports_of_a_client_that_died(hosts: Hosts) -> None:
    """It vanishes without a word and comes again: challenge, reset, new handshake (RFC 9293 3.5.1)."""
    listener = hosts.listen(80)
    for turn in range(3):
        client = hosts.connect(80, sport=30_000)
        server, _ = listener.accept()
        client.sendall(b"d" * 10_000)
        assert server.recv(1)
        (flow,) = hosts.flows()
        assert ended(flow) == "open" and all(each.flags & C["FQ_KNOWN"] for each in flow.dir), turn
        assert hosts.programs.active_flows(hosts.ports[2]) == 1
        client.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        client.close()
    assert hosts.programs.port_state(hosts.ports[2]).unknown_scale == 0


def test_time_wait_used_again(hosts: Hosts) -> None:
    """A server that closed last gets the same ports again from a client that skipped TIME-WAIT."""
    listener = hosts.listen(80)
    hosts.enter(CLIENT)
    run("sysctl", "-qw", "net.ipv4.tcp_tw_reuse=1", "net.ipv4.tcp_timestamps=1")
    hosts.enter()
    for _ in range(3):
        client = hosts.connect(80, sport=31_000)
        server, _ = listener.accept()
        server.sendall(b"d" * 3000)
        server.close()  # TIME-WAIT is the server's
        while client.recv(10_000):
            pass
        client.close()
    assert until(
        lambda: (
            [(ended(flow), sum(each.acked for each in flow.dir)) for flow in hosts.flows()]
            == [("closed", 3000)]
        )
    )
    assert (
        hosts.programs.port_state(hosts.ports[2]).handshakes
        + (hosts.programs.port_state(hosts.ports[1]).handshakes)
        == 3
    )


class Sending(NamedTuple):
    """What a sender knows of its losses (``struct tcp_info``)."""

    unacked: int
    duplicates: int
    retransmitted: int
    recovers: bool
    timeouts: int


def sending(client: socket.socket) -> Sending:
    found = struct.unpack("=8B24I", client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104))
    return Sending(found[12], found[13], found[31], found[1] == TCP_CA_RECOVERY, found[2])


def mac_of(hosts: Hosts, address: str, interface: str) -> str:
    hosts.enter(address)
    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
            port.bind((interface, 0))
            name: tuple[Any, ...] = port.getsockname()
            return bytes(name[4]).hex(":")
    finally:
        hosts.enter()


@pytest.mark.parametrize("remembered", [True, False])
def test_a_sender_counts_three_duplicates_with_the_window_that_was_passed_on(
    hosts: Hosts, remembered: bool
) -> None:
    """The receiver does not answer any more, and its window has become larger meanwhile. With the window that
    was passed on, three duplicates start fast retransmit; with the larger one, the first is a window update.
    """
    hosts.enter(CLIENT)
    run("sysctl", "-qw", "net.ipv4.tcp_sack=0")
    run("ip", "route", "change", "10.7.0.0/24", "dev", "p1h", "rto_min", "60s")
    hosts.enter()
    hosts.programs.install_rule(2, WindowRule(WindowKind.WINDOW, 20_000), 2**63, 2)
    listener = hosts.listen(80)
    client = hosts.connect(80)
    server, _ = listener.accept()
    client.sendall(b"d" * 5000)
    assert server.recv(5000, socket.MSG_WAITALL) == b"d" * 5000
    assert until(lambda: sending(client).unacked == 0)
    hosts.enter(SERVER)
    run("ip", "addr", "del", f"{SERVER}/24", "dev", "p2h")
    hosts.enter()
    hosts.programs.install_rule(2, WindowRule(WindowKind.WINDOW, 40_000), 2**63, 2)
    client.sendall(b"e" * 8000)
    assert sending(client).unacked >= 5
    acks = FlowKey(SERVER, CLIENT, 80, client.getsockname()[1])
    state = hosts.programs.segment_state(acks)
    assert state.passed << (state.wscale or 0) <= 20_000 < state.window << (state.wscale or 0)
    if not remembered:
        state = state._replace(passed=state.window)
    frames = duplicates(Addressing(acks, mac_of(hosts, SERVER, "p2h"), mac_of(hosts, CLIENT, "p1h")), state)
    assert isinstance(frames, list)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
        port.bind(("p1", 0))
        for frame in frames:
            port.send(frame)
    assert until(lambda: sending(client).duplicates >= 2)
    if remembered:
        assert until(lambda: sending(client).retransmitted == 1)
    found = sending(client)
    assert (found.recovers, found.retransmitted, found.timeouts) == (remembered, int(remembered), 0)
