"""What holds for every queue law, whatever its parameters and packets, and marking by a threshold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.laws.afq import AfqLaw
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.queue_law_spec import Variant
from tests.support import host_queue_laws
from tests.support.host_queue_laws import HostQueueLaw, Packet, QueueLawParameters, Verdict

CASES = [(kind, Variant.PAPER) for kind in queue_laws()]
CASES += [(kind, each) for kind in (AfqLaw.kind, AfcdLaw.kind) for each in list(Variant)[1:]]
SLOTS = layout.CONSTANTS["FQ_FLOW_SLOTS"]


@pytest.mark.parametrize("kind", queue_laws())
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_packet_leaves_the_bounds(kind: int, data: Any) -> None:
    """Undefined behaviour, such as an overflow, would end the process. Every segment is counted once; what is
    not ECN-capable is never marked, and without the flag nothing is.
    """
    made = data.draw(host_queue_laws.parameters(kind))
    trace = list(host_queue_laws.packets(data.draw(host_queue_laws.TRACES)))
    passed, before = dict.fromkeys(Verdict, 0), 0
    law = HostQueueLaw(made)
    for law, packet, verdict in host_queue_laws.run(made, trace):
        passed[verdict] += packet.segments
        assert verdict != Verdict.MARK or packet.ect
        assert verdict != Verdict.MARK or kind == MarkLaw.kind or made.ecn
        state = law.state
        assert state.filled <= made.shadow_packets and state.fair_q16 <= made.shadow_packets << 16
        assert state.flows <= min(state.filled, SLOTS)
        assert state.counts.sampled >= before
        before = state.counts.sampled
    counts = law.counts
    assert (counts.judged, counts.dropped, counts.marked) == (
        sum(passed.values()),
        passed[Verdict.DROP],
        passed[Verdict.MARK],
    )
    assert counts.not_ect == sum(each.segments for each in trace if not each.ect)
    assert sum(law.table.samples) == law.state.filled
    assert max(law.bins.p_q16) <= 65535


@pytest.mark.parametrize(("kind", "variant"), CASES)
def test_every_law_drops_and_with_ecn_marks(kind: int, variant: Variant) -> None:
    """On a trace that is long enough for full flow tables."""
    for ecn in (False, True):
        made = QueueLawParameters(
            kind,
            12_500_000,
            interval_ns=10_000_000,
            shadow_packets=300,
            sample_every=2,
            variant=variant,
            ecn=ecn,
            bin_packets=3,
            bin_most=12,
        )
        *_, (law, _, _) = host_queue_laws.run(made, host_queue_laws.busy_trace(4000, 1))
        assert bool(law.counts.dropped) == (kind != MarkLaw.kind)
        if (kind, variant) != (AfqLaw.kind, Variant.AUTHORS):  # which drops next to nothing
            assert bool(law.counts.marked) == (ecn or kind == MarkLaw.kind)


def test_the_variants_and_verdicts_are_those_of_the_layout() -> None:
    assert [layout.CONSTANTS[f"FQ_VARIANT_{each.name}"] for each in Variant] == list(Variant)
    assert [layout.CONSTANTS[f"FQ_{each.name}"] for each in Verdict] == list(Verdict)


def arriving(backlog: int, length: int = 1514, ect: bool = True) -> Packet:
    return Packet(10**9, backlog, backlog, length, 1, 0, ect)


def test_marking_is_by_the_queue_with_the_packet_itself() -> None:
    """DCTCP (SIGCOMM 2010, section 3.1): a packet is marked if the queue is longer than K when it arrives.
    Here the packet itself counts, as it occupies the buffer.
    """
    law = HostQueueLaw(QueueLawParameters(MarkLaw.kind, 12_500_000, mark_bytes=20 * 1514))
    assert law.judge(arriving(19 * 1514)) == Verdict.PASS
    assert law.judge(arriving(19 * 1514 + 1)) == Verdict.MARK
    assert law.judge(arriving(10**6, ect=False)) == Verdict.PASS
    counts = law.counts
    assert (counts.judged, counts.marked, counts.not_ect, counts.unmarked) == (3, 1, 1, 1)


def test_the_backlog_that_the_last_packet_found_is_kept() -> None:
    law = HostQueueLaw(QueueLawParameters(MarkLaw.kind, 12_500_000))
    for backlog in (10_000, 62_500):
        law.judge(arriving(backlog))
        assert law.state.backlog == backlog
