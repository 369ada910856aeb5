"""How long the backlog of a queue is believed; the C code of the programs and its twin are the same."""

from __future__ import annotations

import ctypes
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.backlog import believed, drain_ns, is_silent
from fairq_ryu.agent.qdisc import NO_LIMITS, QueueLimits

EVENT, DRAIN, BACKLOG, AREA = 10**12, 70_000_000, 30_000, 5
# Few times, so that equal ones are frequent.
TIMES = st.one_of(
    st.sampled_from([0, EVENT - 1, EVENT, EVENT + DRAIN, EVENT + DRAIN + 1]), st.integers(0, 2**50)
)
BYTES = st.integers(0, 1 << 30)


def queue(**more: int) -> Any:
    return layout.fq_queue(**{"last_ns": EVENT, "backlog": BACKLOG, "byte_ns": AREA} | more)


def check(**more: int) -> Any:
    return layout.fq_queue_check(**{"drain_ns": DRAIN} | more)


@given(
    last=TIMES,
    event=TIMES,
    read=TIMES,
    now=TIMES,
    drain=st.integers(0, 2**33),
    before=BYTES,
    backlog=BYTES,
    found=BYTES,
    rate=st.one_of(st.just(0), st.integers(1, 1_700_000_000)),
    rest=st.integers(0, (1 << 24) - 1),
)
def test_the_twin_agrees_with_the_c_code(
    host_queues: Any,
    last: int,
    event: int,
    read: int,
    now: int,
    drain: int,
    before: int,
    backlog: int,
    found: int,
    rate: int,
    rest: int,
) -> None:
    seen = queue(last_ns=last, backlog=backlog, drain=rate, rest=rest)
    known = check(drain_ns=drain, event_ns=event, ns=read, byte_ns=before, backlog=found)
    given_to_c = ctypes.byref(seen), ctypes.byref(known), ctypes.c_uint64(now)
    area = host_queues.host_byte_ns(*given_to_c)
    assert believed(seen, known, now) == (host_queues.host_backlog(*given_to_c), AREA + area)


def test_a_backlog_is_believed_until_the_queue_must_have_drained() -> None:
    end = EVENT + DRAIN
    for now, backlog, stood in ((EVENT - 1, BACKLOG, 0), (EVENT + 9, BACKLOG, 9), (end, BACKLOG, DRAIN)):
        assert believed(queue(), check(), now) == (backlog, AREA + stood * BACKLOG)
        assert not is_silent(queue(), check(), now)
    for now in (end + 1, end + 10**12):
        assert believed(queue(), check(), now) == (0, AREA + DRAIN * BACKLOG)
        assert is_silent(queue(), check(), now)


def test_what_the_qdisc_had_is_believed_until_the_next_event() -> None:
    read = EVENT + 10 * DRAIN
    for found, silent in ((0, False), (7_000, True)):
        known = check(event_ns=EVENT, ns=read, byte_ns=11, backlog=found)
        assert believed(queue(), known, read + DRAIN) == (found, AREA + 11 + DRAIN * found)
        assert believed(queue(), known, read + DRAIN + 1) == (0, AREA + 11 + DRAIN * found)
        assert not is_silent(queue(), known, read + DRAIN)
        assert is_silent(queue(), known, read + DRAIN + 1) is silent
        later = queue(last_ns=EVENT + 1)
        assert believed(later, known, EVENT + 2) == (BACKLOG, AREA + BACKLOG)


def test_an_empty_queue_may_be_silent_for_ever() -> None:
    assert not is_silent(queue(backlog=0), check(), EVENT + 10**15)
    assert not is_silent(layout.fq_queue(), check(), EVENT), "no event yet"


def test_the_time_is_that_in_which_a_full_queue_drains_and_a_margin() -> None:
    assert drain_ns(QueueLimits("htb", 125_000, 6_250_000)) == 20_000_000 + 20_000_000
    assert drain_ns(QueueLimits("htb", 1, 10**12)) == layout.CONSTANTS["FQ_MARGIN_NS"]
    for unknown in (NO_LIMITS, QueueLimits("bfifo", 1000, 0), QueueLimits("htb", 0, 1000)):
        assert drain_ns(unknown) == 10**9
