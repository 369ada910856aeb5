"""The queue laws, compiled for the host once."""

from __future__ import annotations

import ctypes

import pytest

from fairq_ryu.agent.layout import BPF_DIR
from tests.support.host_queue_laws import build


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build(BPF_DIR, tmp_path_factory.mktemp("queue_laws"))
