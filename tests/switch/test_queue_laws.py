"""The queue laws in the kernel: the same decisions as on the host, CE marks, drops, leases, slots."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from ctypes import c_uint32
from dataclasses import dataclass
from typing import Any

import pytest

from bench.program_run import UNSPEC, LoadedProgram, Run, can_sum
from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.queue_law import QueueLawProgram
from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.laws.afq import AfqLaw
from fairq_ryu.laws.codel import CodelLaw
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.laws.red import RedLaw
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.laws.sfb import SfbLaw
from fairq_ryu.model import Thresholds
from fairq_ryu.queue_law_spec import Variant
from tests.support.flow_hash import flow_hash
from tests.support.host_queue_laws import QueueLawParameters, busy_trace
from tests.support.queue_law_run import GivenJudge, compile_run
from tests.switch import packets
from tests.switch.packets import Segment
from tests.switch.queue_rig import send, set_queue_limits, wait_empty
from tests.switch.rig import PATIENT, Connection, Switch

STOLEN = 4
PORT = 2
RATE = 12_500_000
K = 30_000
SEED = 99
SHAPES = {
    "IPv4": Segment(),
    "IPv4 options": Segment(ip_options=b"\x01" * 8),
    "one tag": Segment(vlans=((packets.VLAN, 7),)),
    "two tags": Segment(vlans=((packets.QINQ, 8), (packets.VLAN, 7))),
    "IPv6": Segment("fd00::1", "fd00::2"),
    "IPv6 extensions, a tag": Segment(
        "fd00::1", "fd00::2", vlans=((packets.VLAN, 7),), extensions=((packets.HOP_BY_HOP, bytes(6)),)
    ),
}


def with_ecn(frame: bytes, ecn: int) -> bytes:
    """The frame with this ECN field, and a right header checksum."""
    off = 14
    while frame[off - 2 : off] in (b"\x81\x00", b"\x88\xa8"):
        off += 4
    ip = bytearray(frame[off:])
    if ip[0] >> 4 == 6:
        ip[1] = ip[1] & 0xCF | ecn << 4
    else:
        ip[1] = ip[1] & 0xFC | ecn
        length = (ip[0] & 15) * 4
        ip[10:12] = b"\0\0"
        ip[10:12] = struct.pack(">H", packets.checksum(bytes(ip[:length])))
    return frame[:off] + bytes(ip)


@dataclass
class Laws:
    """The program of queue laws beside a switch."""

    switch: Switch
    program: QueueLawProgram
    judge: LoadedProgram
    before: Any = None
    """what the port's laws had counted when the test began"""

    @property
    def ifindex(self) -> int:
        return self.switch.ports[PORT].ifindex

    def install(self, kind: int, lease: float = 3600, law_id: int = 1, **settings: Any) -> None:
        given = QueueLawParameters(kind, RATE, **{"seed": SEED, "mark_bytes": K} | settings)
        expires = time.monotonic_ns() + int(lease * 1e9)
        self.program.install(self.ifindex, law_id, given.made(), expires)

    def queue(self, backlog: int, low: int | None = None, age: float = -60) -> None:
        """The queue of the port has this length; it stays so for a minute, however slow the machine."""
        slot = c_uint32(self.switch.datapath.window.slots[self.ifindex])
        depth = layout.fq_depth(
            last_ns=time.monotonic_ns() - int(age * 1e9), backlog=backlog, low=backlog if low is None else low
        )
        self.switch.datapath.queues.law_maps.depths.set(slot, depth)

    def run(self, frame: bytes, control: tuple[int, ...] = ()) -> Run:
        return self.judge.run(frame, self.ifindex, control=control, summed=can_sum())

    @property
    def counts(self) -> Any:
        """What the port's laws have counted in this test."""
        now = self.program.state(self.ifindex).counts
        grown = {name: getattr(now, name) - getattr(self.before, name) for name, _ in now._fields_}
        return layout.fq_queue_law_counts(**grown)


