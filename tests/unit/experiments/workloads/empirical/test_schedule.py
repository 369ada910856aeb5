"""Which flows start when."""

import itertools
import math
import random

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.workloads.empirical.schedule import schedule


def planned(**overrides):
    return schedule(scenario.load("web-search", {name: str(value) for name, value in overrides.items()}))


def test_the_same_seed_gives_the_same_flows_and_another_gives_others():
    assert planned() == planned()
    assert [flow.size for flow in planned()] != [flow.size for flow in planned(seed=2)]
    assert planned(seed=2)[0].due_s != planned()[0].due_s


def test_arrivals_are_those_of_a_poisson_process_with_the_rate_of_the_load():
    chosen = scenario.load("web-search")
    assert chosen.flows_each_second == pytest.approx(0.6 * 100e6 / 8 / (1_665_830.8 / 10))
    numbers, due, expected = random.Random("gaps 1"), 0.0, []
    while (due := due - math.log(1 - numbers.random()) / chosen.flows_each_second) < 65:
        expected.append(due)
    found = [flow.due_s for flow in schedule(chosen)]
    assert len(found) == 2876  # of this seed
    assert found == pytest.approx(expected)


def test_sizes_have_random_numbers_of_their_own():
    """So a long gap says nothing about the size that follows it."""
    chosen, numbers = scenario.load("web-search"), random.Random("sizes 1")
    flows = schedule(chosen)
    assert [flow.size for flow in flows] == [chosen.distribution.quantile(numbers.random()) for _ in flows]
    assert len({flow.seed for flow in flows}) > 0.99 * len(flows)


def test_another_load_has_the_same_sizes_at_times_on_another_scale():
    half, whole = planned(load=0.3), planned(load=0.6)
    assert len(half) < len(whole)
    assert [flow[1:] for flow in half] == [flow[1:] for flow in whole[: len(half)]]
    assert [flow.due_s for flow in half] == pytest.approx([2 * flow.due_s for flow in whole[: len(half)]])


def test_clustered_arrivals_have_the_same_rate_and_larger_deviations():
    gaps = {}
    for arrivals in ("poisson", "lognormal"):
        due = [flow.due_s for flow in planned(arrivals=arrivals, gap_sigma=1, measured_s=1500)]
        gaps[arrivals] = [after - before for before, after in zip([0.0, *due], due, strict=False)]
    flat, clustered = (_deviation(each) for each in gaps.values())
    assert flat[0] == pytest.approx(1, rel=0.02) and flat[1] == pytest.approx(1, rel=0.03)
    # The variance of a log-normal distribution of mean 1 is exp(sigma**2) - 1.
    assert clustered[0] == pytest.approx(1, rel=0.02)
    assert clustered[1] == pytest.approx(math.sqrt(math.e - 1), rel=0.1)
    sizes = ([flow.size for flow in planned(arrivals=each)[:100]] for each in gaps)
    assert next(sizes) == next(sizes)


def _deviation(gaps):
    """Mean and deviation of times, in units of the mean that the load gives."""
    rate = scenario.load("web-search").flows_each_second
    mean = sum(gaps) / len(gaps)
    return mean * rate, math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) * rate


def test_flows_are_from_the_senders_in_turn_and_not_larger_than_the_cap():
    flows = planned(senders=3, size_cap_bytes=50_000)
    assert [flow.sender for flow in flows[:7]] == [0, 1, 2, 0, 1, 2, 0]
    assert max(flow.size for flow in flows) == 50_000
    assert all(before.due_s < after.due_s for before, after in itertools.pairwise(flows))
    assert flows[-1].due_s < 65


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"sizes": "web-serch"}, "sizes is 'web-serch', which is unknown. Remedy: did you mean web-search?"),
        ({"load": "1.2"}, "load is 1.2, must be from 0.01 to 0.95"),
        ({"arrivals": "bursts"}, "arrivals is 'bursts', which is unknown"),
        ({"gap_sigma": "0"}, "gap_sigma is 0, must be from 0.1 to 3"),
        ({"size_divisor": "0.5"}, "size_divisor is 0.5, must be from 1 to 20"),
        ({"size_cap_bytes": "500"}, "size_cap_bytes is 500, and the least flow has 876 bytes"),
        ({"measured_s": "36000"}, "1,621,038 in all; at most 1,000 and 100,000 are possible"),
        ({"rate_mbit": "10000", "measured_s": "1"}, "4,502 flows would start each second"),
        ({"measured_s": "0.1", "load": "0.05"}, "less than one flow would start in the 0.1 s"),
        ({"elephants": "2"}, "traffic 'empirical' has no setting 'elephants'"),
    ],
)
def test_wrong_settings_are_one_clear_line(overrides, words):
    with pytest.raises(UserError) as caught:
        scenario.load("web-search", overrides)
    assert words in str(caught.value) and "\n" not in str(caught.value)
