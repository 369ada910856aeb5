import itertools

import pytest

from fairq_ryu.experiments.kernel_qdiscs import QDISCS
from fairq_ryu.experiments.measure import queues
from fairq_ryu.experiments.traffic.workers import RunError


def status(byte_ns, clock_ns, drops, rewritten, histogram, law=None):
    queue = {
        "bytes": 0, "peak": 0, "limit": 125_000, "rate": 25e6, "drops": drops, "packets": 10 * drops,
        "byte_ns": byte_ns, "clock_ns": clock_ns, "histogram": histogram,
    }  # fmt: skip
    port = {"ofport": 3, "name": "s1-eth3", "ifindex": 9, "queue": queue, "rewritten": rewritten}
    port["queue_law"] = law
    return {"bridge": "s1", "ports": [{"name": "s1-eth1", "queue": None, "rewritten": 0}, port]}


def test_two_readings_of_a_queue_are_differenced():
    before = queues.queue_of(status(5_000, 1_000, 3, 7, [[0, 1000, 400]]), "s1-eth3")
    after = queues.queue_of(
        status(5_000 + 2_000 * 10**9, 1_000 + 10**9, 10, 107, [[0, 1000, 400], [1000, 3000, 10**9]]),
        "s1-eth3",
    )
    figures = queues.between(before, after)
    assert figures["mean_bytes"] == pytest.approx(2_000)
    assert figures["seconds"] == pytest.approx(1)
    assert figures["p99_bytes"] == pytest.approx(1000 + 0.99 * 2000)
    assert (figures["drops"], figures["packets"], figures["acks_rewritten"]) == (7, 70, 100)
    assert figures["histogram"] == [[1000, 3000, 10**9]]
    assert (after.law, figures["law"]) == ("", None)


def judged(kind, *counts):
    variant = "ours" if kind in ("afq", "afcd") else ""  # as the agent says it
    return {"kind": kind, "variant": variant} | dict(
        zip(("judged", "dropped", "marked"), counts, strict=True)
    )


def test_what_a_queue_law_has_done_between_two_readings():
    """The counts of a port go on with another law, or with the same one put in force anew."""
    laws = [None, judged("afcd", 100, 5, 1), judged("afcd", 180, 25, 4), judged("red", 210, 27, 4)]
    readings = [queues.queue_of(status(0, at, 0, 0, [], law), "s1-eth3") for at, law in enumerate(laws)]
    assert [each.law for each in readings] == ["", "afcd ours", "afcd ours", "red"]
    found = [queues.between(*pair)["law"] for pair in itertools.pairwise(readings)]
    assert [tuple(each.values()) for each in found] == [(100, 5, 1), (80, 20, 3), (30, 2, 0)]
    assert list(found[0]) == ["judged", "dropped", "marked"]


def test_what_has_left_by_an_interface_is_counted():
    assert queues.sent_bytes("lo") >= 0
    with pytest.raises(RunError, match="cannot read what has left by none-eth9: "):
        queues.sent_bytes("none-eth9")


def test_a_queue_that_cannot_be_read_is_an_error():
    with pytest.raises(RunError, match="does not show port s1-eth9"):
        queues.queue_of(status(0, 0, 0, 0, []), "s1-eth9")
    with pytest.raises(RunError, match="no queue for port s1-eth1"):
        queues.queue_of(status(0, 0, 0, 0, []), "s1-eth1")
    reading = queues.queue_of(status(0, 5, 0, 0, []), "s1-eth3")
    with pytest.raises(RunError, match="restarted"):
        queues.between(reading, reading)


@pytest.mark.parametrize(
    ("more", "dropped"),
    [
        ({}, False),
        ({"recovery": {"losses": {"acknowledged": 0}}, "drop_reports": {"told": 0}}, False),
        ({"recovery": {"losses": {"acknowledged": 3}}, "drop_reports": {"told": 0}}, True),
        ({"recovery": {"losses": {}}, "drop_reports": {"told": 1}}, True),
    ],
)
def test_whether_the_agent_has_dropped_is_known(more, dropped):
    shown = status(5_000, 1_000, 3, 7, [[0, 1000, 400]])
    assert queues.queue_of({**shown, **more}, "s1-eth3").agent_drops is dropped


def listed(kind, **counted):
    """tc's JSON of a port: clsact saw 200 packets, of which 150 left and 7 wait."""
    return [
        {"kind": "tbf", "root": True, "packets": 150, "qlen": 7, "drops": 99},
        {"kind": kind, "drops": 13, "packets": 150, "qlen": 7, **counted},
        {"kind": "clsact", "packets": 200, "drops": 0},
    ]


def test_the_losses_of_a_fifo():
    assert queues.read_losses(listed("bfifo")) == queues.PortLosses(13, 30)
    with pytest.raises(LookupError):
        queues.read_losses(listed("pfifo"))


def test_losses_of_a_qdisc_of_the_kernel_are_those_of_its_full_buffer():
    """What its law has dropped has passed the filters, and was not refused for want of room."""
    red, cake = QDISCS["red"], QDISCS["cake"]
    assert queues.read_losses(listed("red", pdrop=4), red) == queues.PortLosses(4, 30)
    shaping = {"kind": "cake", "root": True, "drops": 13, "packets": 150, "qlen": 7, "tins": []}
    assert queues.read_losses([shaping, listed("red")[2]], cake) == queues.PortLosses(0, 30)
    with pytest.raises(LookupError):
        queues.read_losses(listed("bfifo"), red)
