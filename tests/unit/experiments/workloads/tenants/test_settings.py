import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.workloads.tenants.settings import TenantFlow


def test_one_more_flow_of_each_tenant_starts_with_each_stage():
    chosen = scenario.load("tenants")
    assert chosen.tenants == {"tenant1": ("h1",), "tenant2": ("h2",)}
    assert [(flow.tenant, flow.stage) for flow in chosen.flows] == [
        ("tenant1", 0), ("tenant2", 0), ("tenant2", 1), ("tenant2", 2), ("tenant2", 3)
    ]  # fmt: skip
    assert [flow.number for flow in chosen.flows] == list(range(5))
    # As in the paper: 300 s, at 10 Mbit/s and 100 ms, whose product the buffer holds.
    assert chosen.stages * chosen.stage_s == 300
    assert chosen.rate_mbit * 125 * chosen.rtt_ms == chosen.buffer_bytes


def test_without_stages_all_flows_start_together():
    chosen = scenario.load("tenants-many")
    assert (chosen.stages, len(chosen.flows), {flow.stage for flow in chosen.flows}) == (1, 17, {0})


def test_flows_go_from_the_hosts_of_a_tenant_in_turn_to_the_receivers_in_turn():
    chosen = scenario.load(
        "two-receivers", {"senders": "4", "tenant_hosts": "[1, 2]", "tenant_flows": "[2, 3]"}
    )
    assert chosen.flows == [
        TenantFlow(0, "tenant1", "h1", "h5", 0),
        TenantFlow(1, "tenant1", "h1", "h6", 0),
        TenantFlow(2, "tenant2", "h2", "h5", 0),
        TenantFlow(3, "tenant2", "h3", "h6", 0),
        TenantFlow(4, "tenant2", "h2", "h5", 0),
    ]
    assert chosen.others == ["h4"]


def test_volleys_come_from_the_hosts_of_the_last_tenant_and_short_flows_may_be_a_tenants():
    chosen = scenario.load("tenants-incast", {"tenant_flows": "[1, 2]", "tenant_hosts": "[1, 1]"})
    assert chosen.tenants == {"tenant1": ("h1",), "tenant2": ("h2",), "tenant3": ("h3",)}
    assert {flow.tenant for flow in chosen.flows} == {"tenant1", "tenant2"}
    assert chosen.others == ["h3"] and set(chosen.volley) == {("h2", "r")} and len(chosen.volley) == 24
    alone = scenario.load("tenants-incast", {"volley_flows": "0", "short_tenant": "no"})
    assert alone.volley == [] and list(alone.tenants) == ["tenant1"]


def test_the_longest_round_trip_counts_for_windows():
    assert scenario.load("two-receivers").window_bytes == 10 * 125 * 160 + 125_000


def test_short_flows_need_half_of_the_link():
    """Least + the integral of (least / x) ** shape up to the largest size, with headers of 80 bytes for each
    segment and for a handshake of three: between 45 and 55 %.
    """
    chosen = scenario.load("two-receivers")
    least, most, shape = chosen.short_least_bytes, chosen.short_most_bytes, chosen.short_shape
    mean = least + least / (shape - 1) * (1 - (least / most) ** (shape - 1))
    wire = mean * 1514 / 1448 + 3 * 80
    assert 0.45 < chosen.short_rate * wire * 8e-6 / chosen.rate_mbit < 0.55


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"tenant_hosts": "[2]"}, "tenant_flows has 2 entries and tenant_hosts 1. Remedy: give one entry"),
        ({"tenant_weights": "[2]"}, "tenant_flows has 2 entries and tenant_weights 1. Remedy: give one"),
        ({"tenant_hosts": "[1, 2]"}, "there are 2 senders, and the tenants have 3 hosts"),
        ({"senders": "3"}, "there are 3 senders, and the tenants have 2 hosts. Remedy: make them the same"),
        ({"short_rate": "1"}, "the tenants have 2 hosts of 2 senders: none is left for short flows"),
        ({"tenant_flows": "[600, 500]"}, "tenant_flows has 1,100 flows in all"),
        ({"tenant_flows": "[0, 1]"}, "tenant_flows is [0, 1], and its member 0 must be from 1"),
        ({"short_tenant": "yes"}, "short_tenant is set, and short_rate 0"),
        ({"volley_flows": "1", "volley_interval_s": "60.5"}, "60 s of a stage are measured: no volley would"),
        ({"settle_s": "75"}, "settle_s is 75, and stage_s 75: nothing would be measured"),
        (
            {"topology": "incast", "receiver_delays_ms": "[0, 5]"},
            "topology incast has one receiver, which receiver_delays_ms cannot delay",
        ),
        ({"receiver_delays_ms": "[0, 1001]"}, "its member 1001 must be from 0 to 1,000"),
        ({"short_least_bytes": "20_000_000"}, "short_least_bytes is 20000000, and short_most_bytes 10000000"),
    ],
)
def test_wrong_settings_are_one_clear_line(overrides, words):
    with pytest.raises(UserError) as caught:
        scenario.load("tenants", overrides)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_contradictions_are_reported_at_once():
    wrong = {"senders": "3", "settle_s": "100", "topology": "fattree", "way": "normal"}
    with pytest.raises(UserError) as caught:
        scenario.load("tenants", wrong)
    assert len(str(caught.value).splitlines()) == 3
