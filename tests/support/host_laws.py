"""Compiles the window laws for the host, to compare them with their twins in Python."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.law_spec import Gain

U64 = (1 << 64) - 1
RENAMED = {"window_in_force": "window"}
STATE = [name for name, _ in layout.STRUCTS["fq_law_state"]._fields_ if name != "pad"]


U30 = st.integers(0, 1 << 30)
_COUNT = st.integers(0, 100_000)
_STEP = st.one_of(
    st.tuples(st.just("saw_segment"), st.integers(0, 65_535), st.integers(0, 65_535)),
    st.tuples(st.just("tick"), st.integers(0, 2_500_000_000), U30, _COUNT, _COUNT),
    st.tuples(st.just("flow_began"), U30),
    st.tuples(st.just("opening"), st.integers(1, 4), st.sampled_from([0, 4096, 8192, 12_288, 12_296]), U30),
    st.tuples(st.just("flow_ended")),
    st.tuples(st.just("limited"), U30, U30, U30),
    st.tuples(st.just("window"), _COUNT, _COUNT, st.integers(0, 1 << 40), st.integers(1, 65_535)),
)
TRACES = st.lists(_STEP, max_size=60)


def parameters(made: Any, kinds: Any) -> st.SearchStrategy[Any]:
    """Parameters of laws of these kinds; ``made`` is the class ``LawParameters``."""
    return st.builds(
        made,
        kind=st.sampled_from(kinds),
        gain=st.sampled_from(Gain),
        rate=st.integers(1_000, 50_000_000_000),
        limit=st.integers(3_000, 1 << 30),
        target=st.integers(1, 1 << 30),
        interval_ns=st.integers(50_000, 10_000_000),
        base_rtt_ns=st.integers(0, 1_000_000_000),
        gain_q16=st.integers(0, 65_536),
        increments=st.integers(1, 1000),
        flags=st.integers(0, 7),
        floor_segments=st.integers(1, 10),
        linger_ns=st.integers(0, 1_000_000_000),
        calm=st.integers(0, 1 << 30),
        trim_step=st.integers(0, 100_000),
        young_bytes=st.integers(0, 1 << 30),
        first_window=st.integers(1, 100),
        limiting_segments=st.integers(1, 10),
        syn_allowance=st.integers(0, 8),
        weight_shift=st.integers(0, 16),
    )


def build(sources: Path, into: Path) -> ctypes.CDLL:
    """The laws of a folder (``laws/host.c`` and what it includes) as a library. Undefined behaviour ends the
    process: clang's checks are compiled in.
    """
    found = into / "laws.so"
    checks = ["-fsanitize=undefined,unsigned-shift-base", "-fsanitize-trap=all"]
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", *checks, "-shared", "-fPIC"]
    subprocess.run(["clang", *flags, "-o", str(found), str(sources / "laws/host.c")], check=True)
    library = ctypes.CDLL(str(found))
    library.fq_host_window.restype = library.fq_host_opening.restype = ctypes.c_uint32
    library.fq_host_acdc_acked.restype = ctypes.c_uint32
    return library


class CompiledLaw:
    """The C law, compiled for the host."""

    def __init__(self, library: ctypes.CDLL, parameters: Any) -> None:
        self.library = library
        self.parameters = layout.STRUCTS["fq_law"](**asdict(parameters))
        self.state = layout.STRUCTS["fq_law_state"]()
        self.refs = ctypes.byref(self.parameters), ctypes.byref(self.state)

    def saw_segment(self, one: int, other: int, now_ns: int) -> None:
        self.library.fq_host_segment(self.refs[1], one, other, ctypes.c_uint64(now_ns))

    def tick(self, seen: Any) -> bool:
        given = layout.STRUCTS["fq_law_input"](**asdict(seen))
        return bool(self.library.fq_host_tick(*self.refs, ctypes.byref(given)))

    def flow_began(self, backlog: int, now_ns: int) -> None:
        self.library.fq_host_flow_began(*self.refs, backlog, ctypes.c_uint64(now_ns))

    def opening(self, step: int, flags: int, backlog: int, now_ns: int) -> int:
        return int(self.library.fq_host_opening(*self.refs, step, flags, backlog, ctypes.c_uint64(now_ns)))

    def flow_ended(self) -> None:
        self.library.fq_host_flow_ended(*self.refs)

    def limited(self, flight: int, granted: int, rtt_ns: int, now_ns: int) -> None:
        times = ctypes.c_uint64(rtt_ns), ctypes.c_uint64(now_ns)
        self.library.fq_host_limited(self.refs[1], flight, granted, *times)

    def window(self, flows: int, young: int, sent: int, mss: int = 1460) -> int:
        return int(self.library.fq_host_window(*self.refs, flows, young, ctypes.c_uint64(sent), mss))

    def seen(self) -> dict[str, int]:
        return {name: getattr(self.state, name) for name in STATE}


def state_of(law: Any) -> dict[str, int]:
    names = {RENAMED.get(name, name): value for name, value in vars(law).items() if name != "parameters"}
    return {name: value & U64 for name, value in names.items()}


def steps_agree(law: Any, compiled: CompiledLaw, trace: list[Any], tick: Callable[..., Any]) -> None:
    """Drive a law and its compiled form with the same trace: results and states must be equal after each
    step. ``tick`` makes the input of a tick.
    """
    now, area = 10**12, U64 - 10**16  # in some traces the integral of the queue wraps
    for name, *values in trace:
        if name == "tick":
            elapsed, backlog, count, young = values
            now, area = now + elapsed, area + backlog * elapsed
            values = [tick(now, area & U64, backlog, count, young)]
        elif name in ("saw_segment", "flow_began", "limited", "opening"):
            values = [*values, now]
        results = [getattr(each, name)(*values) for each in (law, compiled)]
        assert results[0] == results[1], name
        assert state_of(law) == compiled.seen(), name


class CompiledAcdc:
    """A flow under the C code of the law acdc, compiled for the host."""

    def __init__(self, library: ctypes.CDLL, parameters: Any) -> None:
        self.library = library
        self.parameters = layout.STRUCTS["fq_law"](**asdict(parameters))
        self.state = layout.STRUCTS["fq_acdc"]()
        self.refs = ctypes.byref(self.parameters), ctypes.byref(self.state)

    def data_sent(self, backlog: int, length: int, payload: int, mss: int, again: bool) -> None:
        self.library.fq_host_acdc_sent(*self.refs, backlog, length, payload, mss, int(again))

    def acknowledged(self, seen: Any) -> int:
        given = layout.STRUCTS["fq_acdc_ack"](**asdict(seen))
        return int(self.library.fq_host_acdc_acked(*self.refs, ctypes.byref(given)))

    def seen(self) -> dict[str, int]:
        names = [name for name, _ in layout.STRUCTS["fq_acdc"]._fields_]
        return {name: getattr(self.state, name) for name in names}
