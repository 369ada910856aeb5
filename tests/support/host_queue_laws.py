"""Compiles the queue laws for the host, to compare them with their twins in Python."""

from __future__ import annotations

import ctypes
import random
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.policies.queue_laws import Packet, QueueLaw, QueueLawParameters, Sfb, make_law
from fairq_ryu.queue_law_spec import QUEUE_LAW_BOUNDS, QueueLawKind, Variant

STATE = [
    name for name, _ in layout.fq_queue_law_state._fields_ if name not in ("counts", "codel", "mean", "pad")
]
CODEL = [name for name, _ in layout.fq_codel._fields_]
COUNTS = [name for name, _ in layout.fq_queue_law_counts._fields_]
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


def parameters(kind: QueueLawKind) -> st.SearchStrategy[QueueLawParameters]:
    """Parameters of a law of this kind."""
    return st.builds(
        QueueLawParameters,
        kind=st.just(kind),
        rate=st.integers(1_000, 50_000_000_000),
        limit_bytes=st.integers(3_000, 1 << 30),
        target_ns=st.integers(1_000, QUEUE_LAW_BOUNDS["target_us"][1] * 1000),
        interval_ns=st.integers(10_000, QUEUE_LAW_BOUNDS["interval_us"][1] * 1000),
        update_ns=st.integers(0, 1_000_000_000),
        target_bytes=st.integers(0, 1 << 30),
        mark_bytes=st.one_of(SIZE, U32),
        min_bytes=SIZE,
        max_bytes=st.integers(300_001, 1_000_000) if kind != QueueLawKind.RED else st.integers(1, 400_000),
        max_p_q32=U32,
        shadow_packets=st.integers(1, 20),
        sample_every=st.integers(1, 3),
        fair_q16=st.one_of(st.just(0), st.integers(0, 2000 << 16)),
        bin_packets=st.integers(1, 30),
        bin_most=st.integers(1, 40),
        seed=U32,
        variant=st.sampled_from(Variant),
        flags=st.integers(0, 7),
        weight_shift=st.integers(1, 20),
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
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", *checks, "-shared", "-fPIC"]
    subprocess.run(["clang", *flags, "-o", str(found), str(sources / "laws/queue_host.c")], check=True)
    library = ctypes.CDLL(str(found))
    library.fq_host_judge.restype = library.fq_host_flow_hash.restype = ctypes.c_uint32
    return library


class CompiledQueueLaw:
    """The C law, compiled for the host."""

    def __init__(self, library: ctypes.CDLL, parameters: QueueLawParameters) -> None:
        self.library = library
        self.state, self.flows, self.bins = (
            layout.fq_queue_law_state(),
            layout.fq_flow_table(),
            layout.fq_sfb_bins(),
        )
        self.parameters = layout.fq_queue_law(**asdict(parameters))
        given = (self.parameters, self.state, self.flows, self.bins)
        self.refs = tuple(ctypes.byref(each) for each in given)

    def judge(self, packet: Packet) -> int:
        given = layout.fq_queue_law_input(**asdict(packet))
        return int(self.library.fq_host_judge(*self.refs, ctypes.byref(given)))

    def entered(self, hash_: int, segments: int) -> None:
        self.library.fq_host_entered(self.refs[3], ctypes.c_uint32(hash_), ctypes.c_uint32(segments))

    def left(self, hash_: int, segments: int) -> None:
        self.library.fq_host_left(self.refs[3], ctypes.c_uint32(hash_), ctypes.c_uint32(segments))


def _codel(state: Any) -> dict[str, int]:
    return {name: int(getattr(state, name)) for name in CODEL}


def state_of(law: QueueLaw) -> dict[str, Any]:
    """The state of a twin, as :func:`compiled_state` has that of the C law."""
    found: dict[str, Any] = {name: int(getattr(law, name, 0)) for name in STATE}
    found["counts"] = asdict(law.counts)
    found["codel"] = _codel(law.codel) if hasattr(law, "codel") else dict.fromkeys(CODEL, 0)
    slots = getattr(law, "slots", {})
    found["slots"] = {n: each.first_above_ns for n, each in slots.items() if each.first_above_ns}
    mean = getattr(law, "mean", None)
    found["mean"] = (mean.samples_q16, mean.at) if mean else (0, 0)
    recent = getattr(law, "recent", {})
    found["recent"] = {n: (each.samples_q16, each.at) for n, each in recent.items() if each.samples_q16}
    for name in ("samples", "shadow", "queued", "p_q16"):
        found[name] = {n: each for n, each in enumerate(getattr(law, name, ())) if each}
    return found


def compiled_state(state: Any, flows: Any, bins: Any) -> dict[str, Any]:
    """The state of a law in the structures of the layout; tables with what is not 0."""
    found: dict[str, Any] = {name: getattr(state, name) for name in STATE}
    found["counts"] = {name: getattr(state.counts, name) for name in COUNTS}
    found["codel"] = _codel(state.codel)
    found["slots"] = {n: each for n, each in enumerate(flows.first_above_ns) if each}
    found["mean"] = (state.mean.samples_q16, state.mean.at)
    recent = enumerate(flows.recent)
    found["recent"] = {n: (each.samples_q16, each.at) for n, each in recent if each.samples_q16}
    tables = {"samples": flows.samples, "shadow": flows.shadow, "queued": bins.queued, "p_q16": bins.p_q16}
    for name, table in tables.items():
        found[name] = {n: each for n, each in enumerate(table) if each}
    return found


def agree(
    library: ctypes.CDLL, made: QueueLawParameters, trace: Iterable[Packet], every: int = 1
) -> QueueLaw:
    """Drive a law and its compiled form with the same packets: verdicts must be equal, and states after each
    ``every`` packets. SFB's packets that passed are in the queue until later ones find less.
    """
    law, compiled = make_law(made), CompiledQueueLaw(library, made)
    waiting: list[Packet] = []
    for number, packet in enumerate(trace):
        verdicts = law.judge(packet), compiled.judge(packet)
        assert verdicts[0] == verdicts[1], (number, packet)
        if isinstance(law, Sfb):
            if verdicts[0] != 1:
                waiting.append(packet)
                law.entered(packet.hash, packet.segments)
                compiled.entered(packet.hash, packet.segments)
            while waiting and sum(each.len for each in waiting) > packet.backlog:
                done = waiting.pop(0)
                law.left(done.hash, done.segments)
                compiled.left(done.hash, done.segments)
        if number % every == 0:
            assert state_of(law) == compiled_state(compiled.state, compiled.flows, compiled.bins)
    assert state_of(law) == compiled_state(compiled.state, compiled.flows, compiled.bins)
    return law
