"""Buffer and rate of a port, worked out from its qdiscs and classes."""

from __future__ import annotations

import pytest

from fairq_ryu.agent.qdisc import HtbClass, Qdisc, QueueLimits, limits_of

ROOT = 0xFFFFFFFF
HTB = Qdisc("htb", 0x10000, ROOT)
TOP = HtbClass(0x10001, ROOT, 50_000)
FIFO = Qdisc("bfifo", 0x100000, 0x10001, 60_000)


@pytest.mark.parametrize(
    ("qdiscs", "expected"),
    [
        ([Qdisc("bfifo", 0x10000, ROOT, 9000)], QueueLimits("bfifo", 9000, 0)),
        ([Qdisc("tbf", 0x10000, ROOT, 8000, 700)], QueueLimits("tbf", 8000, 700)),
        # Its child has the packets: the limit of tbf itself is no part of it.
        (
            [Qdisc("tbf", 0x10000, ROOT, 8000, 700), Qdisc("pfifo", 0x20000, 0x10001, 3028)],
            QueueLimits("tbf", 3028, 700),
        ),
        ([Qdisc("noqueue", 0, ROOT)], QueueLimits("noqueue", 0, 0, "it has no queue")),
        (
            [Qdisc("fq_codel", 0, ROOT)],
            QueueLimits("fq_codel", 0, 0, "fq_codel does not say how many bytes it holds"),
        ),
    ],
)
def test_one_queue(qdiscs, expected):
    assert limits_of(qdiscs, []) == expected


def test_an_interface_without_a_root():
    assert limits_of([FIFO], []) is None


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("pfifo_fast", "pfifo_fast counts its packets for each processor"),
        ("multiq", "multiq has several queues"),
        ("prio", "prio has several queues"),
    ],
)
def test_what_cannot_be_measured(kind, words):
    children = [Qdisc("bfifo", n << 16, 0x10000 + n, 1000) for n in (1, 2)]
    found = limits_of([Qdisc(kind, 0x10000, ROOT), *children], [])
    assert found is not None
    assert (found.limit, found.measured) == (0, False)
    assert words in found.reason


def test_htb_with_one_queue():
    assert limits_of([HTB, FIFO], [TOP]) == QueueLimits("htb", 60_000, 50_000)


def test_the_rate_of_a_class_is_that_of_the_slowest_above_it():
    classes = [TOP, HtbClass(0x10002, 0x10001, 80_000), HtbClass(0x10010, 0x10002, 70_000)]
    leaf = FIFO._replace(parent=0x10010)
    assert limits_of([HTB, leaf], classes) == QueueLimits("htb", 60_000, 50_000)
    assert limits_of([HTB, leaf], [TOP, classes[2]._replace(parent=0x10001, ceil=20_000)]) == QueueLimits(
        "htb", 60_000, 20_000
    )


def test_several_classes_are_several_queues():
    """Their limits were added up, and the windows made for a queue that does not exist."""
    classes = [TOP, HtbClass(0x10010, 0x10001, 30_000), HtbClass(0x10020, 0x10001, 30_000)]
    leaves = [Qdisc("bfifo", 0x100000, 0x10010, 60_000), Qdisc("bfifo", 0x200000, 0x10020, 60_000)]
    reason = "htb has 2 leaf classes, each with a queue of its own"
    assert limits_of([HTB, *leaves], classes) == QueueLimits("htb", 0, 50_000, reason, measured=False)


@pytest.mark.parametrize(
    ("qdiscs", "classes", "reason"),
    [
        ([HTB], [TOP], "class 1:1 of htb has no bfifo or pfifo"),
        ([HTB], [], "htb has no class"),
        (
            [HTB, FIFO._replace(kind="sfq", limit=0)],
            [TOP],
            "sfq in class 1:1 of htb does not say how many bytes it holds",
        ),
    ],
)
def test_htb_whose_limit_is_not_known(qdiscs, classes, reason):
    found = limits_of(qdiscs, classes)
    assert found is not None
    assert (found.limit, found.reason, found.measured) == (0, reason, True)
    assert found.leaf == ("1:1" if classes else "")


def multi(*children: Qdisc) -> list[Qdisc]:
    """mq, as the kernel makes it and as somebody does, with qdiscs of transmit queues."""
    return [Qdisc("mq", 0x10000, ROOT), *children]


def test_transmit_queues():
    """The smallest limit counts."""
    fifos = [Qdisc("bfifo", 0x20000 + (n << 16), 0x10000 + n, 1000 * n) for n in (3, 2, 4)]
    assert limits_of(multi(*fifos), []) == QueueLimits("mq", 2000, 0, queues=3)
    own = [Qdisc("mq", 0, ROOT), *(each._replace(parent=each.parent & 0xFFFF) for each in fifos)]
    assert limits_of(own, []) == QueueLimits("mq", 2000, 0, queues=3)


def test_transmit_queues_with_rates():
    shaped = [HTB._replace(handle=n << 16, parent=0x10000 + n) for n in (2, 3)]
    leaves = [FIFO._replace(handle=n << 20, parent=(n << 16) + 1) for n in (2, 3)]
    classes = [HtbClass((n << 16) + 1, ROOT, 10_000 * n) for n in (2, 3)]
    assert limits_of(multi(*shaped, *leaves), classes) == QueueLimits("mq", 60_000, 20_000, queues=2)
    tbf = Qdisc("tbf", 0x20000, 0x10001, 7000, 900)
    assert limits_of(multi(tbf), []) == QueueLimits("mq", 7000, 900, queues=1)


def test_one_transmit_queue_that_cannot_be_measured_is_enough():
    fifos = [Qdisc("bfifo", 0x20000, 0x10001, 1000), Qdisc("fq_codel", 0, 0x10002)]
    reason = (
        "mq has a queue for each transmit queue; "
        "transmit queue 1: fq_codel does not say how many bytes it holds"
    )
    assert limits_of(multi(*fifos), []) == QueueLimits("mq", 0, 0, reason, measured=False)


def test_more_transmit_queues_than_have_ids():
    fifos = [Qdisc("bfifo", (n + 2) << 16, 0x10000 + n, 1000) for n in range(1, 258)]
    found = limits_of(multi(*fifos), [])
    assert found == QueueLimits("mq", 0, 0, "mq has 257 transmit queues", measured=False)
