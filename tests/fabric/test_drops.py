"""Four counts of what a full port loses agree: those of the program that drops single packets, of tc, of
captures before and behind the queue, and of the senders' TCP.
"""

import contextlib
import selectors
import signal
import socket
import struct
import subprocess
import time
from collections import Counter

import pytest

from fairq_ryu.agent.programs.taildrop import start_taildrop
from fairq_ryu.experiments.measure.queues import losses
from tests.support.capture import FIN, SYN, frames
from tests.support.lab import end, until
from tests.support.wires import inside

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
BYTES = 400_000  # of each connection
CONNECTIONS = 4  # of each host
PORT = 5001
_CHUNK = bytes(1 << 16)
_FIN_WAIT2 = 5


class Sniffer:
    """The TCP packets for :data:`PORT` that pass interfaces in one direction (tcpdump's `-Q`)."""

    def __init__(self, stack, folder, interfaces, direction):
        self._running = []
        for name in interfaces:
            log = folder / f"{name}.log"
            command = ["tcpdump", "-i", name, "-Q", direction, "-n", "-s", "128", "-B", "16384", "-Z", "root"]
            command += ["--immediate-mode", "-U", "-w", str(folder / f"{name}.pcap"), f"tcp dst port {PORT}"]
            with log.open("w") as output:
                process = subprocess.Popen(command, stderr=output, stdin=subprocess.DEVNULL)
            stack.callback(end, process)
            self._running.append((process, log, folder / f"{name}.pcap"))
        for _, log, _ in self._running:
            assert until(lambda log=log: "listening on" in log.read_text()), log.read_text()

    def segments(self):
        """Stop. Returns (connection, seq, bytes of its sequence space) of every packet, in order."""
        found = []
        for process, log, path in self._running:
            process.send_signal(signal.SIGINT)
            process.wait(20)
            text = log.read_text()
            assert "\n0 packets dropped by kernel" in text, text
            found += [_segment(frame) for frame in frames(path.read_bytes())]
        return found


def _segment(frame):
    ip = 14
    (total,) = struct.unpack_from("!H", frame, ip + 2)
    tcp = ip + (frame[ip] & 15) * 4
    port, _, seq, _, offset, flags = struct.unpack_from("!HHIIBB", frame, tcp)
    length = total - (tcp - ip) - (offset >> 4) * 4 + bool(flags & SYN) + bool(flags & FIN)
    return (frame[ip + 12 : ip + 16], port), seq, length


def sent_again(segments):
    """The number of packets that begin before the end of what their connection has sent already."""
    ends, count = {}, 0
    for connection, seq, length in segments:
        if length:
            last = ends.setdefault(connection, seq)
            count += (seq - last) & 0x8000_0000 != 0
            if (seq + length - last) & 0x8000_0000 == 0:
                ends[connection] = (seq + length) & 0xFFFF_FFFF
    return count


def transfer(stack, lab):
    """Every host sends over its connections at the same moment. Returns the segments that
    were sent again. The connections stay open: closing them would send more.
    """
    with inside(lab["r"].pid):
        server = stack.enter_context(socket.create_server(("0.0.0.0", PORT), backlog=64))
    server.setblocking(False)
    sending, came = {}, {}
    for host in (f"h{number}" for number in range(1, lab.senders + 1)):
        for _ in range(CONNECTIONS):
            with inside(lab[host].pid):
                made = stack.enter_context(socket.socket())
            made.setblocking(False)
            made.connect_ex((lab["r"].IP(), PORT))
            sending[made] = BYTES
    loop = stack.enter_context(selectors.DefaultSelector())
    loop.register(server, selectors.EVENT_READ)
    for each in sending:
        loop.register(each, selectors.EVENT_WRITE)
    deadline = time.monotonic() + 60
    while len(came) < len(sending) or any(came.values()):
        assert time.monotonic() < deadline
        for key, _ in loop.select(1):
            each = key.fileobj
            if each is server:
                peer = stack.enter_context(server.accept()[0])
                peer.setblocking(False)
                came[peer] = BYTES
                loop.register(peer, selectors.EVENT_READ)
            elif each in came:
                if not (data := each.recv(1 << 20)):
                    assert came[each] == 0
                    loop.unregister(each)
                came[each] -= len(data)
            elif sending[each]:
                sending[each] -= each.send(_CHUNK[: sending[each]])
            else:
                each.shutdown(socket.SHUT_WR)
                loop.unregister(each)
    # When a FIN is acknowledged, nothing is sent again.
    assert until(lambda: all(_info(each)[0] == _FIN_WAIT2 for each in sending))
    return sum(_info(each)[1] for each in sending)


def _info(sender):
    """The state of a connection, and ``tcpi_total_retrans``."""
    info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return info[0], struct.unpack_from("I", info, 100)[0]


def test_four_counts_of_the_lost_packets_agree(own_lab, tmp_path):
    port = f"s1-eth{own_lab.port}"
    for host in own_lab.net.hosts[: own_lab.senders]:
        assert host.cmd(f"ping -c1 -W5 {own_lab['r'].IP()}")  # ARP is over
    taildrop = start_taildrop({port: 60_000})
    with contextlib.ExitStack() as stack:
        stack.callback(taildrop.close)
        before = losses(port)
        senders = [f"s1-eth{each + 1}" for each in range(own_lab.senders)]
        entering = Sniffer(stack, tmp_path, senders, "in")
        leaving = Sniffer(stack, tmp_path, [port], "out")
        by_tcp = transfer(stack, own_lab)
        entered, left = entering.segments(), leaving.segments()
        by_tc, by_program = losses(port).since(before), taildrop.dropped(socket.if_nametoindex(port))
    lost = Counter(entered) - Counter(left)
    assert lost and not Counter(left) - Counter(entered)
    assert lost.total() == by_program == by_tc.taken and by_tc.refused == 0
    assert by_tcp == sent_again(entered)
    # What was lost was sent again, and nothing else is missing: the SYN and the FIN count as a byte each.
    whole = own_lab.senders * CONNECTIONS * (BYTES + 2)
    again = sum(length for _, _, length in entered) - whole
    assert again >= sum(length for _, _, length in lost.elements()) > 0
