"""Random parameters and traces of events for the window laws of the switch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from hypothesis import strategies as st

from fairq_ryu.law_spec import LawSpec, Parameters
from fairq_ryu.laws.registry import window_laws
from tests.support.host_laws import HostLaw, fq_law

Law = TypeVar("Law", bound=Parameters)
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
_U64 = (1 << 64) - 1


def specs(law: type[Law]) -> st.SearchStrategy[Law]:
    """Laws of this kind, with parameters within their bounds."""
    bounds = {each.name: st.integers(each.least, each.most) for each in law.parameters()}
    return st.builds(law, **bounds).filter(lambda made: made.wrong() is None)


def parameters(laws: Iterable[type[LawSpec]] = window_laws().values()) -> st.SearchStrategy[dict[str, Any]]:
    """Parameters of one of these laws, for :func:`~tests.support.host_laws.fq_law`: its own are those that
    the agent works out, the common ones may be others.
    """
    return st.sampled_from([*laws]).flatmap(
        lambda law: st.fixed_dictionaries(
            {
                "law": specs(law),
                "rate": st.integers(1_000, 50_000_000_000),
                "limit": st.integers(3_000, 1 << 30),
                "target": st.integers(1, 1 << 30),
                "interval_ns": st.integers(50_000, 10_000_000),
                "base_rtt_ns": st.integers(0, 1_000_000_000),
                "gain_q16": st.integers(1, 65_536) if law.loop_gain else st.just(0),
                "syn_allowance": st.integers(0, 8),
            }
        )
    )


def drive(
    values: dict[str, Any], trace: list[Any], library: Any = None
) -> Iterator[tuple[HostLaw, str, Any]]:
    """Drive a law with a trace, and show it after each step: the step's name and its result."""
    law = HostLaw(fq_law(**values), library)
    now, area = 10**12, _U64 - 10**16  # in some traces the integral of the queue wraps
    for name, *given in trace:
        if name == "tick":
            elapsed, backlog, count, young = given
            now, area = now + elapsed, area + backlog * elapsed
            given = [now, area & _U64, backlog, count, young]
        elif name in ("saw_segment", "flow_began", "limited", "opening"):
            given = [*given, now]
        law.driven_ns = now
        yield law, name, getattr(law, name)(*given)
