"""A leaf-spine whose links, switches and controllers fail and recover while there is traffic."""

import contextlib
import time

import pytest

from tests.support.capture import by_flow, links_of, reverse
from tests.support.fabric import carrier, network
from tests.support.lab import output
from tests.support.traffic import Bulk, drive, drive_until, wait_until_reachable

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
# A lost segment is retransmitted after 0.2, 0.6, 1.4, 3, 6.2 and 12.6 s. With a path within a second the
# third of these arrives; on a machine that is busy, a later one. Without a new path none does.
STALL = 12.6 + 0.4


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    from mininet_topos.leaf_spine import LeafSpineTopo

    with network(tmp_path_factory.mktemp("changes"), LeafSpineTopo(leaves=2, spines=2, hosts=2)) as made:
        yield made


@pytest.fixture
def fabric(net):
    net.start_controller()
    wait_until_reachable(net)
    yield net
    net.end_controller()


@pytest.fixture
def bulks(fabric):
    """Four transfers in each direction, two on every path."""
    with contextlib.ExitStack() as stack:
        made = []
        for source, target in (("h1", "h3"), ("h4", "h2")):
            for turn in range(4):
                # The least significant bit of a port is not used for the choice of a path.
                made.append(Bulk(fabric, source, target, sport=40000 + 2 * turn, port=6000 + turn))
                stack.callback(made[-1].close)
        drive(made, 1)
        yield made


def crossing(packets, flows, where):
    """The flows that pass a link of which one end begins with ``where``."""
    seen = by_flow(packets)
    return {
        flow
        for flow in flows
        if any(name.startswith(where) for link in links_of(seen[flow]) for name in link)
    }


def links_between(packets, since, until, flow):
    part = [packet for packet in packets if since <= packet.time < until]
    seen = by_flow(part)
    assert links_of(seen[flow]) == links_of(seen[reverse(flow)])
    return links_of(seen[flow])


def resumed(bulks, since):
    """Whether each transfer has received data a while after ``since``, by a monotonic clock."""
    reached = []
    for bulk in bulks:
        before = [total for at, total in bulk.samples if at <= since + 0.1]
        reached.append(bulk.total > before[-1])
    return all(reached)


def down_and_up(fabric, bulks, where, down, up):
    """A link or switch fails and recovers: flows on it continue on another path and stay there; the others
    keep their paths.
    """
    with fabric.capture("tcp") as capture:
        began = time.time()
        drive(bulks, 0.5)
        moment, clock = time.monotonic(), time.time()
        down()
        failed = time.monotonic()
        assert drive_until(bulks, lambda: time.monotonic() > failed + 0.2 and resumed(bulks, failed), STALL)
        drive(bulks, 0.7)
        returned = time.time()
        up()
        back = lambda: len(fabric.rest("links")) == len(fabric.links)  # noqa: E731
        assert drive_until(bulks, back, 60), fabric.controller_says()
        late = time.time()
        drive(bulks, 1)
    flows = {bulk.flow: bulk for bulk in bulks}
    hit = crossing([packet for packet in capture.packets if packet.time < clock], flows, where)
    assert hit and hit != set(flows)
    stalls = {flow: round(bulk.stall(moment), 2) for flow, bulk in flows.items()}
    elsewhere = max(stalls[flow] for flow in flows if flow not in hit)
    print("stalls", {flow: stalls[flow] for flow in hit}, "elsewhere", elsewhere)
    moved = [flow for flow, _ in fabric.moves()]
    assert sorted(min(flow, reverse(flow)) for flow in moved) == sorted(
        min(flow, reverse(flow)) for flow in hit
    )
    for flow in flows:
        before = links_between(capture.packets, began, clock, flow)
        after = links_between(capture.packets, returned - 0.5, returned, flow)
        assert (before != after) == (flow in hit)
        assert links_between(capture.packets, returned, late + 9, flow) == after


def test_a_transfer_survives_a_link(fabric, bulks):
    name = "leaf1-eth3"
    down_and_up(fabric, bulks, name, lambda: carrier(name, False), lambda: carrier(name, True))


def test_transfers_survive_a_spine_whose_ports_all_go_down(fabric, bulks):
    ports = ["spine1-eth1", "spine1-eth2"]
    down_and_up(
        fabric,
        bulks,
        "spine1-",
        lambda: [carrier(port, False) for port in ports],
        lambda: [carrier(port, True) for port in ports],
    )


def test_transfers_survive_a_spine_whose_bridge_disappears(fabric, bulks):
    def come_back():
        spine = fabric["spine1"]
        spine.stop(deleteIntfs=False)
        spine.start([])
        output("ovs-vsctl", "set-controller", "spine1", f"tcp:127.0.0.1:{fabric.port}")

    down_and_up(fabric, bulks, "spine1-", lambda: output("ovs-vsctl", "del-br", "spine1"), come_back)
