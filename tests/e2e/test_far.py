"""The queue in a switch that is not ours, inferred from the receiver's bridge; real TCP, topology ``tor``.

Its port is slow and shallow. Datagrams that are dropped before the agent's filter are those of somebody else
behind the same port: they take the line, and nothing here counts them.
"""

from __future__ import annotations

import contextlib
import platform
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.agent import status
from fairq_ryu.agent.libbpf import BpfObject, load_library
from fairq_ryu.agent.programs.program import FAR_PRIORITY
from fairq_ryu.agent.tc import INGRESS, TcFilter
from fairq_ryu.far_queue import FAR
from mininet_topos.patience import patient
from mininet_topos.tor import TorTopo
from tests.support.fabric import network
from tests.support.lab import output, until

pytestmark = pytest.mark.root
# An emulated machine carries some 40 Mbit/s.
LINE = 50 if patient(1.0) == 1.0 else 20
BUFFER, SENDERS, LEASE = 125_000, 4, 2
PORT, TCP, UDP = "s1-eth1", 5001, 5002
SINK = """
import socket, sys, threading
server = socket.create_server(("", int(sys.argv[1])))
def read(connection):
    while connection.recv(1 << 16):
        pass
while True:
    threading.Thread(target=read, args=(server.accept()[0],), daemon=True).start()
"""
BULK = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
connection.settimeout(None)
while True:
    connection.sendall(bytes(1 << 16))
"""
DATAGRAMS = """
import socket, sys, time
address, rate = (sys.argv[1], int(sys.argv[2])), float(sys.argv[3]) * 1e6 / 8
sender, due = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), time.monotonic()
while True:
    sender.sendto(bytes(1400), address)
    due = max(due, time.monotonic() - 0.1) + 1466 / rate
    time.sleep(max(0, due - time.monotonic()))
"""


OTHERS = """
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>
SEC("classifier") int others(struct __sk_buff *skb)
{
	unsigned char protocol = 0;

	bpf_skb_load_bytes(skb, 23, &protocol, 1);
	return protocol == 17 ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}
char LICENSE[] SEC("license") = "GPL";
"""


class Site:
    """The network with its agent and its controller."""

    def __init__(self, fabric: Any) -> None:
        self.fabric = fabric
        self.receiver = fabric.address("r")

    @contextlib.contextmanager
    def running(self, host: str, program: str, *words: object) -> Iterator[None]:
        process = self.fabric[host].popen(sys.executable, "-c", program, *map(str, words))
        try:
            yield
        finally:
            process.kill()
            process.wait()

    @contextlib.contextmanager
    def bulk(self) -> Iterator[None]:
        """Each sender sends as fast as it may."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.running("r", SINK, TCP))
            time.sleep(0.5)
            for number in range(1, SENDERS + 1):
                stack.enter_context(self.running(f"h{number}", BULK, self.receiver, TCP))
            yield

    @contextlib.contextmanager
    def others(self, directory: Path, mbit: float) -> Iterator[None]:
        """Datagrams at that rate pass the hidden port, and are dropped before the agent's filter."""
        source, made = directory / "others.c", directory / "others.o"
        source.write_text(OTHERS)
        flags = ("-O2", "-g", "-target", "bpf", f"-I/usr/include/{platform.machine()}-linux-gnu")
        output("clang", *flags, "-c", str(source), "-o", str(made))
        library = load_library()
        program = BpfObject(library, made, {}, {})
        before = TcFilter(library, FAR_PRIORITY - 1)
        index = socket.if_nametoindex(PORT)
        before.attach(index, program.program_fd("others"), INGRESS)
        try:
            with self.running("h1", DATAGRAMS, self.receiver, UDP, mbit):
                yield
        finally:
            before.detach(index, INGRESS)
            program.close()

    @property
    def far(self) -> dict[str, Any]:
        """The row of the far queue."""
        rows = [row for row in self.fabric.rest("ports") if row["port"] == FAR | 1]
        return rows[0] if rows else {"virtual_rate_why": None}

    def windows(self) -> list[int]:
        """The windows that the senders have now, bytes."""
        shown = [self.fabric[f"h{number}"].cmd("ss -Htino") for number in range(1, SENDERS + 1)]
        return [int(window) for text in shown for window in re.findall(r" snd_wnd:(\d+)", text)]

    def events(self, kind: str) -> list[str]:
        return [each["message"] for each in self.fabric.rest("events", kind=kind)]

    def lost(self) -> int:
        """Packets that the hidden port has dropped, as tc counts them."""
        text = output("tc", "-s", "qdisc", "show", "dev", f"tor-eth{SENDERS + 1}")
        return sum(int(part.split("dropped ")[1].split(",")[0]) for part in text.split("Sent")[1:])


