"""Fixtures of the agent's tests: an OpenFlow server over a datapath without eBPF, and a controller's end."""

from __future__ import annotations

import pytest

from fairq_ryu.agent.openflow_server import OpenFlowServer
from tests.support.agent_peer import Peer
from tests.support.fakes import FakeDatapath


@pytest.fixture
def data() -> FakeDatapath:
    return FakeDatapath(1, 2)


@pytest.fixture
def switch(data: FakeDatapath) -> OpenFlowServer:
    return OpenFlowServer("s1", 0x1234, data, rule_capacity=8)


@pytest.fixture
def peer(switch: OpenFlowServer) -> Peer:
    return Peer(switch)
