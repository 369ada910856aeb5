"""Two bridges on one path, the first only observed, the second acting with the same windows: every ACK meets
both, so what the first counts is what the second lowers.
"""

import contextlib
import selectors
import signal
import socket
import subprocess
import time
from collections import Counter

import pytest

from tests.support.capture import frames
from tests.support.fabric import network
from tests.support.lab import until
from tests.support.traffic import wait_until_reachable

pytestmark = pytest.mark.root
SENDERS, RECEIVER = ("h1", "h2", "h3", "h4"), "h5"
POOL = 48_000
CONFIG = f"[fairq_ryu]\nlease = 60\n\n[fixed]\npool = {POOL}\n\n[modes]\nbridge:right = observe\n"
# A flow is active from its first byte on: both bridges divide the pool by the same number at all times.
AGENT = "[agent]\nactive_timeout = 60\n"
FIRST, BYTES = 1_000, 600_000
# Buffers of the receiving sockets; None: the kernel's. A small one never advertises what the pool grants.
BUFFERS = (None, None, 6_000, 24_000)


def two_bridges():
    """The senders at the left bridge, the receiver at the right one; the ports towards it have queues."""
    from mininet.topo import Topo

    from mininet_topos.hosts import FairQHost
    from mininet_topos.links import ShallowLink

    topo, queue = Topo(), {"cls": ShallowLink, "rate": 50, "buffer": 60_000}
    for dpid, switch in enumerate(("left", "right"), 1):
        topo.addSwitch(switch, dpid=f"{dpid:016x}")
    for port, sender in enumerate(SENDERS, 1):
        topo.addLink(topo.addHost(sender, cls=FairQHost), "left", port2=port, cls=ShallowLink)
    topo.addLink(topo.addHost(RECEIVER, cls=FairQHost), "right", port2=1, **queue)
    topo.addLink("left", "right", port1=len(SENDERS) + 1, port2=2, **queue)
    return topo


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    with network(tmp_path_factory.mktemp("observe"), two_bridges(), AGENT) as made:
        made.start_controller(CONFIG, app="fixed")
        wait_until_reachable(made)
        yield made


class Transfers:
    """One connection from each sender to the receiver, which reads when told."""

    def __init__(self, fabric, stack):
        self.pairs = []
        for number, (sender, buffer) in enumerate(zip(SENDERS, BUFFERS, strict=True)):
            with fabric.socket(RECEIVER) as server:
                if buffer is not None:
                    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
                server.bind(("0.0.0.0", 5100 + number))
                server.listen(1)
                client = stack.enter_context(fabric.socket(sender))
                client.settimeout(20)
                client.connect((fabric.address(RECEIVER), 5100 + number))
                peer = stack.enter_context(server.accept()[0])
            for each in (client, peer):
                each.setblocking(False)
            self.pairs.append((client, peer))

    def carry(self, size):
        """Each sender sends so many bytes, and the receiver reads them."""
        left = {client: size for client, _ in self.pairs} | {peer: size for _, peer in self.pairs}
        with selectors.DefaultSelector() as selector:
            for client, peer in self.pairs:
                selector.register(client, selectors.EVENT_WRITE)
                selector.register(peer, selectors.EVENT_READ)
            deadline = time.monotonic() + 20
            while selector.get_map():
                assert time.monotonic() < deadline, left.values()
                for key, event in selector.select(1):
                    each = key.fileobj
                    with contextlib.suppress(BlockingIOError):
                        if event == selectors.EVENT_WRITE:
                            left[each] -= each.send(bytes(min(left[each], 1 << 16)))
                        else:
                            left[each] -= len(each.recv(4_000))
                    if not left[each]:
                        selector.unregister(each)


def data_port(fabric, switch):
    """The port by which the data leaves a bridge, as its agent shows it."""
    return fabric.agent_port(switch, len(SENDERS) + 1 if switch == "left" else 1)


def grown(fabric, before):
    """Of both bridges: (ACKs to which the rule applied, lowered, would have been lowered)."""
    found = {}
    for switch, first in before.items():
        now = data_port(fabric, switch)
        found[switch] = tuple(now[name] - first[name] for name in ("acks", "rewritten", "would_lower"))
    return found


@contextlib.contextmanager
def captured(fabric, folder):
    """The frames at the link of the bridges, from before to after those at the receiver."""
    found, ends = {}, {"link": fabric["left"], RECEIVER: fabric[RECEIVER]}
    interfaces = {"link": f"left-eth{len(SENDERS) + 1}", RECEIVER: f"{RECEIVER}-eth0"}
    programs = {}
    try:
        for name, node in ends.items():
            # A short snapshot length: the buffer has room for as many frames as it has of that length.
            options = "--immediate-mode -U -s 1600 -B 32768 -Z root"
            command = f"tcpdump {options} -i {interfaces[name]} -w {folder / name} tcp"
            programs[name] = node.popen(command.split(), stderr=subprocess.PIPE)
            while b"listening on" not in (line := programs[name].stderr.readline()):
                assert line, "tcpdump has ended"
        yield found
        for name in reversed(ends):
            programs[name].send_signal(signal.SIGINT)
            assert b"\n0 packets dropped by kernel" in programs[name].communicate(timeout=10)[1]
            time.sleep(0.2)
            found[name] = Counter(frames((folder / name).read_bytes()))
    finally:
        for program in programs.values():
            program.kill()
            program.wait()


def test_what_an_observed_bridge_counts_is_what_the_next_one_lowers(fabric, tmp_path):
    with contextlib.ExitStack() as stack:
        transfers = Transfers(fabric, stack)
        transfers.carry(FIRST)
        rules = [("left", "act"), ("right", "observe")]
        assert until(
            lambda: all(
                (port := data_port(fabric, switch))["mode"] == mode
                and port["rule"]
                and port["rule"]["kind"] == "pool"
                and port["active_flows"] == len(SENDERS)
                for switch, mode in rules
            )
        )

        def without_traffic():
            """What both bridges show, once no more delayed ACKs come; None before."""
            first = {switch: data_port(fabric, switch) for switch, _ in rules}
            time.sleep(0.2)
            last = {switch: data_port(fabric, switch) for switch, _ in rules}
            return last if all(first[each]["acks"] == last[each]["acks"] for each in first) else None

        before = until(without_traffic)
        with captured(fabric, tmp_path) as seen:
            transfers.carry(BYTES)
            assert until(lambda: (counts := grown(fabric, before))["left"][0] == counts["right"][0])
            time.sleep(0.2)
        (acks, lowered, none), (all_acks, nothing, would) = grown(fabric, before).values()
        assert (acks, lowered) == (all_acks, would)
        assert none == nothing == 0
        assert 0 < would < acks, "some ACKs advertise less than the pool grants"
        assert seen[RECEIVER].total() > acks and seen[RECEIVER] - seen["link"] == Counter()
