"""Thresholds and drops compared with the kernel's counters: real packets through a real htb and bfifo."""

from __future__ import annotations

import ctypes
import select
import socket
from collections.abc import Iterator

import pytest

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs import drops
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.model import Congestion, Thresholds
from tests.switch.packets import Segment
from tests.switch.queue_rig import (
    Watched,
    bottleneck,
    crossed,
    kernel_counters,
    send,
    set_queue_limits,
    take_drops,
    wait_empty,
    watching,
)
from tests.switch.rig import namespace, run

CNG, NOM = Congestion.CNG, Congestion.NOM
SLOW = "40kbit"  # five packets of 1000 bytes a second


@pytest.fixture
def watched() -> Iterator[Watched]:
    with bottleneck(SLOW, 20_000) as found:
        yield found


def event_pending(datapath: BridgePrograms, patience: float = 0) -> bool:
    return bool(select.select([datapath.queues.event_fd], [], [], patience)[0])


def threshold_events(datapath: BridgePrograms) -> int:
    """The number of threshold events that the program has sent."""
    found = datapath.queues._event_count.get(ctypes.c_uint32(0))
    return int(found.sent)


def speed_up() -> None:
    set_queue_limits("p1", "100mbit", 20_000)
    wait_empty("p1")


def test_one_threshold_event_for_each_crossing(watched: Watched) -> None:
    data = watched.datapath
    data.set_thresholds(1, Thresholds(10_000, 4_000))
    send("p1", 8, 1000)
    assert not event_pending(data) and data.congestion(1).state is NOM
    send("p1", 11, 1000)  # past the threshold, until the queue is full
    assert event_pending(data)
    notice = data.congestion(1)
    assert notice.state is CNG and notice.backlog >= 10_000
    assert crossed(data) == [1] and not event_pending(data) and crossed(data) == []
    send("p1", 9, 1000)  # refused: the state stays that of the backlog
    assert kernel_counters("p1")["drops"] > 0
    assert not event_pending(data) and data.congestion(1).state is CNG
    speed_up()
    assert event_pending(data, 5) and crossed(data) == [1]
    assert data.congestion(1)[:3] == (1, NOM, 0)
    assert threshold_events(data) == 2


def test_between_the_thresholds_the_state_does_not_change(watched: Watched) -> None:
    data = watched.datapath
    data.set_thresholds(1, Thresholds(10_000, 4_000))
    for _ in range(3):
        send("p1", 17, 1000)
        assert data.congestion(1).state is CNG
        speed_up()
        set_queue_limits("p1", SLOW, 20_000)
    assert threshold_events(data) == 6
    # Between the thresholds from below: it is not congested.
    send("p1", 9, 1000)
    assert 4_000 < data.congestion(1).backlog < 10_000 and data.congestion(1).state is NOM


def test_thresholds_set_while_the_queue_is_above_them(watched: Watched) -> None:
    data = watched.datapath
    send("p1", 12, 1000)
    assert data.congestion(1).state is NOM
    data.set_thresholds(1, Thresholds(5_000, 1_000))
    assert data.congestion(1).state is CNG, "without waiting for a packet"
    data.set_thresholds(1, None)
    assert data.congestion(1).state is NOM
    send("p1", 3, 1000)
    crossed(data)
    send("p1", 2, 1000)
    assert not event_pending(data)


def test_the_thresholds_of_a_removed_port_are_removed(watched: Watched) -> None:
    data = watched.datapath
    data.set_thresholds(1, Thresholds(5_000, 1_000, True))
    data.remove_port(1)
    assert list(data.queues.threshold_map.keys()) == []
    data.add_port(watched.port)
    send("p1", 12, 1000)
    assert not event_pending(data)


def test_threshold_events_lost_to_a_full_ring(watched: Watched) -> None:
    """The number of lost events is not known, but that some were lost is, and all ports are checked."""
    data = watched.datapath
    data.set_thresholds(1, Thresholds(1, 0))
    set_queue_limits("p1", "1gbit burst 200k cburst 200k", 20_000)
    send("p1", 6000, 60)
    count = data.queues._event_count.get(ctypes.c_uint32(0))
    assert count.lost > 0, "the ring buffer holds 65536 bytes"
    assert crossed(data) == [1]
    assert crossed(data) == []


# Drops


def tcp(payload: int, seq: int = 1, flags: str = "A") -> bytes:
    return Segment(seq=seq, flags=flags, payload=b"x" * payload).frame()