@pytest.fixture(scope="module")
def loaded_laws(loaded_switch: Switch) -> Iterator[Laws]:
    data = loaded_switch.datapath
    program = QueueLawProgram(data.window._lib, data.window, data.queues, data.drops, PATIENT.ports)
    program.load()
    for port in loaded_switch.ports.values():
        program.add_port(port.ifindex)
    laws = Laws(loaded_switch, program, None)  # type: ignore[arg-type]
    laws.install(MarkLaw.kind)
    laws.judge = LoadedProgram(os.dup(program._program))
    try:
        yield laws
    finally:
        laws.judge.close()
        program.close()


@pytest.fixture
def laws(loaded_laws: Laws, switch: Switch) -> Iterator[Laws]:
    """No port has a law; the queue is empty."""
    loaded_laws.program.remove(loaded_laws.ifindex)
    loaded_laws.before = loaded_laws.program.counts(loaded_laws.ifindex)
    loaded_laws.queue(0)
    yield loaded_laws
    loaded_laws.program.remove(loaded_laws.ifindex)
    switch.datapath.set_thresholds(PORT, None)


@pytest.fixture(scope="module")
def judge(own_namespace: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GivenJudge]:
    made = GivenJudge(compile_run(tmp_path_factory.mktemp("run")))
    yield made
    made.close()


CASES = [(kind, Variant.PAPER) for kind in queue_laws()]
CASES += [(kind, each) for kind in (AfqLaw.kind, AfcdLaw.kind) for each in list(Variant)[1:]]


@pytest.mark.parametrize(("kind", "variant"), CASES)
def test_kernel_and_host_agree_bit_for_bit(judge: GivenJudge, kind: int, variant: Variant) -> None:
    parameters = QueueLawParameters(
        kind,
        RATE,
        interval_ns=10_000_000,
        shadow_packets=100,
        sample_every=2,
        variant=variant,
        ecn=True,
        bin_packets=3,
        bin_most=12,
    )
    judge.agrees(parameters, busy_trace(1200, 5), every=150)


@pytest.mark.parametrize("shape", SHAPES)
def test_only_packets_that_are_capable_are_marked(laws: Laws, shape: str) -> None:
    """0 to 2 tags, IPv4 and IPv6, any ECN field; nothing else in the packet changes."""
    plain = SHAPES[shape].frame()
    laws.install(MarkLaw.kind)
    for backlog in (0, K):
        laws.queue(backlog)
        for ecn in range(4):
            before = with_ecn(plain, ecn)
            expected = with_ecn(plain, 3) if backlog and ecn else before
            result = laws.run(before)
            assert (result.verdict, result.packet) == (UNSPEC, expected), (backlog, ecn)
    counts = laws.counts
    assert (counts.judged, counts.marked, counts.not_ect, counts.unmarked) == (8, 3, 2, 1)


def test_what_is_no_ip_is_judged_and_never_marked(laws: Laws) -> None:
    laws.install(MarkLaw.kind)
    laws.queue(K)
    for frame in (packets.MACS + b"\x08\x06" + bytes(46), packets.MACS + b"\x08\x00" + bytes(20), bytes(40)):
        result = laws.run(frame)
        assert (result.verdict, result.packet) == (UNSPEC, frame)
    assert (laws.counts.judged, laws.counts.not_ect, laws.counts.marked) == (3, 3, 0)


def fill(laws: Laws) -> None:
    """A queue and an average at which RED drops everything."""
    laws.install(RedLaw.kind, min_bytes=100, max_bytes=200, weight_shift=1)
    laws.queue(100_000)


