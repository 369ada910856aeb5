"""Leaf-spine and fat-tree under our controller: every segment of a connection takes the same links."""

import collections
import contextlib
import functools
import random
import time

import pytest

from fairq_ryu.openflow import pipeline
from tests.support.capture import FIN, SYN, UDP, by_flow, links_of, reverse
from tests.support.fabric import network
from tests.support.lab import output, until
from tests.support.traffic import Conversations, Echoes, datagrams, wait_until_reachable

pytestmark = [pytest.mark.root, pytest.mark.timeout(400)]
FLOWS = 160
DATA, ANSWER = 9_000, 6_000  # bytes each way, and the same again


def leaf_spine():
    from mininet_topos.leaf_spine import LeafSpineTopo

    return LeafSpineTopo(leaves=2, spines=2, hosts=8)


def fat_tree():
    from mininet_topos.fat_tree import FatTreeTopo

    return FatTreeTopo(k=4)


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    """The network of each topology. Their switches have different names, so both may be there. Paths need no
    agents, and those of the twenty switches of the fat tree need long to start.
    """

    def make(topology):
        agent = None if topology is fat_tree else ""
        return made.enter_context(network(tmp_path_factory.mktemp("fabric"), topology(), agent))

    with contextlib.ExitStack() as made:
        yield functools.cache(make)


@pytest.fixture
def fabric(request, networks):
    net = networks(request.param)
    yield net
    net.end_controller()


def longest_path(fabric):
    """Links between switches on the longest of the shortest paths."""
    return 2 if "leaf1" in fabric.switches else 4


def uplinks(fabric, flows):
    """How many flows each edge switch has on each of its uplinks."""
    edge = {fabric.switch_of(host) for host in fabric.hosts}
    found = collections.defaultdict(collections.Counter)
    for links in flows.values():
        for link in links:
            for name in link:
                switch = name.rpartition("-eth")[0]
                if switch in edge:
                    found[switch][link] += 1
    return found


def wait_until_pinned(fabric, flows):
    """Every switch of every path has the rules of the connection, and forwards by them."""
    on_paths = 6  # rules of a connection: both directions, on a leaf, a spine and a leaf
    assert until(lambda: len(fabric.pinned()) == on_paths * len(flows), 30, 0.5), len(fabric.pinned())
    output("ovs-appctl", "revalidator/wait")


def wait_until_delivered(fabric):
    """Every switch has rules to every host, and forwards by them. An echo arrives before: it is flooded where
    its host is not known.
    """
    addresses = {fabric[host].MAC() for host in fabric.hosts}

    def unknown():
        for switch in fabric.switches:
            rules = " ".join(fabric.rules(switch, pipeline.DESTINATION))
            if not all(f"dl_dst={each}" in rules for each in addresses):
                return switch
        return None

    assert until(lambda: unknown() is None, 30, 0.5), f"{unknown()}: {fabric.controller_says()}"
    output("ovs-appctl", "revalidator/wait")


def is_path(links, hops):
    """Whether the links are one path between two switches and nothing else."""
    ends = collections.Counter(name.rpartition("-eth")[0] for link in links for name in link)
    return len(links) in hops and sorted(ends.values()) == [1, 1] + [2] * (len(links) - 1)


def spread_evenly(fabric, flows, limit):
    """Whether all uplinks of the edge switches are used and none has more than ``limit`` times its fair
    share.
    """
    for switch, links in uplinks(fabric, flows).items():
        every = [link for link in fabric.links if any(n.startswith(f"{switch}-") for n in link)]
        fair = sum(links.values()) / len(every)
        for link in every:
            assert fair / limit / 2 < links[link] < fair * limit, (switch, links)


def across(fabric, count):
    """``count`` pairs of hosts of different edge switches; every host is in the same number of pairs."""
    pairs = fabric.pairs()
    stride = 7  # prime to the number of pairs: neighbours in the list share a host
    return [pairs[place * stride % len(pairs)] for place in range(count)]


