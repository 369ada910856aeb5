"""The bench of a bulk flow beside connections that send little."""

import pytest

from bench import beside


@pytest.mark.parametrize("governed", [False, True])
@pytest.mark.parametrize("network", beside.NETWORKS[:1])
def test_a_bulk_flow_alone_fills_the_port(network, governed):
    port = beside._port(network, governed)
    bulk = [port.start(port.now)]
    port.run(port.now + 50_000_000)
    assert beside.goodput(port, bulk, 20_000_000) > 0.9
