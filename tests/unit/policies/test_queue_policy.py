"""The policies of queue laws: what they ask of the switch, and what they refuse."""

from __future__ import annotations

import pytest

from fairq_ryu.config.loader import Config
from fairq_ryu.config.schema import sections
from fairq_ryu.law_spec import FRAME
from fairq_ryu.laws.afcd import AfcdLaw
from fairq_ryu.laws.afq import AfqLaw
from fairq_ryu.laws.codel import CodelLaw
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.laws.sfb import SfbLaw
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import port_law, queue_law, same, switch_law
from fairq_ryu.policies.choice import make
from fairq_ryu.queue_law_spec import QueueLawSpec, Variant

PORT = PortKey(1, 2)
NAMES = [law.name for law in queue_laws().values()]


def spec(name: str, **settings: object) -> QueueLawSpec:
    made = queue_law(make(name, Config().changed(name, settings)), PORT)
    assert made is not None
    return made


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_asks_for_its_law_and_sets_no_windows(name: str) -> None:
    policy = make(name, Config())
    assert spec(name).name == name and spec(name).wrong() is None
    assert switch_law(policy, PORT) is port_law(policy, PORT) is None


def test_other_policies_have_no_queue_law() -> None:
    assert queue_law(make("fairq", Config()), PORT) is None


def test_settings_reach_the_law() -> None:
    given = spec("afq", variant="authors", queue_target=0.1, ecn=True)
    assert spec("afq").variant is spec("afq", variant="ours").variant is Variant.OURS
    assert given == AfqLaw(variant=Variant.AUTHORS, ecn=1, target_ppm=100_000)
    afcd = spec("afcd", variant="paper", delay_target=0.005, base_rtt=0.12)
    assert (afcd.variant, afcd.target_us, afcd.interval_us) == (Variant.PAPER, 5000, 0)
    assert afcd.base_rtt_us == 120_000
    red = spec("red", low=0.1, max_p=0.02)
    assert (red.min_ppm, red.max_ppm, red.max_p_ppm, red.weight_shift) == (100_000, 300_000, 20_000, 9)
    assert (red.ecn, red.by_bytes, red.abrupt, spec("red", gentle=False).abrupt) == (0, 0, 0, 1)
    assert spec("codel", delay_target=0.005).target_us == 5000
    assert spec("sfb") == SfbLaw(ecn=1, bin_packets=20, bin_most=25)
    assert spec("sfb", bin_packets=8000).bin_most == 10_000
    assert spec("mark", threshold=65).mark_bytes == 65 * FRAME


def test_the_thresholds_of_red_are_within_the_buffer() -> None:
    for low in (sections()["red"]["low"].minimum, sections()["red"]["low"].maximum):
        assert spec("red", low=low).wrong() is None
    with pytest.raises(ValueError, match=r"0\.34 is more than 0\.333"):
        sections()["red"]["low"].parse("0.34")


@pytest.mark.parametrize("name", ["afq", "afcd"])
def test_the_policies_as_published_are_the_paper_s_variant_of_the_same_law(name: str) -> None:
    published = spec(f"{name}-paper")
    assert (published.shown_variant, published.ecn) == (Variant.PAPER, 0)
    assert f"{name}-paper" not in sections(), "what can be set is set at the variant"
    assert not same(make(name, Config()), make(f"{name}-paper", Config()))
    assert same(make(f"{name}-paper", Config()), make(f"{name}-paper", Config()))


def test_afq_as_published_differs_from_ours_by_the_variant_alone() -> None:
    assert spec("afq-paper") == spec("afq", variant="paper")


def test_afcd_as_published_has_the_times_of_the_paper_at_every_port() -> None:
    published = spec("afcd-paper")
    # "target_delay is set to 5ms and interval is set to 100ms"
    for limit, rate in ((125_000, 25_000_000), (6_250, 1_250_000)):
        assert published.delay_times(limit, rate) == (5_000, 100_000)
    assert spec("afcd", variant="paper").delay_times(125_000, 25_000_000) == (600, 12_000)


# What is worked out from the port


def test_delays_fit_the_port() -> None:
    codel = CodelLaw()
    assert codel.delay_times(125_000, 25_000_000) == (600, 12_000), "twice 1 + 5 ms, and a twentieth"
    assert codel.delay_times(30_000, 125_000_000) == (500, 10_000), "at least 10 ms"
    # A full frame takes 1.2 ms at 10 Mbit/s.
    assert codel.delay_times(6_250, 1_250_000).target_us == 3 * FRAME * 1_000_000 // 2_500_000
    assert CodelLaw(target_us=5000).delay_times(125_000, 1_250_000) == (5000, 100_000), "CoDel's own"
    assert CodelLaw(target_us=200).delay_times(125_000, 1_250_000) == (200, 10_000)
    asked = CodelLaw(target_us=5000, interval_us=100_000)
    assert asked.delay_times(125_000, 25_000_000) == (5000, 100_000)


def test_the_shadow_buffer_has_the_samples_of_a_second() -> None:
    afq = AfqLaw()
    rates = {1_250_000_000: 495, 25_000_000: 10, 12_500_000: 5, 1000: 1}
    assert {rate: afq.sampling(rate) for rate in rates} == rates
    assert AfqLaw(sample_every=7).sampling(25_000_000) == 7


def test_the_target_of_the_fair_share() -> None:
    assert AfqLaw().queue_target(125_000, 25_000_000) == 25_000
    assert AfcdLaw(target_us=5000).queue_target(500_000, 25_000_000) == 125_000
