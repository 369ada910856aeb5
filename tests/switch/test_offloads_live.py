"""The hosts' own TCP with all offloads on, through a bridge and a slow port: every segment counts."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.agent.programs.taildrop import start_taildrop
from fairq_ryu.experiments.measure.queues import read_losses
from fairq_ryu.model import WindowKind, WindowRule
from mininet_topos.commands import has_kernel_datapath
from tests.support.lab import until
from tests.switch.queue_rig import kernel_counters, set_queue_limits
from tests.switch.rig import namespace, run
from tests.switch.test_real_hosts import CLIENT, SERVER, Hosts

LIMIT = 80_000
SIZE = 3_000_000
FRAME = 1514
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33  # no names in the module socket
MANY = 32
# BIG TCP for IPv4, since Linux 6.3: IFLA_GSO_IPV4_MAX_SIZE and IFLA_GRO_IPV4_MAX_SIZE
BIG_SIZES, BIG = (63, 64), 400_000
LARGEST = 14 + 65_535
KERNEL = tuple(int(each) for each in platform.release().split(".")[:2])
NEW_LINK, ACKNOWLEDGED = 16, 5
# struct tcp_info: tcpi_total_retrans, tcpi_data_segs_out
RETRANSMITTED, DATA_SEGMENTS = 100, 156


class OpenVSwitchHosts(Hosts):
    """Behind ports of a bridge of Open vSwitch with the kernel's datapath, which is in its own namespace."""

    name = "fqoff"

    def make_bridge(self) -> None:
        run("ovs-vsctl", "add-br", self.name, "--", "set", "bridge", self.name, "datapath_type=system")
        run("ip", "link", "set", self.name, "up")

    def connect_port(self, name: str) -> None:
        keep = (
            f"--id=@keep create QoS type=linux-noop external_ids:{self.name}=1 -- set port {name} qos=@keep"
        )
        run("ovs-vsctl", "add-port", self.name, name, "--", *keep.split())

    def close(self) -> None:
        found = run("ovs-vsctl", "--bare", "--columns=_uuid", "find", "QoS", f"external_ids:{self.name}=1")
        run("ovs-vsctl", "--if-exists", "del-br", self.name)
        for each in found.split():
            run("ovs-vsctl", "destroy", "QoS", each)
        for name in ("p1", "p2"):
            run("ip", "link", "del", name)
        super().close()


