"""Records of copied segments, as the window program writes them into the ring buffer, without a kernel."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.copies import RULES, CopyRecord, SegmentCopies, token_bucket
from fairq_ryu.channel.segment_copies import SegmentMatch
from tests.support.tables import Table
from tests.switch.packets import VLAN, Segment

OF_SYN = SegmentMatch(0x0800, 2)


class Ring:
    """A ring buffer whose records the test gives."""

    def __init__(self, take: Any) -> None:
        self._take = take
        self.records: list[Any] = []

    def read(self, limit: int) -> None:
        for record in self.records[:limit]:
            self._take(ctypes.addressof(record), ctypes.sizeof(record))
        del self.records[:limit]


@pytest.fixture
def copies() -> SegmentCopies:
    maps = {name: Table() for name in ("copy_rules", "copy_counts", "copy_state")}
    window = SimpleNamespace(**maps, set_copy_rules=lambda count: None)
    found = SegmentCopies(None, window)  # type: ignore[arg-type]
    found.port_limit, found.bridge_limit = token_bucket(10), token_bucket(1000)
    found._ring = Ring(found._on_copy)  # type: ignore[assignment]
    return found


def record(frame: bytes, rule: SegmentMatch = OF_SYN, captured: int = 192, **more: int) -> Any:
    head = frame[:captured]
    data = (ctypes.c_uint8 * layout.CONSTANTS["FQ_COPY_BYTES"])(*head)
    return layout.fq_copy(ifindex=5, len=len(frame), captured=len(head), rule=RULES[rule], data=data, **more)


def taken(copies: SegmentCopies, *records: Any, limit: int = 64) -> list[CopyRecord]:
    ring: Any = copies._ring
    ring.records += records
    return copies.take(limit)


def test_the_beginning_of_a_segment_and_its_length(copies):
    frame = Segment(flags="S", payload=b"d" * 900).frame()
    assert taken(copies, record(frame)) == [CopyRecord(OF_SYN, 5, frame[:192], len(frame))]
    assert copies.take(64) == []


def test_a_vlan_tag_that_the_kernel_keeps_beside_the_frame(copies):
    segment = Segment(flags="S", payload=b"d" * 900)
    tagged = segment.but(vlans=((VLAN, 0x2007),)).frame()
    kept = {"vlan_proto": int.from_bytes(VLAN.to_bytes(2, "big"), "little"), "vlan_tci": 0x2007}
    if not layout.LITTLE_ENDIAN:
        kept["vlan_proto"] = VLAN
    (copy,) = taken(copies, record(segment.frame(), **kept))
    assert (copy.frame, copy.length) == (tagged[:196], len(tagged))


def test_a_limited_number_of_copies_in_their_order(copies):
    records = [record(Segment(flags="S", sport=n).frame()) for n in range(1, 8)]
    first = taken(copies, *records, limit=5)
    sports = [int.from_bytes(copy.frame[34:36], "big") for copy in [*first, *copies.take(5)]]
    assert (len(first), sports) == (5, [1, 2, 3, 4, 5, 6, 7])


def test_a_rule_has_the_lease_and_both_rates(copies):
    copies.install(OF_SYN, 12345)
    (entry,) = copies._window.copy_rules.values()
    assert (entry.expires_ns, entry.port.gap_ns, entry.bridge.gap_ns) == (12345, 100_000_000, 1_000_000)
    assert entry.port.burst_ns == entry.bridge.burst_ns == 1_000_000_000
    copies.remove(OF_SYN)
    (entry,) = copies._window.copy_rules.values()
    assert entry.expires_ns == 0


def test_counts(copies):
    assert (copies.counts(OF_SYN), copies.not_copied()) == ((0, 0), (0, 0))
    copies._window.copy_counts[RULES[OF_SYN]] = layout.fq_copy_count(matched=8, copied=7)
    copies._window.copy_state[0] = layout.fq_copy_state(suppressed=3, lost=2)
    assert (copies.counts(OF_SYN), copies.not_copied()) == ((8, 7), (3, 2))
    copies.reset_counts(OF_SYN)
    assert copies.counts(OF_SYN) == (0, 0)
