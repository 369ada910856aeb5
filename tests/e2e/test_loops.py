"""Bridges without rules in a network with loops, of which nobody has said how they are governed: no frame
circles, from the first message on, and what hosts send arrives.
"""

import collections
import socket
import threading

import pytest

from tests.support.fabric import network
from tests.support.lab import output, until

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
PORT = 5990


@pytest.fixture
def fabric(tmp_path):
    from mininet_topos.leaf_spine import LeafSpineTopo

    with network(tmp_path, LeafSpineTopo(leaves=2, spines=2, hosts=2), agent=None) as net:
        for switch in net.switches:
            output("ovs-vsctl", "remove", "bridge", switch, "other_config", "dp-desc")
            assert output("ovs-vsctl", "get-fail-mode", switch).strip() == "secure"
        yield net


class Broadcasts:
    """A host sends broadcasts all the time, each from a port of its own; the others count what arrives."""

    def __init__(self, fabric):
        self.sender, *others = fabric.hosts
        self.sent = 0
        self.received = {host: collections.Counter() for host in others}
        self._stop = threading.Event()
        self._sockets = {host: fabric.socket(host, socket.SOCK_DGRAM) for host in others}
        self._threads = [threading.Thread(target=self._send, args=(fabric,))]
        for host, each in self._sockets.items():
            each.bind(("", PORT))
            each.settimeout(0.2)
            self._threads.append(threading.Thread(target=self._receive, args=(host,)))
        for thread in self._threads:
            thread.start()

    def _send(self, fabric):
        while not self._stop.wait(0.02):
            with fabric.socket(self.sender, socket.SOCK_DGRAM) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                one.bind(("", 20_000 + self.sent))
                one.sendto(b"to all", ("10.255.255.255", PORT))
            self.sent += 1

    def _receive(self, host):
        while not self._stop.is_set():
            try:
                self.received[host][self._sockets[host].recvfrom(100)[1][1]] += 1
            except TimeoutError:
                continue

    def end(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for each in self._sockets.values():
            each.close()


def test_a_leaf_spine_of_empty_secure_bridges_carries_broadcasts_and_no_storm(fabric):
    with fabric.capture(f"udp dst port {PORT}") as capture:
        broadcasts = Broadcasts(fabric)
        try:
            fabric.start_controller(wait=False)
            assert until(lambda: {each["way"] for each in fabric.rest("switches")} == {"paths"}, 60)
            fabric.wait_until_settled()
            here, *others = fabric.hosts
            for other in others:
                ping = f"ping -c1 -W1 {fabric.address(other)}"
                assert until(lambda ping=ping: " 0% packet loss" in fabric[here].cmd(ping)), ping
            last = 20_000 + broadcasts.sent + 20
            assert until(lambda: all(last in seen for seen in broadcasts.received.values()))
        finally:
            broadcasts.end()
    # In a storm a frame would pass links again and again. It passes each once, and reaches each host once.
    passed = collections.Counter((packet.into, packet.flow) for packet in capture.packets)
    assert passed and max(passed.values()) == 1
    assert all(max(seen.values()) == 1 for seen in broadcasts.received.values())
    said = fabric.controller_says()
    assert said.count("part of a loop, so it is governed by paths") == len(fabric.switches)
    assert "other_config:dp-desc" in said


def test_a_link_that_closes_a_loop_later_is_found(fabric):
    """Until then the bridges forward by themselves."""
    leaf, spine = "leaf2", "spine2"
    fabric.net.configLinkStatus(leaf, spine, "down")
    fabric.start_controller(wait=False)
    here, *others = fabric.hosts
    pings = [f"ping -c1 -W1 {fabric.address(other)}" for other in others]

    def all_reached():
        return all(" 0% packet loss" in fabric[here].cmd(ping) for ping in pings)

    assert until(all_reached, 60)
    assert {each["way"] for each in fabric.rest("switches")} == {"normal"}
    fabric.net.configLinkStatus(leaf, spine, "up")
    fabric[here].cmd("ping -b -c1 -W1 10.255.255.255")  # it circles
    assert until(lambda: {each["way"] for each in fabric.rest("switches")} == {"paths"}, 60)
    fabric.wait_until_settled()
    assert until(all_reached)
