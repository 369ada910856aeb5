"""The queue laws in C and in Python decide the same and have the same state, and marking by a threshold."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.policies.queue_laws import Packet, QueueLawParameters, Verdict, make_law
from fairq_ryu.queue_law_spec import QueueLawFlags, QueueLawKind, Variant
from tests.support import host_queue_laws

CASES = [(kind, Variant.PAPER) for kind in QueueLawKind]
CASES += [(kind, each) for kind in (QueueLawKind.AFQ, QueueLawKind.AFCD) for each in list(Variant)[1:]]


@pytest.mark.parametrize("kind", QueueLawKind)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_c_and_python_agree_bit_for_bit(kind: QueueLawKind, library: ctypes.CDLL, data: Any) -> None:
    made = data.draw(host_queue_laws.parameters(kind))
    host_queue_laws.agree(library, made, host_queue_laws.packets(data.draw(host_queue_laws.TRACES)), every=8)


@pytest.mark.parametrize(("kind", "variant"), CASES)
def test_they_agree_on_a_long_busy_trace(kind: QueueLawKind, variant: Variant, library: ctypes.CDLL) -> None:
    """Long enough that flow tables are full, and every law drops and, with ECN, marks."""
    for flags in (QueueLawFlags(0), QueueLawFlags.ECN):
        made = QueueLawParameters(
            kind,
            12_500_000,
            interval_ns=10_000_000,
            shadow_packets=300,
            sample_every=2,
            variant=variant,
            flags=flags,
            bin_packets=3,
            bin_most=12,
        )
        trace = host_queue_laws.busy_trace(4000, 1)
        counts = host_queue_laws.agree(library, made, trace, every=400).counts
        assert counts.judged == sum(each.segments for each in trace)
        assert counts.not_ect == sum(each.segments for each in trace if not each.ect)
        assert bool(counts.dropped) == (kind != QueueLawKind.MARK)
        if (kind, variant) != (QueueLawKind.AFQ, Variant.AUTHORS):  # which drops next to nothing
            assert bool(counts.marked) == bool(flags or kind == QueueLawKind.MARK)


def test_the_kinds_and_flags_are_those_of_the_layout() -> None:
    for prefix, numbers in (
        ("FQ_QLAW_", QueueLawKind),
        ("FQ_VARIANT_", Variant),
        ("FQ_QLAW_", QueueLawFlags),
    ):
        for each in numbers:  # type: ignore[attr-defined]
            assert layout.CONSTANTS[f"{prefix}{each.name}"] == each
    assert [layout.CONSTANTS[f"FQ_{each.name}"] for each in Verdict] == list(Verdict)
    names = {field.name for field in dataclasses.fields(QueueLawParameters)}
    assert names == {name for name, _ in layout.fq_queue_law._fields_} - {"pad"}


def arriving(backlog: int, length: int = 1514, ect: bool = True) -> Packet:
    return Packet(10**9, backlog, backlog, length, 1, 0, ect)


def test_marking_is_by_the_queue_with_the_packet_itself() -> None:
    """DCTCP (SIGCOMM 2010, section 3.1): a packet is marked if the queue is longer than K when it arrives.
    Here the packet itself counts, as it occupies the buffer.
    """
    law = make_law(QueueLawParameters(QueueLawKind.MARK, 12_500_000, mark_bytes=20 * 1514))
    assert law.judge(arriving(19 * 1514)) == Verdict.PASS
    assert law.judge(arriving(19 * 1514 + 1)) == Verdict.MARK
    assert law.judge(arriving(10**6, ect=False)) == Verdict.PASS
    counts = law.counts
    assert (counts.judged, counts.marked, counts.not_ect, counts.unmarked) == (3, 1, 1, 1)


def test_the_backlog_that_the_last_packet_found_is_kept() -> None:
    law = make_law(QueueLawParameters(QueueLawKind.MARK, 12_500_000))
    for backlog in (10_000, 62_500):
        law.judge(arriving(backlog))
        assert law.backlog == backlog
