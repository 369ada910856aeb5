"""Hosts behind veth pairs that send unfinished checksums: the kernel's answers, and the result."""

import asyncio
import os
import struct
from types import SimpleNamespace

import pytest

from fairq_ryu.agent import peers, ports
from fairq_ryu.agent.ovsdb import BridgeView
from fairq_ryu.agent.peers import Peer
from fairq_ryu.cli.doctor import commands, network
from fairq_ryu.cli.doctor.commands import Output


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def link(kind: bytes, peer: int, nsid: int | None) -> bytes:
    """The body of RTM_NEWLINK."""
    body = bytes(16) + attribute(3, b"p1\0") + attribute(18, attribute(1, kind + b"\0") + attribute(2, b"x"))
    body += attribute(5, struct.pack("=i", peer))
    return body + (b"" if nsid is None else attribute(37, struct.pack("=i", nsid)))


@pytest.fixture
def kernel(monkeypatch, tmp_path):
    """Links by ifindex, namespaces by file, and the names found inside: (file or "", ifindex) to a name."""
    made = SimpleNamespace(links={}, numbers={}, inside={}, entered=[])

    def ask(kind: int, body: bytes) -> bytes:
        if kind == 18:
            return made.links.get(struct.unpack_from("=i", body, 4)[0], b"")
        fd = struct.unpack_from("=I", body, 8)[0]
        number = made.numbers.get(os.readlink(f"/proc/self/fd/{fd}"), -1)
        return bytes(4) + attribute(1, struct.pack("=i", number))

    def inside(path: str, ifindex: int) -> str:
        made.entered.append(path)
        return made.inside.get((path, ifindex), "")

    monkeypatch.setattr(peers, "_ask", ask)
    monkeypatch.setattr(peers, "_inside", inside)
    monkeypatch.setattr(peers, "NAMED", tmp_path / "netns")
    monkeypatch.setattr(peers, "PROC", tmp_path / "proc")
    (tmp_path / "netns").mkdir()
    (tmp_path / "proc/77/ns").mkdir(parents=True)
    for number, name in ((4, "netns/blue"), (9, "proc/77/ns/net")):
        (tmp_path / name).touch()
        made.numbers[str(tmp_path / name)] = number
    made.path = tmp_path
    return made


def test_a_host_in_our_own_namespace(kernel):
    kernel.links[3] = link(b"veth", 4, None)
    kernel.inside["", 4] = "h1"
    assert peers.unfinished([3]) == {3: Peer("h1", "")}
    assert Peer("h1", "").remedy == "ethtool -K h1 tso off gso off gro off tx off"


def test_hosts_in_namespaces_with_a_name_and_without(kernel):
    blue, process = str(kernel.path / "netns/blue"), str(kernel.path / "proc/77/ns/net")
    kernel.links = {3: link(b"veth", 2, 4), 5: link(b"veth", 2, 9), 7: link(b"veth", 2, 11)}
    kernel.inside = {(blue, 2): "eth0", (process, 2): "eth1"}
    found = peers.unfinished([3, 5, 7])
    assert {index: peer.remedy.partition(" tso")[0] for index, peer in found.items()} == {
        3: "ip netns exec blue ethtool -K eth0",
        5: "nsenter -t 77 -n ethtool -K eth1",
    }


def test_interfaces_that_are_no_veth_are_skipped(kernel):
    kernel.links = {3: link(b"dummy", 4, None), 5: bytes(16), 6: b"", 7: bytes(16) + b"\x01\x00\x05\x00"}
    kernel.inside["", 4] = "h1"
    assert peers.unfinished([3, 5, 6, 7]) == {}
    assert kernel.entered == []


@pytest.mark.parametrize("data", [b"\x00\x00\x05\x00", b"\xff\xff\x05\x00abcd", b"\x08", b"\x03\x00\x05\x00"])
def test_attributes_whose_lengths_are_wrong_end_the_list(data):
    good = attribute(7, b"abcd")
    assert list(peers._attributes(good + data)) == [(7, b"abcd")]


# Reports


def bridge_ports(datapath_type: str) -> ports.BridgePorts:
    view = BridgeView("s1", 1, datapath_type, (), (), ())
    programs = SimpleNamespace(ports={1: SimpleNamespace(ifindex=3, name="p1", far=None)})
    return ports.BridgePorts("s1", view, programs, None, lambda: None)


@pytest.fixture
def looks(monkeypatch):
    made = []

    def unfinished(indexes):
        made.append(set(indexes))
        return {3: Peer("eth0", "ip netns exec blue ")}

    monkeypatch.setattr(ports, "unfinished", unfinished)
    return made


def test_the_agent_logs_the_command_once(looks, caplog):
    checked = bridge_ports("netdev")
    for _ in range(3):
        asyncio.run(checked.check_peers())
    assert looks == [{3}]  # nothing has changed
    checked._programs.ports[2] = SimpleNamespace(ifindex=5, name="p2", far=None)
    asyncio.run(checked.check_peers())
    assert looks == [{3}, {3, 5}]
    (line,) = caplog.messages
    assert line.startswith("port p1: the host behind it (eth0)")
    assert line.endswith("Run: ip netns exec blue ethtool -K eth0 tso off gso off gro off tx off")


def test_a_found_host_is_checked_again(looks, monkeypatch):
    checked = bridge_ports("netdev")
    asyncio.run(checked.check_peers())
    checked._peers_checked = checked._peers_checked[0], checked._peers_checked[1] - 61
    asyncio.run(checked.check_peers())
    assert len(looks) == 2


def test_the_kernel_datapath_finishes_them_itself(looks, caplog):
    asyncio.run(bridge_ports("system").check_peers())
    assert looks == [] and not caplog.messages


def test_doctor_reports_it(monkeypatch):
    answers = {"find": "br0\n", "list-ifaces": "p1\np9\n"}
    monkeypatch.setattr(
        commands, "run", lambda command: Output(0, next(t for w, t in answers.items() if w in command))
    )
    monkeypatch.setattr(commands, "which", lambda command: command)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("socket.if_nametoindex", {"p1": 3}.__getitem__)
    monkeypatch.setattr(peers, "unfinished", lambda found: {3: Peer("eth0", "")})

    def index(name):
        if name != "p1":
            raise OSError("no such device")
        return 3

    monkeypatch.setattr("socket.if_nametoindex", index)
    (check,) = network.check_hosts()
    assert (check.name, check.status) == ("bridge br0", "warn")
    assert check.found == "port p1: eth0 sends unfinished checksums: TCP hangs"
    assert check.remedy == "ethtool -K eth0 tso off gso off gro off tx off"
