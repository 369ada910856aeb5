"""The queue laws as the switch runs them, compiled for the host: what tests drive, and traces of packets."""

from __future__ import annotations

import ctypes
import random
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fairq_ryu.agent import law_header, layout
from fairq_ryu.laws.red import RedLaw, slopes
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.laws.sfb import SfbLaw
from fairq_ryu.queue_law_spec import MOST_INTERVAL_US, MOST_TARGET_US, Variant
from tests.support.host_laws import WARNINGS

ONE = 1 << 32
"""Probabilities and random numbers are in 1 / 2^32."""
Recent: Any = layout.STRUCTS["fq_recent"]
"""``samples_q16`` as they counted ``at``, in 2^20 ns."""


class Verdict(IntEnum):
    """What a law decides about a packet (``FQ_PASS``, ``FQ_DROP``, ``FQ_MARK``)."""

    PASS = 0
    DROP = 1
    MARK = 2


@dataclass(frozen=True, slots=True)
class QueueLawParameters:
    """``fq_queue_law`` of ``queue_law_layout.h``, and what laws have of their own; a law uses those of its
    struct. Sizes in bytes, times in ns, ``rate`` in bytes/s.
    """

    kind: int
    rate: int
    limit_bytes: int = 125_000
    target_ns: int = 5_000_000
    interval_ns: int = 100_000_000
    update_ns: int = 6_250_000
    target_bytes: int = 25_000
    mark_bytes: int = 30_280
    min_bytes: int = 10_416
    max_bytes: int = 31_250
    max_p_q32: int = 429_496_730
    shadow_packets: int = 2000
    sample_every: int = 10
    bin_packets: int = 20
    bin_most: int = 25
    seed: int = 0
    table: int = 0
    variant: int = Variant.PAPER
    weight_shift: int = 9
    ecn: bool = False
    by_bytes: bool = False
    abrupt: bool = False
    slope_q48: int = field(init=False)
    steep_q48: int = field(init=False)

    def __post_init__(self) -> None:
        """Divide once, as the agent does."""
        slope, steep = slopes(self.min_bytes, self.max_bytes, self.max_p_q32)
        object.__setattr__(self, "slope_q48", slope)
        object.__setattr__(self, "steep_q48", steep)

    def made(self, table: int | None = None) -> Any:
        """The structure. ``table``: another one."""
        law = queue_laws()[self.kind]
        given = {each.name: getattr(self, each.name) for each in law.parameters() if hasattr(self, each.name)}
        needs = {"ECN": self.ecn, "FLOWS": law.keeps_flows, "BINS": law.keeps_bins}
        found = layout.fq_queue_law(
            rate=self.rate,
            limit_bytes=self.limit_bytes,
            seed=self.seed,
            table=self.table if table is None else table,
            flags=sum(layout.CONSTANTS[f"FQ_QLAW_{name}"] for name, wanted in needs.items() if wanted),
            kind=self.kind,
            unit=law(**given).unit,
        )
        layout.fill_own(law(), found, self.limit_bytes, self.rate)
        self._fill(layout.own(f"{law.name}_law", found))
        return found

    def _fill(self, struct: Any) -> None:
        for name, kind in struct._fields_:
            if issubclass(kind, ctypes.Structure):
                self._fill(getattr(struct, name))
            elif hasattr(self, name):
                setattr(struct, name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class Packet:
    """``fq_queue_law_input``: a packet that arrives, what it finds, and the random number that it gets.

    ``backlog`` bytes in the queue, ``low`` their least since the last packet; ``len`` bytes; ``random`` of 32
    bits; ``ect`` whether it is ECN-capable; ``segments`` that it is on the wire.
    """

    now_ns: int
    backlog: int
    low: int
    len: int
    hash: int
    random: int
    ect: bool = False
    segments: int = 1


U32 = st.integers(0, 0xFFFFFFFF)
SIZE = st.integers(0, 300_000)

_FLOW = st.sampled_from([1, 2, 0x0801, 0x12345678, 0xFFFFFFFF, 2048 + 1])
"""Of hashes, two of which have the same slot."""
_RANDOM = st.one_of(U32, st.sampled_from([0, 1, 0xFFFF, 0xFFFFFFFF]))
_PACKET = st.tuples(
    st.one_of(st.integers(0, 20_000_000), st.integers(0, 20_000_000_000)),
    st.one_of(SIZE, st.just(0)),
    st.one_of(SIZE, st.just(0xFFFFFFFF)),
    st.integers(0, 70_000),
    _FLOW,
    _RANDOM,
    st.booleans(),
    st.one_of(st.just(1), st.integers(1, 400)),
)
TRACES = st.lists(_PACKET, max_size=80)


def parameters(kind: int) -> st.SearchStrategy[QueueLawParameters]:
    """Parameters of a law of this kind."""
    return st.builds(
        QueueLawParameters,
        kind=st.just(kind),
        rate=st.integers(1_000, 50_000_000_000),
        limit_bytes=st.integers(3_000, 1 << 30),
        target_ns=st.integers(1_000, MOST_TARGET_US * 1000),
        interval_ns=st.integers(10_000, MOST_INTERVAL_US * 1000),
        update_ns=st.integers(0, 1_000_000_000),
        target_bytes=st.integers(0, 1 << 30),
        mark_bytes=st.one_of(SIZE, U32),
        min_bytes=SIZE,
        max_bytes=st.integers(300_001, 1_000_000) if kind != RedLaw.kind else st.integers(1, 400_000),
        max_p_q32=U32,
        shadow_packets=st.integers(1, 20),
        sample_every=st.integers(1, 3),
        bin_packets=st.integers(1, 30),
        bin_most=st.integers(1, 40),
        seed=U32,
        variant=st.sampled_from(Variant),
        weight_shift=st.integers(1, 20),
        ecn=st.booleans(),
        by_bytes=st.booleans(),
        abrupt=st.booleans(),
    ).map(_ordered)


def _ordered(made: QueueLawParameters) -> QueueLawParameters:
    low, high = sorted((made.min_bytes, made.max_bytes))
    return replace(made, min_bytes=low, max_bytes=max(high, 1))


def packets(trace: Iterable[tuple[int, int, int, int, int, int, bool, int]]) -> Iterator[Packet]:
    """The packets of a trace: its first column is the time since the one before."""
    now = 10**12
    for elapsed, *rest in trace:
        now += elapsed
        yield Packet(now, *rest)  # type: ignore[arg-type]


def busy_trace(rounds: int, seed: int, flows: int = 5, rate: int = 12_500_000) -> list[Packet]:
    """Packets of flows with different rates into a queue that grows and drains, at ``rate`` bytes/s."""
    made, source, now, backlog = [], random.Random(seed), 10**12, 0
    for number in range(rounds):
        # Half of the time more than the port sends, half of the time less.
        elapsed = source.randrange(2 * (90_000 if number // 700 % 2 else 135_000))
        now += elapsed
        low = max(0, backlog - rate * elapsed // 10**9)
        length, segments = source.choice(((66, 1), (1514, 1), (1514, 1), (1514, 1), (4542, 3)))
        flow = min(source.randrange(1, flows + 1), source.randrange(1, flows + 1)) * 0x9E3779B1 & 0xFFFFFFFF
        made.append(
            Packet(now, low, low, length, flow, source.getrandbits(32), source.random() < 0.5, segments)
        )
        backlog = min(low + length, 250_000)
    return made


def build(sources: Path, into: Path) -> ctypes.CDLL:
    """The queue laws of a folder (``laws/queue_host.c`` and what it includes) as a library. Undefined
    behaviour ends the process: clang's checks are compiled in.
    """
    found = into / "queue_laws.so"
    checks = ["-fsanitize=undefined,unsigned-shift-base", "-fsanitize-trap=all"]
    flags = ["-O1", *WARNINGS, *checks, "-shared", "-fPIC", f"-I{into}"]
    law_header.write(into)
    subprocess.run(["clang", *flags, "-o", str(found), str(sources / "laws/queue_host.c")], check=True)
    made = ctypes.CDLL(str(found))
    made.fq_host_judge.restype = made.fq_host_flow_hash.restype = ctypes.c_uint32
    made.fq_host_recent.restype = made.fq_host_red_left.restype = ctypes.c_uint64
    made.fq_host_afcd_target.restype = ctypes.c_uint64
    return made


@cache
def library() -> ctypes.CDLL:
    """Our laws, compiled once for a process."""
    with tempfile.TemporaryDirectory() as folder:
        return build(layout.BPF_DIR, Path(folder))


class HostQueueLaw:
    """One law on one port: ``state`` (``fq_queue_law_state``), ``table`` of flows and ``bins`` of SFB."""

    def __init__(self, parameters: QueueLawParameters) -> None:
        self.parameters = parameters
        self.state, self.table, self.bins = (
            layout.fq_queue_law_state(),
            layout.fq_flow_table(),
            layout.fq_sfb_bins(),
        )

    @property
    def counts(self) -> Any:
        """What the law has done."""
        return self.state.counts

    @property
    def parts(self) -> tuple[bytes, ...]:
        """State and tables, to be compared."""
        return bytes(self.state), bytes(self.table), bytes(self.bins)

    def _law(self) -> Any:
        return ctypes.byref(self.parameters.made())

    def own(self, struct: str) -> Any:
        """The part of the state that is the law's own, as this struct."""
        return layout.own(struct, self.state)

    def judge(self, packet: Packet) -> Verdict:
        """Decide about a packet that is about to enter the queue."""
        refs = (ctypes.byref(each) for each in (self.state, self.table, self.bins))
        given = layout.fq_queue_law_input(**asdict(packet))
        return Verdict(library().fq_host_judge(self._law(), *refs, ctypes.byref(given)))

    def entered(self, hash_: int, segments: int = 1) -> None:
        """A packet that passed or was marked has entered the queue: for SFB."""
        library().fq_host_entered(ctypes.byref(self.bins), ctypes.c_uint32(hash_), ctypes.c_uint32(segments))

    def left(self, hash_: int, segments: int = 1) -> None:
        """... has left it."""
        library().fq_host_left(ctypes.byref(self.bins), ctypes.c_uint32(hash_), ctypes.c_uint32(segments))

    def target(self, samples: int) -> int:
        """AFCD's target of a flow with so many samples, ns."""
        return int(library().fq_host_afcd_target(self._law(), ctypes.byref(self.state), samples))

    def least_passing(self, packet: Packet) -> int:
        """The least random number with which a packet passes, by search; it changes nothing."""
        kept = [(each, bytes(each)) for each in (self.state, self.table, self.bins)]
        low, high = 0, ONE
        while low < high:
            middle = (low + high) // 2
            passed = self.judge(replace(packet, random=min(middle, ONE - 1))) == Verdict.PASS
            low, high = (low, middle) if passed else (middle + 1, high)
            for each, data in kept:
                ctypes.memmove(ctypes.byref(each), data, len(data))
        return low


def run(
    parameters: QueueLawParameters, trace: Iterable[Packet]
) -> Iterator[tuple[HostQueueLaw, Packet, Verdict]]:
    """A law, after each packet of a trace, and its verdict. SFB's packets that passed are in the queue until
    later ones find less.
    """
    law = HostQueueLaw(parameters)
    waiting: list[Packet] = []
    for packet in trace:
        verdict = law.judge(packet)
        if parameters.kind == SfbLaw.kind:
            if verdict != Verdict.DROP:
                waiting.append(packet)
                law.entered(packet.hash, packet.segments)
            while waiting and sum(each.len for each in waiting) > packet.backlog:
                done = waiting.pop(0)
                law.left(done.hash, done.segments)
        yield law, packet, verdict
