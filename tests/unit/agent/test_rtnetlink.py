"""Queues as the kernel tells them over netlink. The kernel is the other end of a pair of sockets."""

from __future__ import annotations

import errno
import gc
import os
import socket
import struct
import threading

import pytest

from fairq_ryu.agent import qdisc, rtnetlink
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.tx_queues import tx_queue_id

ROOT, CLSACT = 0xFFFFFFFF, 0xFFFFFFF1
QDISC, CLASS, FILTER = 36, 40, 44
KIND, OPTIONS, STATS2 = 1, 2, 7
# struct tc_tbf_qopt and tc_htb_opt with the largest rates that they can have.
TBF = struct.pack("=II 2I I 2I", 0, 0, 0xFFFFFFFF, 0, 0, 0, 60_000) + bytes(8)
HTB = struct.pack("=II I II I", 0, 0, 1000, 0, 0, 0xFFFFFFFF) + bytes(20)


def attribute(number, data):
    return struct.pack("=HH", 4 + len(data), number) + data + bytes(-len(data) % 4)


def message(kind, body, flags=2):
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body + bytes(-len(body) % 4)


def tc(kind, ifindex, handle, parent, *attributes):
    return message(kind, struct.pack("=B3xiIII", 0, ifindex, handle, parent, 0) + b"".join(attributes))


def queue(ifindex, name, options=b"", backlog=0, handle=0x10000, parent=ROOT):
    stats = attribute(1, bytes(16)) + attribute(3, struct.pack("=IIIII", 9, backlog, 0, 0, 0))
    parts = attribute(KIND, name.encode() + b"\0"), attribute(OPTIONS, options), attribute(STATS2, stats)
    return tc(QDISC, ifindex, handle, parent, *parts)


def error(number):
    return message(2, struct.pack("=i", -number) + bytes(16), flags=0)


DONE = message(3, struct.pack("=i", 0))


@pytest.fixture
def kernel(monkeypatch):
    """Called with the datagrams of the answer to each question, in order. Nothing follows them."""
    answers, ends = [], []

    def channel():
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own.settimeout(0.05)
        ends.append(other)
        for datagram in answers.pop(0):
            other.send(datagram)
        return own

    monkeypatch.setattr(rtnetlink, "_channel", channel)
    yield lambda *each: answers.extend(each)
    for end in ends:
        end.close()


def fifo(limit):
    return struct.pack("=I", limit)


@pytest.mark.parametrize(
    ("found", "limits"),
    [
        (queue(4, "bfifo", fifo(9000)), QueueLimits("bfifo", 9000, 0)),
        (queue(4, "pfifo", fifo(10)), QueueLimits("pfifo", 15_140, 0)),
        (queue(4, "tbf", attribute(1, TBF)), QueueLimits("tbf", 60_000, 0xFFFFFFFF)),
        (
            queue(4, "tbf", attribute(1, TBF) + attribute(4, struct.pack("=Q", 5_000_000_000))),
            QueueLimits("tbf", 60_000, 5_000_000_000),
        ),
        (
            queue(4, "tbf", attribute(1, TBF)) + queue(4, "pfifo", fifo(2), handle=0x20000, parent=0x10001),
            QueueLimits("tbf", 3028, 0xFFFFFFFF),
        ),
        (queue(4, "bfifo", fifo(9000)) + queue(4, "clsact", parent=CLSACT), QueueLimits("bfifo", 9000, 0)),
        (queue(4, "bfifo", b"\0"), QueueLimits("bfifo", 0, 0, "bfifo does not say how many bytes it holds")),
    ],
)
def test_limits(kernel, found, limits):
    kernel([queue(3, "bfifo", fifo(1)), found, DONE])
    assert qdisc.read_queue_limits([4]) == {4: limits}


@pytest.mark.parametrize(
    ("more", "rate"), [(b"", 0xFFFFFFFF), (struct.pack("=Q", 7_500_000_000), 7_500_000_000)]
)
def test_limits_of_htb(kernel, more, rate):
    htb = queue(4, "htb"), queue(4, "bfifo", fifo(9000), handle=0x20000, parent=0x10001)
    options = attribute(1, HTB) + (attribute(7, more) if more else b"")
    kernel([*htb, DONE], [tc(CLASS, 4, 0x10001, ROOT, attribute(OPTIONS, options)), DONE])
    assert qdisc.read_queue_limits([4]) == {4: QueueLimits("htb", 9000, rate)}


def test_an_interface_that_goes_between_two_questions_is_left_out(kernel):
    kernel([queue(4, "htb"), queue(5, "bfifo", fifo(9000)), DONE], [error(errno.ENODEV)])
    assert qdisc.read_queue_limits([4, 5]) == {5: QueueLimits("bfifo", 9000, 0)}


def test_backlogs_of_ports_and_of_their_transmit_queues(kernel):
    kernel(
        [
            queue(3, "bfifo", backlog=700) + queue(4, "mq", backlog=9),
            queue(4, "bfifo", backlog=800, handle=0x20000, parent=0x10001),
            queue(4, "bfifo", backlog=900, handle=0x30000, parent=0x10002),
            tc(QDISC, 5, 0, ROOT, attribute(KIND, b"noqueue\0")),
            DONE,
        ]
    )
    queues = [tx_queue_id(4, each) for each in range(3)]
    assert qdisc.read_backlogs([3, 5, 6, *queues]) == {3: 700, queues[0]: 800, queues[1]: 900}


def test_only_roots_with_a_handle_were_chosen(kernel):
    roots = queue(3, "bfifo"), queue(4, "fq_codel", handle=0), queue(5, "bfifo", parent=0x10001)
    kernel([*roots, DONE])
    assert qdisc.explicit_roots([3, 4, 5, 6]) == {3}


@pytest.mark.parametrize("read", [qdisc.read_backlogs, qdisc.read_queue_limits, qdisc.explicit_roots])
@pytest.mark.parametrize(
    ("rest", "fault"),
    [
        ([], TimeoutError),  # it hangs
        ([error(errno.ENOMEM)], rtnetlink.Refused),
        ([message(3, struct.pack("=i", -errno.ENOBUFS))], rtnetlink.Refused),
    ],
)
def test_a_part_of_an_answer_is_none(kernel, read, rest, fault):
    kernel([queue(4, "bfifo", fifo(9000)), *rest])
    with pytest.raises(fault):
        read([4, 5])


def test_filters(kernel):
    kernel([DONE], [tc(FILTER, 4, 0, 0xFFFFFFF3), DONE])
    assert qdisc.has_filters(4)
    kernel([DONE], [DONE])
    assert not qdisc.has_filters(4)
    kernel([error(errno.EINVAL)])
    assert not qdisc.has_filters(4)
    # Nobody knows: what is there must not be removed.
    kernel([])
    with pytest.raises(TimeoutError):
        qdisc.has_filters(4)


def test_readings_leave_no_descriptor_and_need_no_thread(monkeypatch):
    """Of the kernel that runs this; anybody may ask it."""
    monkeypatch.setattr(threading.Thread, "start", None)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        qdisc.read_backlogs([1])
        qdisc.read_queue_limits([1])
        qdisc.has_filters(1)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_failed_reading_leaves_no_descriptor(monkeypatch):
    made = []

    def channel():
        own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        made.append(own)
        other.close()
        return own

    monkeypatch.setattr(rtnetlink, "_channel", channel)
    with pytest.raises(OSError):
        qdisc.read_backlogs([1])
    assert made[0].fileno() == -1


def test_a_question_waits_five_seconds_at_most():
    with rtnetlink._channel() as channel:
        assert channel.gettimeout() == 5