def test_a_drop_is_no_error_for_the_sender_and_is_handed_over(laws: Laws) -> None:
    data = laws.switch.datapath
    frame = Segment(payload=bytes(500)).frame()
    fill(laws)
    assert laws.run(frame).verdict == STOLEN
    assert data.drops.take(100) == []  # the port does not report drops
    data.set_thresholds(PORT, Thresholds(0, 0, True))
    assert laws.run(frame).verdict == STOLEN
    long = Segment(payload=bytes(3000)).frame()
    assert laws.run(long).verdict == STOLEN
    taken = data.drops.take(100)
    assert [(each.ifindex, each.length) for each in taken] == [
        (laws.ifindex, len(frame)),
        (laws.ifindex, len(long)),
    ]
    assert taken[0].frame == frame and taken[1].frame[:34] == long[:34]
    counts = laws.counts
    assert (counts.judged, counts.dropped) == (3, 3)
    assert counts.dropped_bytes == 2 * len(frame) + len(long)
    assert data.drops.dropped_before_full(laws.ifindex) == 0


def test_after_its_lease_a_law_does_nothing(laws: Laws) -> None:
    laws.install(MarkLaw.kind, lease=-1)
    laws.queue(K)
    before = with_ecn(Segment().frame(), 1)
    assert laws.run(before).packet == before and laws.counts.judged == 0
    laws.install(MarkLaw.kind)
    assert laws.run(before).packet == with_ecn(before, 3)
    laws.program.remove(laws.ifindex)
    assert laws.run(before).packet == before and laws.program.state(laws.ifindex) is None


def test_a_renewal_keeps_the_state_and_another_law_only_the_counts(laws: Laws) -> None:
    frame = Segment().frame()
    laws.install(AfqLaw.kind, sample_every=1)
    laws.run(frame)
    laws.install(AfqLaw.kind, sample_every=2)
    laws.run(frame)
    assert (laws.counts.judged, laws.program.state(laws.ifindex).filled) == (2, 1)
    changes = ({"kind": AfcdLaw.kind}, {"law_id": 2}, {"shadow_packets": 10}, {"seed": 1})
    for number, change in enumerate(changes):
        laws.install(**({"kind": AfqLaw.kind, "sample_every": 1} | change))
        state = laws.program.state(laws.ifindex)
        assert (state.filled, state.last_ns, laws.counts.judged) == (0, 0, 2 + number), change
        laws.run(frame)


def test_the_mean_of_red_starts_anew_with_another_weight(laws: Laws) -> None:
    """It is stored in units of the weight: a shorter one would make the mean many times too long."""
    laws.install(RedLaw.kind, weight_shift=9)
    laws.run(Segment().frame())
    laws.install(RedLaw.kind, weight_shift=9, max_p_q32=1)
    assert laws.program.state(laws.ifindex).last_ns > 0
    laws.install(RedLaw.kind, weight_shift=5)
    assert laws.program.state(laws.ifindex).last_ns == 0


def test_flow_tables_are_limited_and_used_again(laws: Laws) -> None:
    free = len(laws.program._free_tables)
    for law_id in range(2 * free):
        laws.install(AfqLaw.kind, law_id=law_id, sample_every=1)
        laws.run(Segment().frame())
        assert laws.program.state(laws.ifindex).flows == 1
    laws.program.remove(laws.ifindex)
    assert len(laws.program._free_tables) == free


def fragment(frame: bytes) -> bytes:
    """The frame as the first fragment of a packet."""
    return with_ecn(frame[:20] + b"\x20\x00" + frame[22:], 0)


def udp(frame: bytes) -> bytes:
    return with_ecn(frame[:23] + b"\x11" + frame[24:], 0)


def test_flows_are_known_by_addresses_ports_and_protocol(laws: Laws) -> None:
    v4, v6 = ("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")
    plain = Segment().frame()
    cases = [(shape.frame(), (*(v6 if ":" in shape.src else v4), 40000, 80, 6)) for shape in SHAPES.values()]
    cases += [(fragment(plain), (*v4, 0, 0, 6)), (udp(plain), (*v4, 40000, 80, 17))]
    for number, (frame, flow) in enumerate(cases):
        laws.install(AfqLaw.kind, law_id=100 + number, sample_every=1)
        laws.run(frame)
        (law,) = laws.program._laws[laws.ifindex].values()
        table = laws.program._tables.get(c_uint32(law.table or 0))
        assert table is not None
        used = [slot for slot, samples in enumerate(table.samples) if samples]
        assert used == [flow_hash(*flow, SEED) % 2048], flow