@contextlib.contextmanager
def site(directory: Path, line: str) -> Iterator[Site]:
    topo = TorTopo(n=SENDERS, rate=LINE, buffer=BUFFER)
    with network(directory, topo, f"[far_queues]\n{PORT} = {line}\n") as fabric:
        fabric.switches.remove("tor")  # it is none of ours
        fabric.start_controller(f"[fairq_ryu]\nway = windows\nlease = {LEASE}\n", wait=False, connect=False)
        made = Site(fabric)
        assert until(lambda: made.far["virtual_rate_why"] is not None), fabric.controller_says()
        yield made


def test_a_rate_that_nobody_says_is_found_when_the_hidden_queue_fills(tmp_path: Path) -> None:
    with site(tmp_path, f"buffer {BUFFER}") as here:
        row = here.far
        assert (row["virtual_rate_why"], row["line_bps"], row["rate_bps"]) == ("unknown", 0, 0)
        with here.bulk():
            assert until(lambda: here.far["line_bps"]), here.far
            assert 0.9 * LINE < here.far["line_bps"] / 1e6 < 1.1 * LINE
            assert until(lambda: here.far["pool_bytes"]), "its windows are lowered now"
            time.sleep(1)
            before = here.lost()
            time.sleep(4)
            assert before > 0 and here.lost() - before < before, "most were lost before the rate was known"
        assert here.events("rate")


def test_the_rate_is_what_others_leave_while_they_are_there(tmp_path: Path) -> None:
    """They take 40 % of the line."""
    with site(tmp_path, f"rate {LINE}mbit buffer {BUFFER}") as here, here.bulk():
        assert until(lambda: here.far["hidden_delay_s"])
        time.sleep(2)
        with here.others(tmp_path, 0.4 * LINE):
            assert until(lambda: here.far["virtual_rate_why"] == "others"), here.far
            assert until(lambda: here.far["virtual_rate_bps"] / 1e6 < 0.75 * LINE), here.far
            time.sleep(1)
            before = here.lost()
            time.sleep(4)
            lost = here.lost() - before
            assert here.far["virtual_rate_bps"] / 1e6 > 0.3 * LINE
            assert lost < 4 * LINE * 1e6 / 8 / 1500 / 100, "a part in a hundred"
        assert until(lambda: here.far["virtual_rate_bps"] / 1e6 > 0.9 * LINE), here.far
        assert until(lambda: any("ours again" in each for each in here.events("others")))


def test_its_windows_end_with_the_lease_when_the_agent_is_killed(tmp_path: Path) -> None:
    with site(tmp_path, f"rate {LINE}mbit buffer {BUFFER}") as here, here.bulk():
        switch = here.fabric["s1"]

        def lowered() -> bool:
            return len(found := here.windows()) == SENDERS and sum(found) <= BUFFER

        assert until(lowered), here.windows()
        (told,) = (port["far"] for port in status.ask("s1")["ports"] if port["far"])
        assert told["line"] == LINE * 125_000 and told["rate"] > 0 and told["why"] != "unknown"
        switch._agent_process.send_signal(signal.SIGKILL)
        time.sleep(2 * LEASE)
        # Nobody lowers windows any more: together they are larger than the buffer, which overflows.
        before = here.lost()
        assert until(lambda: sum(here.windows()) > BUFFER), here.windows()
        assert until(lambda: here.lost() > before)
        switch.stopAgent()
        switch.startAgent([])
        assert until(lowered), here.windows()
