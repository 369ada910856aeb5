"""The simulator against the real network at the rates of a bench, and what must hold at every rate.

The figures of the real network are those of docs/rates.md, docs/policies/peers.md, las.md and iqm.md.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import baselines, scenario
from fairq_ryu.experiments.simulator import order, program, runner
from fairq_ryu.experiments.simulator.figures import figures_of
from fairq_ryu.experiments.simulator.laws import laws_of
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario

needs_ns3 = pytest.mark.skipif(
    importlib.util.find_spec("ns3") is None, reason="the package ns3 is not installed"
)
pytestmark = pytest.mark.timeout(600)  # the first one compiles
WITHIN = 0.15
"""Of the real figure: what docs/simulator.md promises, set when the first figures were known."""
BENCH = {"rounds": 2, "warmup_s": 2, "elephants_only_s": 0}


def simulated(policy: str, *, seed: int = 1, link: float = 10_000, **changes: object) -> dict[str, Any]:
    given = {name: str(value) for name, value in {**BENCH, **changes}.items()}
    chosen = baselines.of(policy).applied(scenario.load("incast", given))
    assert isinstance(chosen, IncastScenario)
    order.check(chosen)
    laws = laws_of(policy, Config(), chosen.rate_mbit, order.round_trip_ms(chosen))
    text = order.order(chosen, laws, order.Hosts(link), seed=seed, active_timeout_s=0.2)
    return figures_of(program.answer(program.built(), text), chosen, laws.queue.name if laws.queue else None)


@needs_ns3
@pytest.mark.parametrize(
    ("policy", "rate", "mean", "p99", "queue", "goodput"),
    [
        ("fairq", 25, 175.2, 185.6, 40_562, 20.7),
        ("las", 25, 140.7, 159.6, 27_172, 20.5),
        ("iqm", 25, 150.5, 162.7, None, None),
        ("fairq", 50, 86.9, 91.9, None, 44.4),
        ("las", 50, 64.3, 77.3, None, None),
    ],
)
def test_it_agrees_with_the_real_network(
    policy: str, rate: int, mean: float, p99: float, queue: int | None, goodput: float | None
) -> None:
    found = simulated(policy, rate_mbit=rate)
    assert found["mice"]["fct_ms"]["mean"] == pytest.approx(mean, rel=WITHIN)
    assert found["mice"]["fct_ms"]["p99"] == pytest.approx(p99, rel=WITHIN)
    if queue is not None:
        assert found["queue"]["rounds"]["mean_bytes"] == pytest.approx(queue, rel=WITHIN)
    if goodput is not None:
        assert found["elephants"]["goodput_sum_mbit"] == pytest.approx(goodput, rel=WITHIN)
    assert found["mice"]["rto_timeouts"] == found["queue"]["qdisc_drops"] == 0


@needs_ns3
def test_without_windows_it_loses_as_much_as_the_real_network():
    """What mice wait for after that depends on which losses meet, and on timers: that is not compared."""
    found = simulated("droptail")
    assert found["mice"]["segments_dropped"] == pytest.approx(1299 / 2, rel=WITHIN), "of two volleys in four"
    assert found["queue"]["rounds"]["mean_bytes"] == pytest.approx(115_356, rel=WITHIN)
    assert found["mice"]["rto_timeouts"] > 0 and found["queue"]["rounds"]["acks_rewritten"] == 0


@needs_ns3
@pytest.mark.parametrize("policy", ["fairq", "acdc", "mark-dctcp", "codel"])
def test_all_that_is_sent_arrives_and_no_packet_is_counted_twice(policy: str):
    found = simulated(policy, rounds=1, warmup_s=0.5)
    mice, queue = found["mice"], found["queue"]
    lost = queue["rounds"]["drops"] + ((queue["rounds"]["law"] or {}).get("dropped") or 0)
    assert mice["count"] == 32 and mice["unfinished"] == 0
    assert 0 <= mice["segments_dropped"] <= lost
    assert found["elephants"]["goodput_sum_mbit"] < 25 * 1448 / 1514
    assert queue["rounds"]["mean_bytes"] < queue["limit_bytes"]


@needs_ns3
def test_a_seed_gives_the_same_run_and_another_one_another():
    first, again, other = (simulated("fairq", rounds=1, warmup_s=0.5, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first["mice"]["fct_list_ms"] != other["mice"]["fct_list_ms"]


@needs_ns3
def test_no_volley_is_faster_than_the_wire():
    """Alone on an idle link with an ample buffer, a volley takes little more than its bytes."""
    changes = {"elephants": 0, "warmup_s": 0, "buffer_bytes": 4_000_000, "rounds": 1, "rtt_ms": 0.02}
    chosen = {**changes, "rate_mbit": 100_000, "mice_per_sender": 16, "round_interval_s": 0.01}
    found = simulated("droptail", link=100_000, **chosen)
    wire = 256 * (11_500 + 8 * 66 + 74) * 8 / 100e6
    assert wire < found["mice"]["fct_ms"]["max"] < 1.2 * wire


@needs_ns3
@pytest.mark.parametrize(("timeout", "seconds"), [(20, 0.6), (0.1, 0.3)])
def test_volleys_begin_whole_intervals_apart(timeout: float, seconds: float):
    """One takes 124 ms; mice that are late are unfinished, and go on in the next."""
    changes = {"warmup_s": 0, "elephants": 0, "buffer_bytes": 1_000_000, "rounds": 3, "round_interval_s": 0.1}
    found = simulated("droptail", round_timeout_s=timeout, **changes)
    assert found["seconds"] == pytest.approx(seconds, abs=1e-6)
    assert found["mice"]["count"] == 96 and found["elephants"] is None
    assert (found["mice"]["unfinished"] > 0) == (timeout < 0.124)


@needs_ns3
def test_elephants_alone_fill_the_link():
    found = simulated("fairq", mice_per_sender=0, rounds=2, round_interval_s=0.5)
    assert found["mice"] is None and found["seconds"] == pytest.approx(1.0, abs=1e-6)
    assert found["elephants"]["goodput_sum_mbit"] == pytest.approx(25 * 1448 / 1514, rel=0.01)


@needs_ns3
@pytest.mark.parametrize("topology", ["dumbbell", "leafspine"])
def test_other_topologies_lose_nothing_with_a_law(topology: str):
    changes = {"topology": topology, "rounds": 1, "warmup_s": 0.5}
    if topology == "leafspine":
        changes["uplink_mbit"] = 100
    found = simulated("fairq", link=100, **changes)
    assert found["mice"]["unfinished"] == found["queue"]["qdisc_drops"] == 0
    assert found["queue"]["rounds"]["acks_rewritten"] > 0
    assert found["mice"]["fct_ms"]["p99"] < 2 * 123.9


@pytest.mark.parametrize(
    ("scenario", "policies", "words"),
    [
        ("deadlines", ["fairq"], "traffic 'deadlines' is not simulated"),
        ("incast", [], "no policy"),
        ("incast", ["fairq", "fairq"], "or one twice"),
        ("incast", ["sed"], "'sed' is not simulated"),
        ("incast-fattree", ["fairq"], "'fattree' is not simulated"),
    ],
)
def test_what_it_cannot_do_is_refused_before_anything_is_compiled(
    tmp_path: Path, monkeypatch, scenario: str, policies: list[str], words: str
):
    monkeypatch.setattr(program, "built", lambda: pytest.fail("compiled"))
    with pytest.raises(UserError, match=words):
        runner.main(scenario, policies, tmp_path / "out")
    assert not (tmp_path / "out").exists()
