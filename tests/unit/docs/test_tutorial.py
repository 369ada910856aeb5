"""The program of docs/tutorial.md, on this machine alone."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from pathlib import Path

import pytest

from fairq_ryu.experiments.free_ports import free_port

FILE = Path(__file__).resolve().parents[3] / "docs/tutorial/burst.py"


@pytest.fixture
def burst():
    spec = importlib.util.spec_from_file_location("burst", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def fetched(burst, port, hosts):
    serving = asyncio.create_task(burst.serve(port))
    try:
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)
        return await burst.burst(hosts, port)
    finally:
        serving.cancel()


def test_a_burst_fetches_every_answer(burst):
    times = asyncio.run(fetched(burst, free_port(), ["127.0.0.1", "127.0.0.1"]))
    assert len(times) == 2 * burst.CONNECTIONS
    assert times == sorted(times)


def test_an_answer_that_is_cut_short_is_an_error(burst, monkeypatch):
    async def short(_reader, writer):
        writer.write(bytes(burst.ANSWER_BYTES - 1))
        writer.close()

    monkeypatch.setattr(burst, "_answer", short)
    with pytest.raises(OSError, match="11499 bytes of 11500"):
        asyncio.run(fetched(burst, free_port(), ["127.0.0.1"]))


def test_other_commands_are_refused(burst):
    with pytest.raises(SystemExit, match="usage"):
        asyncio.run(burst.main(["fetch"]))
