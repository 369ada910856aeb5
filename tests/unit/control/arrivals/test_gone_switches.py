"""Of a switch that has gone nothing is kept; of one that may come back, everything."""

from __future__ import annotations

import gc
import weakref

import pytest

from fairq_ryu.channel.queue_depth import UNMEASURED, QueueDepth
from fairq_ryu.control.arrivals.gone_switches import GoneSwitches
from fairq_ryu.model import PortKey
from fairq_ryu.port_settings import PortSettings
from tests.support.flownet import B
from tests.support.site import Site


class Network(Site):
    """The site, whose bridge has disconnected and is forgotten; the agent stays connected."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = GoneSwitches(self.fabric, self.windows, self.flows)

    def bridge_leaves(self) -> None:
        self.fabric.bridge_disconnected(self.bridge)
        self.fabric.bridge_forgotten(self.bridge.id)


@pytest.fixture
def site():
    return Network()


def unmeasured(site: Network) -> None:
    """The agent reports a queue that cannot be measured, of a port that it has not announced."""
    record = QueueDepth(9, 0, 0, 0, UNMEASURED, 0, 0, 0, 0)
    assert not record.measured
    site.windows._ungoverned.not_governed(PortKey(1, 9), record)


KEPT = {
    "names": lambda site: site.windows.name_ports_of(1, 0.1),
    "a queue": lambda site: site.sample(B, 0.2),
    "an unmeasured queue": unmeasured,
    "a list of flows": lambda site: site.flows.list_anew(1, 0.1),
    "settings": lambda site: site.fabric.port_settings(1, {2: PortSettings(tag=7)}),
}


@pytest.mark.parametrize("what", KEPT)
def test_nothing_is_kept_of_an_agent_that_connects_once(site, what):
    """Any peer can say that it is the agent of any bridge."""
    site.bridge_leaves()
    site.windows.agent_disconnected(site.link)
    site.gone.forget()
    assert site.gone.kept() == set()
    site.connect_agent()
    KEPT[what](site)
    assert site.gone.kept() == set()  # it is connected
    site.gone.forget()
    site.windows.agent_disconnected(site.link)
    assert site.gone.kept() == {1}
    version = site.fabric.topology.version
    site.gone.forget()
    assert site.gone.kept() == set()
    # The VLANs of the network have changed.
    assert (site.fabric.topology.version > version) == (what == "settings")


def test_of_agents_that_come_and_go_no_connection_is_kept(site):
    """Any peer can be the agent of ever new bridges."""
    site.bridge_leaves()
    site.windows.agent_disconnected(site.link)
    site.gone.forget()
    site.connect_agent()
    kept = weakref.ref(site.link.far_queues)
    site.windows.agent_disconnected(site.link)
    assert site.gone.kept() == {1}
    site.gone.forget()
    site.link = None
    gc.collect()
    assert kept() is None


def test_a_switch_with_flows_is_kept_until_they_have_ended(site):
    """When its agent is back, its windows are installed again."""
    site.open()
    site.windows.name_ports(0.1)
    site.bridge_leaves()
    site.windows.agent_disconnected(site.link)
    site.gone.forget()
    assert site.gone.kept() == {1} and site.windows.busy(1)
    site.reset(now=1.0)
    site.gone.forget()
    assert site.gone.kept() == set()


def test_a_bridge_that_may_come_back_keeps_its_ports(site):
    site.windows.name_ports(0.1)
    site.fabric.bridge_disconnected(site.bridge)
    site.windows.agent_disconnected(site.link)
    site.gone.forget()
    assert len(site.windows.engine.ports_of(1)) == 3


def test_a_port_that_is_added_again_keeps_its_name(site):
    """Its bridge is away, and cannot name it."""
    site.windows.name_ports(0.1)
    site.windows.port_removed(B)
    assert B in site.windows.engine.ports_of(1)


def test_of_a_bridge_that_another_controller_owns_nothing_is_kept_at_once(site):
    """Not even its connections: the other one knows them from now on."""
    site.open()
    site.windows.name_ports(0.1)
    site.fabric.bridge_disconnected(site.bridge)
    site.windows.agent_disconnected(site.link)
    assert site.fabric.topology.knows(1) and site.flows.has_flows(1)
    site.windows.apply(site.flows.hand_over(1), 0.3)
    assert not site.windows.busy(1)
    site.gone.taken_over(1)
    assert not site.fabric.topology.knows(1)
    assert site.gone.kept() == set() and len(site.flows) == 0