@pytest.mark.parametrize(
    ("fabric", "syn", "choice", "port"),
    [
        (leaf_spine, "copy", "hash", 2_000),
        (leaf_spine, "hold", "hash", 12_000),
        (leaf_spine, "copy", "least-loaded", 22_000),
        # More and longer paths, by the same code.
        (fat_tree, "copy", "hash", 2_000),
    ],
    indirect=["fabric"],
)
def test_every_segment_of_a_connection_passes_the_same_links(fabric, syn, choice, port):
    fabric.start_controller(f"[fairq_ryu]\nsyn = {syn}\npath_choice = {choice}\n")
    wait_until_reachable(fabric)
    wait_until_delivered(fabric)
    with fabric.capture("tcp port 5001") as capture:
        # Ports as irregular as those of a kernel, but the same in each run, and so the same paths by their
        # hash.
        ports = random.Random(port).sample(range(port, port + 10_000), FLOWS)
        talks = Conversations(fabric, across(fabric, FLOWS), ports)
        talks.exchange(DATA, ANSWER)
        if (syn, choice) == ("copy", "least-loaded"):
            wait_until_pinned(fabric, talks.flows)
        settled = time.time()
        talks.exchange(DATA, ANSWER)
        talks.close()
    seen = by_flow(capture.packets)
    paths = {}
    for flow in talks.flows:
        there, back = seen[flow], seen[reverse(flow)]
        for packets, size in ((there, DATA), (back, ANSWER)):
            assert packets[0].flags & SYN
            assert any(packet.flags & FIN for packet in packets)
            # Every byte has passed every link of the path.
            # Sequence numbers begin anywhere, and wrap.
            ends = [packet.seq + packet.payload - packets[0].seq for packet in packets if packet.payload]
            assert max(end % (1 << 32) for end in ends) - 1 == 2 * size
        if (syn, choice) == ("copy", "least-loaded"):
            # The SYN was forwarded while the path was being chosen; the flow is moved once.
            there = [packet for packet in there if packet.time > settled]
            back = [packet for packet in back if packet.time > settled]
        assert links_of(there) == links_of(back), flow
        paths[flow] = links_of(there)
        assert is_path(paths[flow], {2, longest_path(fabric)}), (flow, paths[flow])
    spread_evenly(fabric, paths, 1.5)
    assert " refused a" not in fabric.controller.text


def reached(echoes, pairs, early):
    """Whether every host has sent a request and received its reply since the network was known."""
    return all(
        {key[:2] for key in seen if key[2] >= early} >= set(pairs)
        for seen in (echoes.questions, echoes.answers)
    )


@pytest.mark.parametrize("fabric", [fat_tree, leaf_spine], indirect=True)
def test_the_first_packets_after_start_arrive_once_and_do_not_loop(fabric):
    fabric.forget_neighbours()
    fabric.start_controller(wait=False)
    pairs = fabric.pairs(across=False)
    with fabric.capture() as capture, Echoes(fabric) as echoes:
        # From before the switches connect until long after the network is known.
        number = 0
        while not fabric.settled():
            echoes.ask(pairs, number)
            echoes.collect(0.2)
            number += 1
        early = number
        # Three rounds for every host; more if a busy machine has lost some.
        while number < early + 3 or (number < early + 150 and not reached(echoes, pairs, early)):
            echoes.ask(pairs, number)
            echoes.collect(0.3)
            number += 1
        datagram_rounds = 5
        arrived = datagrams(fabric, pairs, datagram_rounds)
        echoes.collect(1)
    assert max(echoes.questions.values()) == max(echoes.answers.values()) == 1
    # Once the network is known every host is reached; a busy machine may lose single packets.
    for seen in (echoes.questions, echoes.answers):
        assert {key[:2] for key in seen if key[2] >= early} == set(pairs)
    assert set(arrived.values()) == {1} and {key[:2] for key in arrived} == set(pairs)
    # No frame passes more links than the longest path has, except for those that were flooded; in a loop
    # there would be far more.
    sent = len(pairs) * (2 * number + datagram_rounds)
    assert len(capture.packets) < sent * len(fabric.links), len(capture.packets)
    copies = collections.Counter((p.flow, p.link, p.into) for p in capture.packets if p.protocol == UDP)
    assert max(copies.values()) <= datagram_rounds
