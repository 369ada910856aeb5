"""The cost of REST requests for a controller with 10,000 flows in its table."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from bench import figures

ROOT = Path(__file__).resolve().parents[1]
FLOWS = 10_000
SECONDS = 5.0
RATE = 1000
CONNECTIONS = 8
PAGES = {
    "a page of 100 flows": "limit=100",
    "a page of 1,000 flows": "limit=1000",
    "1,000 flows with filters": "limit=1000&src=10.0.0.1&state=established&port=1:2",
    "the last 100 flows": "limit=100&offset=9900",
}


def main() -> None:
    """Print the figures."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.support.restsite", "0", f"flows={FLOWS}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        before = _cpu(process.pid)
        time.sleep(SECONDS)
        idle = (_cpu(process.pid) - before) / SECONDS
        before, started = _cpu(process.pid), time.monotonic()
        asked = load(url, SECONDS, RATE)
        busy = (_cpu(process.pid) - before) / (time.monotonic() - started)
        print(f"rest: {asked / (time.monotonic() - started):.0f} requests of /v1/ports a second")
        print(f"rest: {(busy - idle) / RATE * 1e6:.0f} us of processor time for each")
        started = time.monotonic()
        asked = load(url, SECONDS, None)
        print(f"rest: {asked / (time.monotonic() - started):.0f} a second as fast as it goes")
        for name, query in PAGES.items():
            times = [_ask(f"{url}/v1/flows?{query}") * 1000 for _ in range(15)]
            print(f"rest: {name} of {FLOWS:,} in {figures.spread(times, '.1f')} ms")
    finally:
        process.kill()
        process.wait()


def _ask(url: str) -> float:
    started = time.monotonic()
    with urllib.request.urlopen(url, timeout=30) as answer:
        data = answer.read()
    took = time.monotonic() - started
    json.loads(data)
    return took


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(url: str, seconds: float, rate: int | None) -> int:
    """Send requests on a few persistent connections; ``rate`` in requests per second (None: as fast as
    possible). Returns the number of answers.
    """
    host, _, port = url.removeprefix("http://").partition(":")
    request = f"GET /v1/ports HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: */*\r\n\r\n".encode()
    open_ = [socket.create_connection((host, int(port)), 10) for _ in range(CONNECTIONS)]
    done, started = 0, time.monotonic()
    while time.monotonic() - started < seconds:
        for connection in open_:
            connection.sendall(request)
        for connection in open_:
            _read(connection)
        done += len(open_)
        if rate is not None:
            time.sleep(max(0.0, started + done / rate - time.monotonic()))
    for connection in open_:
        connection.close()
    return done


def _read(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"the controller answers {head[:100]!r}")
    (length,) = (int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:"))
    while len(body) < length:
        body += connection.recv(1 << 16)