def send_frames(frames: list[bytes]) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        raw.bind(("p1", 0x0800))
        for frame in frames:
            try:
                raw.send(frame)
            except OSError as error:
                assert "buffer" in str(error)


@pytest.mark.parametrize("taken", [False, True])
def test_drops_are_those_that_tc_counts(watched: Watched, taken: bool) -> None:
    """``taken``: if the size of the buffer is known, packets that do not fit are dropped before the queue
    refuses them.
    """
    data = watched.datapath
    if not taken:
        data.set_queue_limits({}, [watched.port.ifindex])
    data.set_thresholds(1, Thresholds(0, 0, True))
    before = kernel_counters("p1")["drops"]
    sent = [tcp(1000, seq) for seq in range(60)]
    send_frames(sent)
    dropped = kernel_counters("p1")["drops"] - before
    found = []
    while batch := take_drops(data, 16):
        assert len(batch) <= 16
        found += batch
    if taken:
        assert dropped == 0
        dropped = data.queue(watched.port).drops
    assert dropped > 30
    assert len(found) == dropped
    assert all(port == 1 and size == len(frame) for port, frame, size in found)
    # Complete and in the order of sending, except for the last: the first found room in the queue.
    assert [frame for _, frame, _ in found] == sent[60 - dropped :]


def test_long_packets_are_truncated(watched: Watched) -> None:
    data = watched.datapath
    run("ip", "link", "set", "p1", "mtu", "9000")
    run("ip", "link", "set", "p1h", "mtu", "9000")
    data.set_thresholds(1, Thresholds(0, 0, True))
    frame = tcp(2500)
    send_frames([frame] * 10)
    found = take_drops(data, 100)
    assert found
    for _, beginning, size in found:
        assert (beginning, size) == (frame[:2048], len(frame))


def test_nothing_is_reported_for_ports_without_thresholds(watched: Watched) -> None:
    data = watched.datapath
    assert not data.drops._attached
    for wanted in (Thresholds(10_000, 4_000), None):
        data.set_thresholds(1, wanted)
        send_frames([tcp(1000)] * 40)
        assert take_drops(data, 100) == []
    data.set_thresholds(1, Thresholds(0, 0, True))
    assert data.drops._attached
    data.set_thresholds(1, Thresholds(10_000, 0, False))
    assert not data.drops._attached
    send_frames([tcp(1000)] * 10)
    assert take_drops(data, 100) == []


def test_a_full_ring_loses_reports_not_packets(watched: Watched) -> None:
    """Packets without room for a report are not dropped by the program either: the queue refuses them as
    usual.
    """
    data = watched.datapath
    data.set_thresholds(1, Thresholds(0, 0, True))
    before = kernel_counters("p1")["drops"]
    send_frames([tcp(1000, seq) for seq in range(3000)])
    refused = kernel_counters("p1")["drops"] - before
    found = 0
    while batch := take_drops(data, 1000):
        found += len(batch)
    assert data.drops.lost > 0
    assert data.drops.lost == refused and found > 500


def test_other_interfaces_and_namespaces_are_ignored(watched: Watched) -> None:
    data = watched.datapath
    data.set_thresholds(1, Thresholds(0, 0, True))
    index = str(watched.port.ifindex)
    with namespace():
        run("ip", "link", "add", "p1", "index", index, "type", "veth", "peer", "name", "p1h")
        for end in ("p1", "p1h"):
            run("ip", "link", "set", end, "up")
        set_queue_limits("p1", SLOW, 3000)
        send("p1", 30, 1000)
        assert kernel_counters("p1")["drops"] > 0
        run("tc", "qdisc", "del", "dev", "p1", "root")
    set_queue_limits("p1h", SLOW, 3000)
    send("p1h", 30, 1000)
    assert take_drops(data, 100) == []


def test_a_kernel_that_refuses_the_drop_program(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """All other functions still work."""

    def refuse(*_: object) -> None:
        raise BpfError("unknown reason")

    monkeypatch.setattr(drops, "BpfObject", refuse)
    with watching(watched.port) as found:
        assert not found.datapath.reports_drops
        assert found.datapath.drops.fd is None
        found.datapath.set_thresholds(1, Thresholds(1000, 0, True))
        send("p1", 5, 1000)
        assert found.datapath.congestion(1).state is CNG
        assert take_drops(found.datapath, 5) == []
