"""The window laws of the switch: the C code and its twin give the same state, bit for bit, for any trace."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairq_ryu.agent import layout
from fairq_ryu.law_spec import Gain, LawFlags, LawKind
from fairq_ryu.policies import switch_laws
from fairq_ryu.policies.switch_laws import Law, LawInput, LawParameters
from tests.support.host_laws import STATE, CompiledLaw, build, state_of, steps_agree


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(layout.BPF_DIR, tmp_path_factory.mktemp("laws"))


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
    steps_agree(Law(parameters), CompiledLaw(library, parameters), trace, LawInput)


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