def test_the_window_program_hands_on_the_slot_and_the_time(laws: Laws) -> None:
    """The packets of a connection are judged without a look-up of their port; the result is the same."""
    switch = laws.switch
    flow = Connection(switch).open()
    laws.install(MarkLaw.kind)
    laws.queue(K)
    data = with_ecn(flow.from_client(payload=b"d" * 100).frame(), 2)
    found = switch.program.run(data, laws.ifindex).control
    slot = switch.datapath.window.slots[laws.ifindex]
    assert found[1] == slot and abs((found[3] << 32 | found[2]) - time.monotonic_ns()) < 10**10
    assert laws.run(data, found).packet == with_ecn(data, 3)
    ends = laws.program.state(laws.ifindex).last_ns
    assert ends == found[3] << 32 | found[2]
    # What is no TCP, or what something else has left, or of another port: it is looked up.
    arp = switch.program.run(packets.MACS + b"\x08\x06" + bytes(46), laws.ifindex).control
    assert arp[0] == 0
    other = switch.datapath.window.slots[switch.ports[1].ifindex]
    for control in (arp, (0, slot, 1, 1), (found[0], other, 1, 1), (found[0], 1 << 31, 1, 1)):
        assert laws.run(data, control).packet == with_ecn(data, 3)
        assert laws.program.state(laws.ifindex).last_ns > ends
    assert laws.counts.judged == 5


def test_a_backlog_that_is_stale_is_not_believed(laws: Laws) -> None:
    laws.install(MarkLaw.kind)
    laws.queue(K, age=2)
    before = with_ecn(Segment().frame(), 1)
    assert laws.run(before).packet == before


def test_the_least_queue_since_the_last_packet_counts(laws: Laws) -> None:
    """CoDel: a queue that ran empty between two packets was below the target."""
    laws.install(CodelLaw.kind, interval_ns=1, target_ns=1)
    frame, verdicts = Segment().frame(), []
    for low in (K, K, 0, K):
        laws.queue(K, low)
        verdicts.append(laws.run(frame).verdict)
    assert verdicts == [UNSPEC, STOLEN, UNSPEC, UNSPEC]


def test_a_port_that_is_only_observed_has_no_filter(laws: Laws) -> None:
    attached = laws.program.filter.attached_program
    laws.install(MarkLaw.kind)
    assert attached(laws.ifindex)
    laws.program.observe(laws.ifindex, True)
    laws.install(MarkLaw.kind)
    assert not attached(laws.ifindex)
    laws.program.observe(laws.ifindex, False)
    assert attached(laws.ifindex)
    laws.program.remove(laws.ifindex)
    assert not attached(laws.ifindex)


def test_the_queue_program_tells_the_depth_and_counts_the_bins_of_sfb(laws: Laws) -> None:
    """Real packets into a slow queue: each that waits is counted in one bin of each level."""
    name = laws.switch.ports[PORT].name
    set_queue_limits(name, "40kbit", 200_000)
    laws.install(SfbLaw.kind)
    send(name, 20, 1000)
    table = next(iter(laws.program._laws[laws.ifindex].values())).table or 0
    maps = laws.switch.datapath.queues.law_maps
    slot = c_uint32(laws.switch.datapath.window.slots[laws.ifindex])
    for _ in range(20):  # unless a packet leaves meanwhile
        before, bins, depth = maps.depths.get(slot), maps.bins.get(c_uint32(table)), maps.depths.get(slot)
        assert before is not None and bins is not None and depth is not None
        if before.last_ns == depth.last_ns:
            break
    waiting = [n for n in bins.queued if n]
    assert len(waiting) == 8 and len(set(waiting)) == 1
    assert 15 <= waiting[0] <= 20 and depth.backlog == 1000 * waiting[0]
    assert laws.counts.judged >= 20
    set_queue_limits(name, "1gbit burst 200k cburst 200k", 200_000)
    wait_empty(name)
    left = maps.bins.get(c_uint32(table))
    assert left is not None and not any(left.queued)
