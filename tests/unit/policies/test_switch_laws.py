"""The window laws of the switch: the C code and its twin give the same state, bit for bit, for any trace."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import asdict, fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.law_spec import Gain, LawFlags, LawKind
from fairq_ryu.policies import switch_laws
from fairq_ryu.policies.switch_laws import Law, LawInput, LawParameters

U64 = (1 << 64) - 1
RENAMED = {"window_in_force": "window"}
STATE = [name for name, _ in layout.STRUCTS["fq_law_state"]._fields_ if name != "pad"]


class CompiledLaw:
    """The C law, compiled for the host."""

    def __init__(self, library: ctypes.CDLL, parameters: LawParameters) -> None:
        self.library = library
        self.parameters = layout.STRUCTS["fq_law"](**asdict(parameters))
        self.state = layout.STRUCTS["fq_law_state"]()
        self.refs = ctypes.byref(self.parameters), ctypes.byref(self.state)

    def saw_segment(self, mss: int) -> None:
        self.state.segment = max(self.state.segment, mss)

    def tick(self, seen: LawInput) -> bool:
        given = layout.STRUCTS["fq_law_input"](**asdict(seen))
        return bool(self.library.fq_host_tick(*self.refs, ctypes.byref(given)))

    def flow_began(self, backlog: int, now_ns: int) -> None:
        self.library.fq_host_flow_began(*self.refs, backlog, ctypes.c_uint64(now_ns))

    def flow_ended(self) -> None:
        self.library.fq_host_flow_ended(*self.refs)

    def limited(self, flight: int, granted: int, now_ns: int) -> None:
        self.library.fq_host_limited(self.refs[1], flight, granted, ctypes.c_uint64(now_ns))

    def window(self, flows: int, young: int, sent: int) -> int:
        return int(self.library.fq_host_window(*self.refs, flows, young, ctypes.c_uint64(sent)))

    def seen(self) -> dict[str, int]:
        return {name: getattr(self.state, name) for name in STATE}


def state_of(law: Law) -> dict[str, int]:
    names = {RENAMED.get(name, name): value for name, value in vars(law).items() if name != "parameters"}
    return {name: value & U64 for name, value in names.items()}


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """With clang's checks of undefined behaviour: they end the process."""
    found = tmp_path_factory.mktemp("laws") / "laws.so"
    source = layout.BPF_DIR / "laws/host.c"
    checks = ["-fsanitize=undefined,unsigned-shift-base", "-fsanitize-trap=all"]
    clang = shutil.which("clang")
    assert clang, "clang compiles the eBPF programs: set-up installs it"
    subprocess.run(
        [clang, "-O1", "-Wall", "-Wextra", "-Werror", *checks, "-shared", "-fPIC", "-o", found, source],
        check=True,
    )
    library = ctypes.CDLL(str(found))
    library.fq_host_window.restype = ctypes.c_uint32
    return library


parameters = st.builds(
    LawParameters,
    kind=st.sampled_from(LawKind),
    gain=st.sampled_from(Gain),
    rate=st.integers(1_000, 50_000_000_000),
    limit=st.integers(3_000, 1 << 30),
    target=st.integers(1, 1 << 30),
    interval_ns=st.integers(50_000, 10_000_000),
    base_rtt_ns=st.integers(0, 1_000_000_000),
    gain_q16=st.integers(0, 65_536),
    increments=st.integers(1, 1000),
    flags=st.integers(0, 3),
    floor_segments=st.integers(1, 10),
    linger_ns=st.integers(0, 1_000_000_000),
    calm=st.integers(0, 1 << 30),
    trim_step=st.integers(0, 100_000),
    young_bytes=st.integers(0, 1 << 30),
    first_window=st.integers(1, 100),
    limiting_segments=st.integers(1, 10),
)
U30 = st.integers(0, 1 << 30)
flows = st.integers(0, 100_000)
step = st.one_of(
    st.tuples(st.just("saw_segment"), st.integers(0, 9_000)),
    st.tuples(st.just("tick"), st.integers(0, 50_000_000), U30, flows, flows),
    st.tuples(st.just("flow_began"), U30),
    st.tuples(st.just("flow_ended")),
    st.tuples(st.just("limited"), U30, U30),
    st.tuples(st.just("window"), flows, flows, st.integers(0, 1 << 40)),
)


@settings(max_examples=400)
@given(parameters, st.lists(step, max_size=60))
def test_both_laws_do_the_same(library, parameters, trace):
    law, compiled = Law(parameters), CompiledLaw(library, parameters)
    now, area = 10**12, 0
    for name, *values in trace:
        results = []
        if name == "tick":
            elapsed, backlog, count, young = values
            now, area = now + elapsed, area + backlog * elapsed
            values = [LawInput(now, area, backlog, count, young)]
        elif name in ("flow_began", "limited"):
            values = [*values, now]
        results = [getattr(each, name)(*values) for each in (law, compiled)]
        assert results[0] == results[1], name
        assert state_of(law) == compiled.seen(), name


def test_the_twin_has_the_fields_and_numbers_of_the_header():
    assert set(state_of(Law(LawParameters(1, 1, 1, 1)))) == set(STATE)
    names = {name for name, _ in layout.STRUCTS["fq_law"]._fields_} - {"pad"}
    assert {field.name for field in fields(LawParameters)} == names
    for prefix, numbers in {
        "FQ_LAW_": LawKind,
        "FQ_GAIN_": Gain,
        "FQ_MODE_": switch_laws.Mode,
        "FQ_LIMITED_BY_": switch_laws.LimitedBy,
    }.items():
        found = {n.removeprefix(prefix): v for n, v in layout.CONSTANTS.items() if n.startswith(prefix)}
        if prefix == "FQ_LAW_":
            numbers = [*numbers, *LawFlags]
        assert found == {each.name: each.value for each in numbers}
    assert layout.CONSTANTS["FQ_NO_WINDOW"] == switch_laws.NO_WINDOW
