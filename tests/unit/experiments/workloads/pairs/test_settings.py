import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.workloads import registry


def test_each_rate_has_a_network_whose_buffer_holds_the_same_time():
    chosen = scenario.load("short-beside-long")
    steps = registry.WORKLOADS["pairs"].steps(chosen)
    assert [*steps] == [f"{rate}mbit" for rate in range(1, 11)]
    assert all(each.buffer_bytes == each.rate_mbit * 12_500 for each in steps.values())
    assert all(each.rates_mbit == () and each.seed == chosen.seed for each in steps.values())


def test_without_a_list_there_is_one_rate():
    chosen = scenario.load("short-beside-long", {"rates_mbit": "[]", "rate_mbit": "4"})
    (step,) = registry.WORKLOADS["pairs"].steps(chosen).values()
    assert step == chosen


def test_a_buffer_holds_a_frame_at_least():
    chosen = scenario.load("short-beside-long", {"buffer_bytes": "2000", "rates_mbit": "[1]"})
    (step,) = registry.WORKLOADS["pairs"].steps(chosen).values()
    assert step.buffer_bytes == 1514


def test_both_flows_are_of_one_tenant_and_the_short_one_has_the_priority():
    chosen = scenario.load("short-beside-long", {"short_priority": "700"})
    assert chosen.tenants == {"tenant1": ("h1", "h2")}
    assert chosen.priorities == {"h2": 700} and chosen.dscp_priorities == {46: 700}


def test_other_workloads_run_in_one_step():
    chosen = scenario.load("incast")
    workload = registry.WORKLOADS["incast"]
    assert workload.steps(chosen) == {"": chosen}
    assert workload.joined([{"figures": 1}]) == {"figures": 1}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"senders": "3"}, "senders is 3, and each of two flows has its host. Remedy: set senders = 2"),
        ({"rates_mbit": "[1, 2, 1]"}, "rates_mbit names a rate twice"),
        ({"rates_mbit": "[0.5]"}, "rates_mbit is [0.5], and its member 0.5 must be from 1"),
    ],
)
def test_wrong_settings_are_one_clear_line(overrides, words):
    with pytest.raises(UserError) as caught:
        scenario.load("short-beside-long", overrides)
    assert words in str(caught.value)
