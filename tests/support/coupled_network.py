"""Hosts of tenants that send to receivers by one bottleneck, all over a delay, without Open vSwitch."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from subprocess import PIPE

from fairq_ryu.experiments.traffic import congestion
from fairq_ryu.experiments.traffic.namespaces import entered
from mininet_topos.delays import DelayLine
from mininet_topos.qdiscs import WIRE
from tests.switch.rig import run

MSS = 1448
_CHUNK = bytes(64 * 1024)
_NETWORK = "10.9.0"


@dataclass
class Namespace:
    """A network namespace, held by a process that waits."""

    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def run(self, *command: str) -> str:
        return run("nsenter", "-t", str(self.pid), "-n", *command)

    @classmethod
    @contextlib.contextmanager
    def made(cls) -> Iterator[Namespace]:
        process = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; read x"], stdin=PIPE, stdout=PIPE)
        try:
            assert process.stdout is not None and process.stdout.readline()
            yield cls(process)
        finally:
            process.communicate()


@dataclass
class Flow:
    """A connection that sends from its start on, ``size`` bytes or without end."""

    sock: socket.socket
    started: float
    size: int = 0
    received: int = 0
    ended: float = 0.0
    threads: list[threading.Thread] = field(default_factory=list)

    def window(self) -> int:
        """The congestion window, segments."""
        info = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        return int.from_bytes(info[80:84], "little")

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)
        self.sock.close()

    def wait(self, timeout: float) -> float:
        """Until its last byte has arrived; the time from its start, seconds."""
        self.threads[1].join(timeout)
        assert self.ended, f"{self.received} of {self.size} bytes have arrived"
        return self.ended - self.started


class CoupledNetwork:
    """``senders`` and ``receivers``: the round trip times of their links in ms, by name. ``buffer`` of the
    bottleneck in bytes.
    """

    def __init__(
        self,
        stack: contextlib.ExitStack,
        senders: Mapping[str, float],
        receivers: Mapping[str, float],
        rate_mbit: float,
        buffer: int,
    ) -> None:
        self.hosts: dict[str, Namespace] = {}
        self.addresses: dict[str, str] = {}
        left, right = [stack.enter_context(Namespace.made()) for _ in range(2)]
        run(
            "ip",
            "link",
            "add",
            "name",
            "trunk",
            "netns",
            str(left.pid),
            "type",
            "veth",
            "peer",
            "name",
            "far",
            "netns",
            str(right.pid),
        )
        self._set(left, "trunk")
        self._set(right, "far")
        for middle, inner in ((left, "trunk"), (right, "far")):
            middle.run("ip", "link", "add", "bridge", "type", "bridge")
            middle.run("ip", "link", "set", "dev", "bridge", "up")
            middle.run("ip", "link", "set", "dev", inner, "master", "bridge")
        rate = f"{int(rate_mbit * 1000)}kbit"
        left.run("tc", "qdisc", "add", "dev", "trunk", "root", "handle", "1:", "htb", "default", "1")
        left.run(
            "tc",
            "class",
            "add",
            "dev",
            "trunk",
            "parent",
            "1:",
            "classid",
            "1:1",
            "htb",
            "rate",
            rate,
            "burst",
            "3k",
            "cburst",
            "3k",
        )
        left.run(
            "tc",
            "qdisc",
            "add",
            "dev",
            "trunk",
            "parent",
            "1:1",
            "handle",
            "2:",
            "bfifo",
            "limit",
            str(buffer),
        )
        for middle, hosts in ((left, senders), (right, receivers)):
            for name, rtt in hosts.items():
                self._add(stack, middle, name, rtt)

    def _set(self, where: Namespace, name: str) -> None:
        where.run("ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off", "tx", "off")
        where.run("ip", "link", "set", "dev", name, "up")

    def _wire(self, host: Namespace) -> None:
        """Packets leave the host when they are sent: the bridge and the delay line pass on the sender's own
        packets, and TCP Small Queues would see the bottleneck's queue and hold back the rest.
        """
        inside = ["nsenter", "-t", str(host.pid), "-n"]
        done = subprocess.run(
            [*inside, "tc", "qdisc", "add", "dev", "eth0", "root", *WIRE.split()],
            capture_output=True,
            text=True,
            check=False,
        )
        assert not done.returncode or "qdisc kind is unknown" in done.stderr, done.stderr

    def _add(self, stack: contextlib.ExitStack, middle: Namespace, name: str, rtt: float) -> None:
        host = self.hosts[name] = stack.enter_context(Namespace.made())
        address = self.addresses[name] = f"{_NETWORK}.{len(self.hosts)}"
        if rtt:
            line = DelayLine(rtt)
            stack.callback(line.stop)
            line.connect(("eth0", host.pid), (name, middle.pid))
        else:
            run(
                "ip",
                "link",
                "add",
                "name",
                "eth0",
                "netns",
                str(host.pid),
                "type",
                "veth",
                "peer",
                "name",
                name,
                "netns",
                str(middle.pid),
            )
        self._set(host, "eth0")
        self._wire(host)
        self._set(middle, name)
        middle.run("ip", "link", "set", "dev", name, "master", "bridge")
        host.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
        host.run("sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")

    def flow(
        self, src: str, dst: str, control: str = "", size: int = 0, port: int = 0, pause: float = 0
    ) -> Flow:
        """Open a connection and send; ``control``: not the namespace's congestion control; ``port``: the
        receiver's; ``pause``: a segment each so many seconds.
        """
        with entered(self.hosts[dst].pid):
            listener = socket.create_server((self.addresses[dst], port))
        with entered(self.hosts[src].pid):
            sock = socket.socket()
        if control:
            congestion.choose(sock, control)
        flow = Flow(sock, time.monotonic(), size)
        sock.connect(listener.getsockname())
        served, _ = listener.accept()
        listener.close()
        flow.threads = [
            threading.Thread(target=_send, args=(flow, pause), daemon=True),
            threading.Thread(target=_receive, args=(flow, served), daemon=True),
        ]
        for thread in flow.threads:
            thread.start()
        return flow


def _send(flow: Flow, pause: float) -> None:
    left = flow.size or 1 << 60
    most = MSS if pause else len(_CHUNK)
    with contextlib.suppress(OSError):
        while left > 0:
            left -= flow.sock.send(_CHUNK[: min(left, most)])
            time.sleep(pause)
        flow.sock.shutdown(socket.SHUT_WR)


def _receive(flow: Flow, sock: socket.socket) -> None:
    with contextlib.suppress(OSError), sock:
        while data := sock.recv(1 << 16):
            flow.received += len(data)
        flow.ended = time.monotonic()


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness."""
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))
