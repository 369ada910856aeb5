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
from pathlib import Path

import pytest

from fairq_ryu.agent.programs.taildrop import start_taildrop
from fairq_ryu.experiments.measure.queues import losses
from mininet_topos.patience import patient
from tests.support.capture import frames
from tests.support.lab import end, until
from tests.support.wires import inside

pytestmark = [pytest.mark.root, pytest.mark.timeout(120)]
BYTES = 400_000  # of each connection
CONNECTIONS = 4  # of each host
PORT = 5001
_CHUNK = bytes(1 << 16)
_FIN_WAIT2 = 5
# tcp_info: tcpi_bytes_sent and tcpi_bytes_retrans, without headers.
_BYTES_SENT, _INFO = 200, 216


class Sniffer:
    """All unicast frames for a host that pass interfaces in one direction (tcpdump's `-Q`)."""

    def __init__(self, stack, folder, interfaces, direction, mac):
        self._running = {}
        for name in interfaces:
            path, log = folder / f"{name}.pcap", folder / f"{name}.log"
            command = ["tcpdump", "-i", name, "-Q", direction, "-n", "-s", "128", "-B", "16384", "-Z", "root"]
            command += ["--immediate-mode", "-U", "-w", str(path), f"ether dst {mac}"]
            with log.open("w") as handle:
                process = subprocess.Popen(command, stderr=handle, stdin=subprocess.DEVNULL)
            stack.callback(end, process)
            self._running[path] = process, log
            assert until(lambda log=log: "listening on" in log.read_text()), log.read_text()

    def frames(self):
        """All frames until now. Cut off: their first 128 bytes."""
        return [frame for path in self._running for frame in frames(path.read_bytes())]

    def stop(self):
        for process, log in self._running.values():
            process.send_signal(signal.SIGINT)
            process.wait(patient(20))
            assert "\n0 packets dropped by kernel" in log.read_text(), log.read_text()


def payload(frame):
    """Bytes of TCP's payload in an Ethernet frame of IPv4; 0: it is another one."""
    if frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_TCP:
        return 0
    (total,) = struct.unpack_from("!H", frame, 16)
    tcp = 14 + (frame[14] & 15) * 4
    return total - (tcp - 14) - (frame[tcp + 12] >> 4) * 4


def transfer(stack, lab):
    """Every host sends over its connections at the same moment. Returns the bytes that were sent again. The
    connections stay open: closing them would send more.
    """
    with inside(lab["r"].pid):
        server = stack.enter_context(socket.create_server(("0.0.0.0", PORT), backlog=64))
    server.setblocking(False)
    sending, came = {}, {}
    for host in lab.net.hosts[: lab.senders]:
        for _ in range(CONNECTIONS):
            with inside(host.pid):
                made = stack.enter_context(socket.socket())
            made.setblocking(False)
            made.connect_ex((lab["r"].IP(), PORT))
            sending[made] = BYTES
    loop = stack.enter_context(selectors.DefaultSelector())
    loop.register(server, selectors.EVENT_READ)
    for each in sending:
        loop.register(each, selectors.EVENT_WRITE)
    deadline = time.monotonic() + 60
    while len(came) < len(sending) or any((*came.values(), *sending.values())):
        assert time.monotonic() < deadline
        for key, _ in loop.select(1):
            each = key.fileobj
            if each is server:
                peer = stack.enter_context(server.accept()[0])
                peer.setblocking(False)
                came[peer] = BYTES
                loop.register(peer, selectors.EVENT_READ)
            elif each in came:
                came[each] -= len(each.recv(1 << 20))
                if not came[each]:
                    loop.unregister(each)
            else:
                sending[each] -= each.send(_CHUNK[: sending[each]])
                if not sending[each]:
                    each.shutdown(socket.SHUT_WR)
                    loop.unregister(each)
    # When a FIN is acknowledged, nothing is sent again.
    assert until(lambda: all(_info(each)[0] == _FIN_WAIT2 for each in sending))
    sent, again = (sum(_info(each)[at] for each in sending) for at in (1, 2))
    assert sent - again == len(sending) * BYTES
    return again


def _info(sender):
    """The state of a connection, the bytes that it has sent, and those that it has sent again."""
    info = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO)
    return info[0], *struct.unpack_from("QQ", info, _BYTES_SENT)


def marked(lab, sniffers, number):
    """Every host sends a datagram, behind all that it has sent. Returns whether all captures have them."""
    words = b"mark %d" % number
    for host in lab.net.hosts[: lab.senders]:
        with inside(host.pid), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.sendto(words, (lab["r"].IP(), 9))
    return until(
        lambda: all(sum(words in frame for frame in each.frames()) == lab.senders for each in sniffers),
        3,
    )


def test_four_counts_of_the_lost_packets_agree(own_lab, tmp_path):
    port, receiver = f"s1-eth{own_lab.port}", own_lab["r"]
    # No multicast: an interface in the bridge sends its own, behind the capture at another one.
    for name in ("s1", *(f"s1-eth{each + 1}" for each in range(own_lab.port))):
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")
    for host in own_lab.net.hosts:
        host.cmd("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
        assert host is receiver or host.cmd(f"ping -c1 -W5 {receiver.IP()}")  # ARP is over
    taildrop = start_taildrop({port: 60_000})
    with contextlib.ExitStack() as stack:
        stack.callback(taildrop.close)
        senders = [f"s1-eth{each + 1}" for each in range(own_lab.senders)]
        entering = Sniffer(stack, tmp_path, senders, "in", receiver.MAC())
        leaving = Sniffer(stack, tmp_path, [port], "out", receiver.MAC())
        before = losses(port)
        again = transfer(stack, own_lab)
        # A later mark passes an earlier one that was dropped; all frames before it are captured.
        assert any(marked(own_lab, (entering, leaving), number) for number in range(10))
        by_tc, by_program = losses(port).since(before), taildrop.dropped(socket.if_nametoindex(port))
        entering.stop()
        leaving.stop()
    entered, left = (Counter(each.frames()) for each in (entering, leaving))
    lost = entered - left
    assert lost and not left - entered
    assert lost.total() == by_program == by_tc.taken and by_tc.refused == 0
    whole = own_lab.senders * CONNECTIONS * BYTES
    assert again == sum(map(payload, entered.elements())) - whole
    # What was lost was sent again, and some of it arrived twice.
    assert again >= sum(map(payload, lost.elements())) > 0
