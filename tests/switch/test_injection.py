"""Segments that the agent sends by itself, through real interfaces and the real programs: what arrives at the
host behind a port.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest

from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.channel.recovery import DUPACK, REINJECT, SetRecovery
from fairq_ryu.packet import tcp_timestamps
from fairq_ryu.packet.parse import parse
from fairq_ryu.packet.tcp_build import Addressing
from tests.switch import packets
from tests.switch.queue_rig import Watched, bottleneck, set_queue_limits, take_drops
from tests.switch.rig import Connection, Switch, lowered

_ALL = 0x0003  # ETH_P_ALL


class Host:
    """The host behind a port: what arrives there."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        self._socket.bind((interface, _ALL))

    def received(self, patience: float = 0.2) -> list[bytes]:
        """TCP segments that arrive until none has arrived for a time."""
        self._socket.settimeout(patience)
        found = []
        while True:
            try:
                frame = self._socket.recv(4096)
            except TimeoutError:
                return found
            if packets.view(frame) is not None:
                found.append(frame)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def client(switch: Switch) -> Iterator[Host]:
    """The host behind port 1."""
    host = Host("p1h")
    yield host
    host.close()


def numbers(frame: bytes) -> tuple[int, int]:
    """Sequence and acknowledgement number."""
    found = packets.view(frame)
    assert found is not None
    seq, ack = struct.unpack_from(">II", frame, found.tcp + 4)
    return seq, ack


def acks(connection: Connection) -> Addressing:
    return Addressing(connection.ack_key, "02:00:00:00:00:01", "02:00:00:00:00:02")


@pytest.mark.parametrize("window", [5000, 200_000])
def test_a_window_update_is_lowered_by_the_rule_that_ends_the_pause(
    switch: Switch, client: Host, window: int
) -> None:
    connection = Connection(switch).open()
    connection.data(1000)
    switch.rule(connection.ack_key, 0)
    assert connection.granted(500, ack=2001) == 0
    server = OpenFlowServer("s1", 1, switch.datapath, 8)
    switch.rule(connection.ack_key, window)
    server.injector.wake([acks(connection)])
    (update,) = client.received()
    assert numbers(update) == (connection.server_isn + 1, 2001)
    assert packets.window(update) == lowered(500, window, 7, 1460)
    assert packets.residue(update) == 0
    assert server.injector.counts == {"wake": 1}
    # The update is the receiver's own ACK once more: what is known of the flow does not change.
    assert connection.granted(500, ack=2001) == lowered(500, window, 7, 1460)


def test_no_update_of_a_flow_that_is_not_known(switch: Switch, client: Host) -> None:
    server = OpenFlowServer("s1", 1, switch.datapath, 8)
    server.injector.wake([acks(Connection(switch))])
    assert client.received() == []
    assert server.injector.counts == {"wake: the switch does not know the flow": 1}


def test_a_port_that_is_gone(switch: Switch) -> None:
    assert not switch.datapath.send_frame(9, packets.Segment().frame())


# Recovery, through a real queue of 20,000 bytes


@pytest.fixture
def watched() -> Iterator[Watched]:
    with bottleneck("40kbit", 20_000) as found:
        yield found


def work(server: OpenFlowServer, watched: Watched, seconds: float) -> None:
    """As the agent's loop."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        server.recovery.dropped(take_drops(watched.datapath, 64), time.monotonic_ns())
        server.recovery.work(time.monotonic_ns())
        time.sleep(0.0005)


def test_dropped_segments_arrive_in_the_end(watched: Watched) -> None:
    """60 segments, of which the queue takes about 20: all arrive, each unchanged, without their sender."""
    host = Host("p1h")
    server = OpenFlowServer("s1", 1, watched.datapath, 8)
    server.recovery.set(SetRecovery(1, REINJECT, 1 << 20, 60_000, 10_000, 60), time.monotonic_ns())
    sent = [packets.Segment(seq=seq, payload=b"x" * 1000).frame() for seq in range(0, 60_000, 1000)]
    for frame in sent:
        watched.datapath.send_frame(1, frame)
    work(server, watched, 0.05)
    assert server.recovery.outcomes["tracked"] > 30
    set_queue_limits("p1", "100mbit", 20_000)
    work(server, watched, 1.0)
    arrived = set(host.received())
    host.close()
    assert {frame for frame in sent if frame not in arrived} == set()
    assert server.injector.counts["reinject"] == server.recovery.outcomes["reinjected"] > 30
    server.forget_port(1, time.monotonic_ns())
    assert not watched.datapath.drops._attached


def tsval(frame: bytes) -> int:
    """The timestamp of a segment."""
    read = parse(frame)
    at = None if read is None else tcp_timestamps.tsval_at(frame, read)
    assert at is not None
    return int.from_bytes(frame[at : at + 4], "big")


def test_no_segment_arrives_with_an_older_timestamp_than_the_one_before_it(watched: Watched) -> None:
    """A newer segment of the sender leaves in front of those that are put back. If its receiver takes it as
    the next one in order, it discards segments with older timestamps (RFC 7323, section 5.3).
    """
    host = Host("p1h")
    server = OpenFlowServer("s1", 1, watched.datapath, 8)
    server.recovery.set(SetRecovery(1, REINJECT, 1 << 20, 60_000, 10_000, 60), time.monotonic_ns())
    old, new = (packets.NOP * 2 + packets.timestamps(value, 7) for value in (50, 60))
    for seq in range(0, 60_000, 1000):
        lost = packets.Segment(seq=seq, options=old, payload=b"x" * 1000)
        watched.datapath.send_frame(1, lost.frame())
    set_queue_limits("p1", "100mbit", 20_000)
    first = host.received(0.5)  # the slow queue sends a segment in 0.2 s
    assert watched.datapath.queue(watched.port).backlog == 0
    newer = packets.Segment(seq=60_000, options=new, payload=b"x" * 1000).frame()
    watched.datapath.send_frame(1, newer)
    work(server, watched, 1.0)
    last = host.received()
    host.close()
    assert {tsval(frame) for frame in first} == {50}
    assert last[0] == newer and {tsval(frame) for frame in last} == {60}
    assert {numbers(frame)[0] for frame in first + last} == set(range(0, 61_000, 1000))


def test_without_a_lease_nothing_is_put_back(watched: Watched) -> None:
    server = OpenFlowServer("s1", 1, watched.datapath, 8)
    server.recovery.set(SetRecovery(1, DUPACK | REINJECT, 1 << 20, 60_000, 10_000, 1), 0)
    server.recovery.expire(time.monotonic_ns())
    assert not watched.datapath.drops._attached and server.recovery.stored == 0