@pytest.fixture(params=["Linux bridge", "kernel datapath"])
def hosts(machine: str, request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """Nobody has switched an offload off."""
    if machine:
        pytest.fail(f"these tests need {machine}", pytrace=False)
    with contextlib.ExitStack() as stack:
        if request.param == "Linux bridge":
            stack.enter_context(namespace())
            found = Hosts()
        elif not has_kernel_datapath():
            pytest.skip("this kernel has no datapath of Open vSwitch (module openvswitch)")
        else:
            found = OpenVSwitchHosts()
        stack.callback(found.close)
        yield found


def cutting(name: str) -> None:
    """As the experiments make it (mininet_topos/links.py)."""
    run(*f"tc qdisc add dev {name} root handle 1: tbf rate 10mbit burst 3080 peakrate 100gbit mtu 1540"
        f" limit {LIMIT}".split())  # fmt: skip
    run(*f"tc qdisc add dev {name} parent 1:1 handle 10: bfifo limit {LIMIT}".split())


def whole(name: str) -> None:
    set_queue_limits(name, "10mbit burst 3k cburst 3k", LIMIT)


def listed(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("tc", "-s", "-j", "qdisc", "show", "dev", name))
    return found


def counted(name: str, *kinds: str) -> list[int]:
    """The packets that qdiscs of these kinds have counted."""
    packets = {each["kind"]: each["packets"] for each in listed(name)}
    return [packets[kind] for kind in kinds]


def at_one_time(read: Callable[[], list[int]]) -> list[int]:
    """What two readings have in common: clsact is older than the queue, and a bridge reports its multicast
    groups (IGMP) within a second, perhaps while these are read.
    """
    found: list[int] = []
    while (again := read()) != found:
        found = again
    return found


def receive(server: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        piece = server.recv(1 << 20)
        assert piece, "the connection was closed"
        got += piece
    return bytes(got)


def acknowledged(client: socket.socket) -> bytes:
    """The tcp_info of a client whose data has been acknowledged; nothing before."""
    info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return info if not struct.unpack_from("I", info, 24)[0] else b""  # tcpi_unacked


def transfer(hosts: Hosts, connections: int = 1, size: int = SIZE) -> tuple[int, int]:
    """Data from client to server, which gets it byte for byte, in parts by so many connections at once.
    Returns the segments that the client has sent with data, and those of them that it has sent again.

    The queue overflows for certain if each connection may have two packets of two segments in it: Linux
    allows that whatever the round trip is, but not much more if it is long (TCP Small Queues).
    """
    listener = hosts.listen(80)
    data = hashlib.shake_128(b"seed").digest(size)
    part = size // connections
    pairs = []
    for _ in range(connections):
        client = hosts.connect(80)
        client.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 2 * part)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        pairs.append((client, listener.accept()[0]))
    for number, (client, _) in enumerate(pairs):
        client.sendall(data[number * part :][:part])  # into the socket's buffer
    sent = again = 0
    for number, (client, server) in enumerate(pairs):
        assert receive(server, part) == data[number * part :][:part]
        info = until(lambda client=client: acknowledged(client))
        assert info
        sent += struct.unpack_from("I", info, DATA_SEGMENTS)[0]
        again += struct.unpack_from("I", info, RETRANSMITTED)[0]
    # Not before: a full queue would refuse a FIN, which is no segment with data.
    for each in (*(end for pair in pairs for end in pair), listener):
        each.close()
    return sent, again


def checksum_errors(hosts: Hosts, address: str) -> int:
    hosts.enter(address)
    try:
        names, values = (
            line.split()
            for line in Path("/proc/thread-self/net/snmp").read_text().splitlines()
            if "Tcp:" in line
        )
    finally:
        hosts.enter()
    return int(dict(zip(names, values, strict=True))["InCsumErrors"])


def frames_of_host(hosts: Hosts, address: str, name: str) -> int:
    hosts.enter(address)
    try:
        shown = json.loads(run("ip", "-s", "-j", "link", "show", "dev", name))
    finally:
        hosts.enter()
    return int(shown[0]["stats64"]["rx"]["packets"])


def govern(hosts: Hosts, window: int = 60_000) -> None:
    hosts.programs.install_rule(2, WindowRule(WindowKind.WINDOW, window), 2**63, 1)


def allow_big(*names: str) -> None:
    """Let packets of these interfaces be longer than 64 KB. iproute2 6.1 and pyroute2 cannot say that."""
    sizes = b"".join(struct.pack("=HHI", 8, each, BIG) for each in BIG_SIZES)
    for name in names:
        body = struct.pack("=BxHiII", 0, 0, socket.if_nametoindex(name), 0, 0) + sizes
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as route:
            route.send(struct.pack("=IHHII", 16 + len(body), NEW_LINK, ACKNOWLEDGED, 1, 0) + body)
            assert struct.unpack_from("=i", route.recv(4096), 16) == (0,)


def largest(sniffer: socket.socket) -> int:
    """The largest frame that it has waiting."""
    found = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            found = max(found, len(sniffer.recv(1 << 20)))
    return found


@pytest.mark.parametrize("shaped", [whole, cutting])
def test_every_segment_is_counted_and_every_checksum_is_right(hosts: Hosts, shaped: Any) -> None:
    shaped("p2")
    sent, _ = transfer(hosts)
    assert until(lambda: kernel_counters("p2")["backlog"] == 0)
    (flow,) = hosts.flows()
    data = max(flow.dir, key=lambda each: each.bytes)
    assert data.packets == sent > SIZE // FRAME
    # Windows are lowered in packets whose checksums are not finished.
    govern(hosts)
    transfer(hosts)
    assert hosts.programs.port_state(hosts.ports[2]).rewritten > 50
    assert [checksum_errors(hosts, each) for each in (CLIENT, SERVER)] == [0, 0]

    def agree() -> bool:
        """While another process attaches a program to the tracepoints, the kernel calls none."""
        found, counters = hosts.programs.queue(hosts.ports[2]), kernel_counters("p2")
        return (found.packets, found.bytes, found.backlog) == (counters["packets"], counters["bytes"], 0)

    assert until(agree)


@pytest.mark.skipif(KERNEL < (6, 3), reason="IPv4 packets of more than 64 KB need Linux 6.3")
def test_packets_of_more_than_64_kilobytes(hosts: Hosts) -> None:
    """BIG TCP: the IP header has no length. The segments are counted, and windows lowered beside them."""
    allow_big("p1", "p2")
    hosts.enter(CLIENT)
    allow_big("p1h")
    hosts.enter(SERVER)
    allow_big("p2h")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as sniffer:
        hosts.enter()
        sniffer.bind(("p2h", 0))
        sniffer.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        sniffer.setblocking(False)

        sent = 0

        def one_was_big() -> bool:
            nonlocal sent
            sent += transfer(hosts, size=10 * SIZE)[0]
            return largest(sniffer) > LARGEST

        assert until(one_was_big)
        govern(hosts, 1_000_000)
        assert until(lambda: one_was_big() and hosts.programs.port_state(hosts.ports[2]).rewritten)
    flows = [max(flow.dir, key=lambda each: each.bytes) for flow in hosts.flows()]
    assert sum(each.packets for each in flows) == sent
    assert hosts.programs.port_state(hosts.ports[2]).malformed == 0
    assert [checksum_errors(hosts, each) for each in (CLIENT, SERVER)] == [0, 0]


def test_a_port_that_cuts_loses_segments_one_by_one(hosts: Hosts) -> None:
    """As the port of a switch, for which nobody hands over 64 KB at once."""
    cutting("p2")
    came, handed, queued = at_one_time(
        lambda: [frames_of_host(hosts, SERVER, "p2h"), *counted("p2", "clsact", "tbf")]
    )
    before, early = came - queued, handed - queued
    sent, again = transfer(hosts, MANY)
    found: dict[str, Any] = {}

    def agree() -> bool:
        """The connections may still be closing: a segment may pass between two readings."""
        nonlocal came
        found.update({each["kind"]: each for each in listed("p2")})
        came = frames_of_host(hosts, SERVER, "p2h") - before
        passed = found["tbf"]["packets"]
        handed = found["clsact"]["packets"] - early
        return handed == passed + found["bfifo"]["drops"] and came == passed

    agreed = until(agree)
    counts = {kind: (each["packets"], each["drops"]) for kind, each in found.items()}
    assert agreed, f"{counts}, and {came} frames came"
    refused = found["bfifo"]["drops"]
    assert sent > SIZE // FRAME and refused > 0
    # A small segment and the next one are sent again as one (tcp_retrans_try_collapse), a frame of ARP never.
    assert again >= refused - MANY
    losses = read_losses(listed("p2"))
    assert (losses.refused, losses.taken) == (refused, early)
    # It was full when it refused a segment. A queue that takes whole packets leaves up to 64 KB of room.
    assert LIMIT - FRAME < hosts.programs.queue(hosts.ports[2]).peak <= LIMIT


def test_what_the_tail_drop_takes_and_what_passes_is_what_was_sent(hosts: Hosts) -> None:
    whole("p2")
    drop = start_taildrop({"p2": LIMIT})
    handed, queued = at_one_time(lambda: counted("p2", "clsact", "htb"))
    early = handed - queued
    try:
        sent, _ = transfer(hosts, MANY)
        found: dict[str, Any] = {}

        def agree() -> bool:
            """The connections may still be closing: a segment may pass between two readings."""
            found.update({each["kind"]: each for each in listed("p2")})
            lost = drop.dropped(socket.if_nametoindex("p2"))
            return bool(found["clsact"]["packets"] - early == found["htb"]["packets"] + lost)

        agreed, lost = until(agree), drop.dropped(socket.if_nametoindex("p2"))
        assert agreed, f"{counted('p2', 'clsact', 'htb')}, {early} before, {lost} dropped"
        assert found["htb"]["drops"] == 0
        assert lost > 0 and sent > SIZE // FRAME
        # Whole packets: many segments at once.
        assert found["clsact"]["bytes"] > found["htb"]["bytes"]
    finally:
        drop.close()


def test_the_pause_between_two_packets_is_that_of_their_segments(hosts: Hosts) -> None:
    """The rate of a port that cuts is its rate, with offloads on as well."""
    cutting("p2")
    began = time.monotonic_ns()
    transfer(hosts)
    assert until(lambda: kernel_counters("p2")["backlog"] == 0)
    seconds = (time.monotonic_ns() - began) / 1e9
    assert kernel_counters("p2")["bytes"] - 2 * 3080 <= 10e6 / 8 * seconds
