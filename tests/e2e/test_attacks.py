"""A host that forges and floods: no host, link or connection of others is harmed."""

import math
import time

import pytest

from fairq_ryu.control.paths.fabric_controller import DISCOVERY_TIME
from fairq_ryu.packet import headers
from mininet_topos.patience import patient
from tests.support.attacks import Asker, Flood, Taps, false_claims, segments
from tests.support.fabric import network
from tests.support.lab import until
from tests.support.traffic import Bulk, wait_until_reachable

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    """h1 and h2 are behind one leaf, h3 and h4 behind the other."""
    from mininet_topos.leaf_spine import LeafSpineTopo

    with network(tmp_path_factory.mktemp("attacks"), LeafSpineTopo(leaves=2, spines=2, hosts=2)) as made:
        # A slow machine has the limit that its operator would set: with the kernel datapath, copies beyond
        # what Open vSwitch can handle are in the way of the first packets of all connections.
        made.start_controller(f"[fairq_ryu]\npacket_in_rate = {round(10_000 / patient(1))}\n")
        wait_until_reachable(made)
        # Hosts that were seen while a bridge got its rules may have been behind it, so they do not protect
        # their ports from a link. Each is seen again later.
        time.sleep(DISCOVERY_TIME)
        made.forget_neighbours()
        wait_until_reachable(made)
        yield made


def known(fabric):
    """What the controller believes of the network: its hosts, links and ports, a string each."""
    return {
        *(f"host {each['mac']} at {each['at']}: {each['addresses'][:1]}" for each in fabric.rest("hosts")),
        *(f"link {each['a']} {each['b']}" for each in fabric.rest("links")),
        *(f"port {each['dpid']} {each['port']}: {each['role']}" for each in fabric.rest("ports")),
    }


def changed(before, after):
    """What is missing, and what is new."""
    return sorted(before - after), sorted(after - before)


def test_forged_frames_and_floods_through_one_port_harm_nobody(fabric):
    """h2 attacks, and h4 helps it with LLDP; h1 sends to h3 and h3 asks for h1 by ARP."""
    before = known(fabric)
    bulk, asker, taps = Bulk(fabric, "h1", "h3"), Asker(fabric, "h3", "h1"), Taps(fabric, "h2", "h4")
    began = time.monotonic()
    floods = [
        Flood(fabric, "h2", frames, rate / patient(1), 3.0)
        for frames, rate in (
            (segments(fabric, "h2", "h3", headers.RST), 4_000),
            (segments(fabric, "h2", "h3", headers.SYN), 1_000),
            (false_claims(fabric, "h2", ["h1", "h3", "h4"]), 600),
        )
    ]
    seen = []
    while any(flood.running() for flood in floods):
        for each in (bulk, asker, taps):
            each.step()
        if time.monotonic() - began > len(seen):
            seen.append(known(fabric))
        time.sleep(0.002)
    assert all(flood.rate() for flood in floods) and taps.carried
    assert until(lambda: asker.step(math.inf) or len(asker.answers) == asker.asked)
    assert asker.asked and {mac for _, mac in asker.answers} == {asker.mac}
    assert [changed(before, each) for each in [*seen, known(fabric)]] == [([], [])] * (len(seen) + 1)
    during = [total for at, total in bulk.samples if at >= began]
    assert during[-1] > during[0]
    # They would have been believed: the controller has ignored them for these reasons. A slow machine may
    # have had no time for them during the floods.
    claims = Flood(fabric, "h2", false_claims(fabric, "h2", ["h1", "h3", "h4"]), 20, 3.0)
    for reason in ("one of these ports has hosts", "not believed"):
        heard = until(lambda reason=reason: taps.step() or reason in fabric.controller.text)
        assert heard, (reason, fabric.controller.text)
    assert claims.rate()
    assert changed(before, known(fabric)) == ([], [])
    for each in (bulk, asker, taps):
        each.close()
