"""Hosts' congestion controls in the kernel: connections between two namespaces, every n-th segment marked.

What is computed from marks is compared with the twin, window by window; both compute in integers.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from ctypes import c_uint32, c_uint64
from pathlib import Path
from subprocess import PIPE

import pytest

from fairq_ryu.agent.libbpf import BpfObject, load_library
from fairq_ryu.agent.tc import INGRESS, TcFilter
from fairq_ryu.experiments.hostcc.controls import OWN, PREFIX, HostControls, offered, refusal
from fairq_ryu.experiments.hostcc.hosts import in_use
from fairq_ryu.experiments.hostcc.layout import BPF_DIR
from fairq_ryu.experiments.traffic.namespaces import entered
from tests.support import host_controls as twin
from tests.support.documents import ROOT
from tests.support.lab import until
from tests.switch.rig import namespace, run

MSS = 1448
CHUNK = bytes(40 * MSS)
SENDER, RECEIVER = "10.9.0.1", "10.9.0.2"
OURS = {each.registered for each in OWN.values()}
HOUR_NS = 3600 * 10**9
EVERY, CAPABLE, MARKED, OTHERS = range(4)
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")  # of the first namespace only
_DELIVERED_AT = 192  # in struct tcp_info: tcpi_delivered, tcpi_delivered_ce
_RETRANSMITTED_AT = 100  # tcpi_total_retrans
_SSTHRESH_AT = 76  # tcpi_snd_ssthresh, tcpi_snd_cwnd
_SIOCOUTQ = 0x5411
LOADS_ALL = (
    "from fairq_ryu.experiments.hostcc.controls import HostControls, OWN, PREFIX; made = HostControls();"
    "made.provide([PREFIX + name for name in OWN]); print('ready', flush=True); input()"
)


def compile_for_bpf(name: str, directory: Path) -> Path:
    """A program of tests/support, compiled."""
    compiled = directory / f"{name}.bpf.o"
    flags = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-I/usr/include/{platform.machine()}-linux-gnu"]
    source = ROOT / f"tests/support/{name}.bpf.c"
    subprocess.run(["clang", *flags, f"-I{BPF_DIR}", "-c", str(source), "-o", str(compiled)], check=True)
    return compiled


class Wire:
    """A sender in this thread's namespace, a receiver in another, and the marker between."""

    def __init__(self, controls: HostControls, receiver: int, directory: Path) -> None:
        self.controls, self.receiver = controls, receiver
        compiled, lib = compile_for_bpf("ce_marker", directory), load_library()
        self._marker = BpfObject(lib, compiled, {})
        self._marks = self._marker.map("marks", c_uint32, c_uint64)
        # Where it arrives: what leaves is cut into segments after tc.
        with entered(receiver):
            TcFilter(lib, 1).attach(
                socket.if_nametoindex("s"), self._marker.program_fd("mark"), INGRESS, create=True
            )

    def count(self, which: int) -> int:
        return int(self._marks.get(c_uint32(which)).value)

    def mark(self, every: int) -> None:
        """From now on every n-th segment, counted from now."""
        for which, value in ((EVERY, every), (CAPABLE, 0), (MARKED, 0), (OTHERS, 0)):
            self._marks.set(c_uint32(which), c_uint64(value))

    def use(self, sender: str, receiver: str) -> None:
        """Set the default of both namespaces. Both are allowed already."""
        path = "/proc/sys/net/ipv4/tcp_congestion_control"
        run("sh", "-c", f"echo {sender} >{path}")
        run("nsenter", "-t", str(self.receiver), "-n", "sh", "-c", f"echo {receiver} >{path}")
        assert (in_use(os.getpid()), in_use(self.receiver)) == (sender, receiver)

    @contextlib.contextmanager
    def connection(self, size: int = 0, left_ns: int = 0) -> Iterator[socket.socket]:
        """A connection whose receiver reads everything; with ``left_ns`` it has ``size`` and a deadline."""
        with entered(self.receiver):
            listener = socket.create_server((RECEIVER, 0))
        sock = socket.socket()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind((SENDER, 0))
        port = listener.getsockname()[1]
        if left_ns:
            deadline_ns = time.monotonic_ns() + left_ns
            ours = sock.getsockname()[1]
            assert self.controls.announce(SENDER, RECEIVER, ours, port, size, deadline_ns)
        sock.connect((RECEIVER, port))
        served, _ = listener.accept()
        reader = threading.Thread(target=_read, args=(served,))
        reader.start()
        try:
            yield sock
        finally:
            sock.close()
            reader.join(10)
            listener.close()


