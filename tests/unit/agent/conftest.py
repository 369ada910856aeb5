"""Fixtures of the agent's tests: an OpenFlow server over a datapath without eBPF, a controller's end, and
the C code of queues.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.openflow_server import OpenFlowServer
from tests.support.agent_peer import Peer
from tests.support.fakes import FakeDatapath

_QUEUES = Path(__file__).parents[2] / "support/host_backlog/backlog.c"


@pytest.fixture(scope="session")
def host_queues(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The C code of the programs about backlogs and virtual queues, compiled for the host."""
    found = tmp_path_factory.mktemp("backlog") / "backlog.so"
    checks = ["-fsanitize=undefined,unsigned-shift-base", "-fsanitize-trap=all"]
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", *checks, "-shared", "-fPIC", f"-I{layout.BPF_DIR}"]
    subprocess.run(["clang", *flags, "-o", str(found), str(_QUEUES)], check=True)
    loaded = ctypes.CDLL(str(found))
    loaded.host_backlog.restype, loaded.host_byte_ns.restype = ctypes.c_uint32, ctypes.c_uint64
    loaded.host_virtual_arrival.restype = None
    return loaded


@pytest.fixture
def data() -> FakeDatapath:
    return FakeDatapath(1, 2)


@pytest.fixture
def switch(data: FakeDatapath) -> OpenFlowServer:
    return OpenFlowServer("s1", 0x1234, data, rule_capacity=8)


@pytest.fixture
def peer(switch: OpenFlowServer) -> Peer:
    return Peer(switch)
