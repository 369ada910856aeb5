"""Hosts as the REST interface and the live page show them, beside the switches that they are behind."""

from types import SimpleNamespace

from fairq_ryu.apps.view import FabricView
from fairq_ryu.model import PortKey
from tests.unit.site import CLIENT_MAC, SERVER_MAC, Site


def test_hosts_are_listed_beside_switches():
    site = Site()
    site.network.hosts.seen(SERVER_MAC, PortKey(1, 2), "10.0.0.2")
    site.network.hosts.seen(CLIENT_MAC, PortKey(1, 1), "10.0.0.1")
    controller = SimpleNamespace(network=site.network, windows=site.windows)
    assert FabricView(controller).hosts() == [
        {"mac": CLIENT_MAC, "at": [f"{1:016x}", 1], "addresses": ["10.0.0.1"]},
        {"mac": SERVER_MAC, "at": [f"{1:016x}", 2], "addresses": ["10.0.0.2"]},
    ]