def _read(sock: socket.socket) -> None:
    with sock:
        while sock.recv(1 << 20):
            pass


def send(sock: socket.socket, chunks: int = 1) -> None:
    """Send full segments, and wait until all are acknowledged."""
    for _ in range(chunks):
        sock.sendall(CHUNK)
        assert until(lambda: not struct.unpack("i", fcntl.ioctl(sock, _SIOCOUTQ, bytes(4)))[0], step=0.0002)


@pytest.fixture(scope="module")
def wire(machine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    if machine:
        pytest.fail(f"these tests need {machine}", pytrace=False)
    why = refusal()
    if why is not None:
        pytest.skip(str(why))
    with namespace(), contextlib.ExitStack() as stack:
        other = subprocess.Popen(["unshare", "-n", "sh", "-c", "echo; read x"], stdin=PIPE, stdout=PIPE)
        stack.callback(lambda: (other.communicate(), None))
        assert other.stdout is not None and other.stdout.readline()
        run("ip", "link", "add", "c", "type", "veth", "peer", "name", "s", "netns", str(other.pid))
        for pid, name, address in ((str(os.getpid()), "c", SENDER), (str(other.pid), "s", RECEIVER)):
            run("nsenter", "-t", pid, "-n", "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off")
            run("nsenter", "-t", pid, "-n", "ip", "address", "add", f"{address}/24", "dev", name)
            run("nsenter", "-t", pid, "-n", "ip", "link", "set", name, "up")
        # In newer versions of Linux a receiver that reads puts off the ACKs of what arrives meanwhile, even
        # where a change of marks asks for one: segments with and without a mark then share an ACK.
        defer = "/proc/sys/net/ipv4/tcp_backlog_ack_defer"
        run("nsenter", "-t", str(other.pid), "-n", "sh", "-c", f"[ ! -e {defer} ] || echo 0 >{defer}")
        # On one processor, so that no ACK overtakes another: the sender would count both as the later one.
        processors = os.sched_getaffinity(0)
        stack.callback(os.sched_setaffinity, 0, processors)
        os.sched_setaffinity(0, {min(processors)})
        controls = HostControls()
        stack.callback(controls.close)
        controls.provide(["reno", *(PREFIX + name for name in OWN)])  # also where the kernel has its own
        yield Wire(controls, other.pid, tmp_path_factory.mktemp("marker"))
    assert not OURS.intersection(ALLOWED.read_text().split())


def test_alpha_of_a_fixed_pattern_of_marks_is_the_twin_s(wire: Wire) -> None:
    wire.use("fairq_dctcp", "fairq_dctcp")
    wire.mark(0)
    with wire.connection() as sock:
        windows = 0
        for every, chunks in ((0, 6), (1, 3), (4, 20), (0, 3)):
            send(sock)  # ends the last window of the pattern before
            wire.mark(every)
            for _ in range(chunks):
                send(sock)
                told = wire.controls.alpha("fairq_dctcp", sock.fileno())
                assert told.windows > windows and told.fallback == 0
                windows = told.windows
                assert told.alpha == twin.alpha(told.previous, told.delivered, told.marked)
                if every == 0:
                    assert told.marked == 0 and told.alpha == told.previous - told.previous // 16
                if every == 1:
                    assert told.marked == told.delivered > 0
        assert told.cuts > 0 and told.cut_power == told.cut_alpha >> 5


def test_every_mark_comes_back(wire: Wire) -> None:
    """The receiver's echo: the sender counts the segments that were marked. A tail loss probe on a busy
    machine may carry a mark a second time.
    """
    wire.use("fairq_dctcp", "fairq_dctcp")
    for every in (1, 3, 7):
        wire.mark(every)
        with wire.connection() as sock:
            send(sock, 10)
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            counted, marked = struct.unpack_from("=II", info, _DELIVERED_AT)[1], wire.count(MARKED)
            assert marked == wire.count(CAPABLE) // every > 0
            assert abs(counted - marked) <= struct.unpack_from("=I", info, _RETRANSMITTED_AT)[0]


@pytest.mark.parametrize(
    ("size", "left_ns", "imminence"),
    [(0, 0, 128), (1 << 40, HOUR_NS // 3600, 256), (len(CHUNK) * 9, HOUR_NS, 64), (1 << 40, 1, 128)],
    ids=["none", "late", "early", "missed"],
)
def test_a_deadline_decides_how_much_is_cut(wire: Wire, size: int, left_ns: int, imminence: int) -> None:
    wire.use("fairq_d2tcp", "fairq_d2tcp")
    wire.mark(0)
    with wire.connection(size, left_ns) as sock:
        send(sock, 2)
        wire.mark(5)
        send(sock, 2)
        told = wire.controls.alpha("fairq_d2tcp", sock.fileno())
        assert told.cuts > 0 and 0 < told.cut_alpha < twin.MAX_ALPHA
        assert told.cut_power == twin.power(told.cut_alpha, imminence)


def test_without_ecn_it_is_reno(wire: Wire) -> None:
    wire.use("fairq_dctcp", "reno")  # which every namespace may use
    run("nsenter", "-t", str(wire.receiver), "-n", "sh", "-c", "echo 0 >/proc/sys/net/ipv4/tcp_ecn")
    wire.mark(1)
    with wire.connection() as sock:
        send(sock, 2)
        assert wire.controls.alpha("fairq_dctcp", sock.fileno()).fallback == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0] == b"reno"
        assert wire.count(OTHERS) > 0 and wire.count(MARKED) == 0
    run("nsenter", "-t", str(wire.receiver), "-n", "sh", "-c", "echo 2 >/proc/sys/net/ipv4/tcp_ecn")


def test_hstcp_carries_data(wire: Wire) -> None:
    wire.use("fairq_hstcp", "fairq_hstcp")
    wire.mark(0)
    with wire.connection() as sock:
        send(sock, 5)
        assert (
            sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).split(b"\0")[0] == b"fairq_hstcp"
        )
    assert wire.count(OTHERS) > 0 and wire.count(CAPABLE) == 0


def test_a_reduction_that_the_kernel_has_left_out_is_made_late_and_counted(
    wire: Wire, tmp_path: Path
) -> None:
    """Here the program answers what a kernel that leaves it out finds on its stack."""
    compiled = compile_for_bpf("left_out", tmp_path)
    control = BpfObject(load_library(), compiled, {}, operations="control")
    count = control.map("left_out", c_uint32, c_uint64)
    try:
        control.register("control")
        wire.use("fairq_left_out", "fairq_left_out")
        wire.mark(0)
        with wire.connection() as sock:
            send(sock)
            assert count.get(c_uint32(0)).value == 0
            wire.mark(5)
            send(sock, 4)
            assert count.get(c_uint32(0)).value > 0
            # The threshold of a reduction of which no ACK has come yet is the stack's; one without is ours.
            wire.mark(0)
            send(sock, 2)
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            threshold, window = struct.unpack_from("=II", info, _SSTHRESH_AT)
            assert threshold < 1000 and window < 1000
        wire.use("fairq_dctcp", "fairq_dctcp")
    finally:
        control.close()


def test_nothing_is_left(wire: Wire) -> None:
    """Not by `close`, with a connection that uses it still open, and not after SIGKILL."""
    wire.use("fairq_dctcp", "fairq_dctcp")
    before = [name for name in offered() if name not in OURS]
    with wire.connection() as sock:
        wire.controls.close()
        assert offered() == before
        send(sock)
    process = subprocess.Popen([sys.executable, "-c", LOADS_ALL], cwd=ROOT, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    assert len(offered()) == len(before) + len(OURS)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert until(lambda: offered() == before)
