import pytest

from fairq_ryu.experiments.workloads.common.short_flows import flow_figures
from fairq_ryu.experiments.workloads.tenants import figures, rows
from fairq_ryu.experiments.workloads.tenants.figures import Stage
from fairq_ryu.experiments.workloads.tenants.settings import TenantFlow

TENANTS = {"tenant1": ("h1",), "tenant2": ("h2", "h3")}
FLOWS = [
    TenantFlow(0, "tenant1", "h1", "h4", 0),
    TenantFlow(1, "tenant2", "h2", "h4", 0),
    TenantFlow(2, "tenant2", "h3", "h4", 1),
]


def counts(seconds, *received):
    """Bytes of the flows in the order of their numbers."""
    return {
        "clock_ns": int(seconds * 1e9),
        "bytes": {str(number): count for number, count in enumerate(received)},
    }


def figures_of(weights=None):
    """Two stages of which 2 s are measured: 4 and 4 Mbit/s, then 2, 4 and 2."""
    stages = [
        Stage(0.0, counts(10, 0, 100), counts(12, 1_000_000, 1_000_100)),
        Stage(5.0, counts(15, 7, 7), counts(17, 500_007, 1_000_007, 500_000)),
    ]
    before = {str(n): {"total_retrans": n, "total_rto": 0} for n in range(3)}
    after = {str(n): {"total_retrans": 10 * n + 1, "total_rto": 1} for n in range(3)}
    return figures.tenants_figures(TENANTS, FLOWS, stages, (before, after), weights or {})


def test_a_tenant_has_what_all_its_flows_have():
    first, last = figures_of()["stages"]
    assert (first["from_s"], first["seconds"], first["flows"]) == (0.0, 2.0, [1, 1])
    assert first["goodput_mbit"] == pytest.approx([4, 4])
    assert first["jain"] == first["jain_flows"] == pytest.approx(1.0)
    assert (last["from_s"], last["flows"]) == (5.0, [1, 2])
    assert last["goodput_mbit"] == pytest.approx([2, 6])
    assert last["jain"] == pytest.approx(64 / (2 * 40))
    assert last["jain_flows"] == pytest.approx(64 / (3 * 24))


def test_fair_is_what_the_weights_say():
    first, last = figures_of({"tenant1": 2, "tenant2": 6})["stages"]
    assert last["goodput_mbit"] == pytest.approx([2, 6])
    assert (first["jain"], last["jain"]) == (pytest.approx(0.8), pytest.approx(1.0))
    assert figures_of({"tenant2": 3})["jain"] == pytest.approx(1.0)


def test_the_figures_of_a_policy_are_those_with_all_flows():
    found = figures_of()
    assert found["goodput_mbit"] == pytest.approx([2, 6])
    assert found["flow_goodput_mbit"] == pytest.approx([2, 4, 2])
    assert found["goodput_sum_mbit"] == pytest.approx(8)
    assert found["jain"] == found["stages"][-1]["jain"]
    one, two = found["members"]
    assert (one["name"], one["hosts"], one["flows"]) == ("tenant1", ["h1"], 1)
    assert (two["hosts"], two["flows"], two["share"]) == (["h2", "h3"], 2, pytest.approx(0.75))
    assert (one["retransmissions"], two["retransmissions"]) == (1, 10 + 19)
    assert (one["rto_timeouts"], two["rto_timeouts"]) == (1, 2)


def test_one_to_four_shares_have_the_index_of_the_paper():
    flows = [TenantFlow(n, "tenant1" if n == 0 else "tenant2", "h", "r", 0) for n in range(5)]
    stage = Stage(0.0, counts(0), counts(1, *[1000] * 5))
    assert figures.stage_figures(stage, flows, list(TENANTS), {})["jain"] == pytest.approx(0.735, abs=5e-4)


def test_one_tenant_is_not_fair_or_unfair():
    stage = Stage(0.0, counts(0, 0, 0), counts(1, 1000, 3000))
    found = figures.stage_figures(stage, FLOWS[1:2], ["tenant2"], {})
    assert found["jain"] is None and found["jain_flows"] == 1.0


@pytest.mark.parametrize(
    ("rounds", "share"),
    [
        (None, None),
        ({"packets": 90, "law": None}, 0.1),
        ({"packets": 80, "law": {"dropped": 10}}, 0.2),
    ],
)
def test_packets_are_lost_for_want_of_room_or_by_a_law(rounds, share):
    found = figures.lost_share({"qdisc_drops": 10, "rounds": rounds})
    assert found == (None if share is None else pytest.approx(share))


def test_nothing_is_lost_where_nothing_was_sent():
    assert figures.lost_share({"qdisc_drops": 0, "rounds": {"packets": 0, "law": None}}) == 0


def test_flows_of_volleys_that_have_not_finished_are_counted():
    found = flow_figures([10.0, 30.0, None], [0, 1, 2])
    assert (found["count"], found["unfinished"], found["timeout_flows"]) == (3, 1, 2)
    assert (found["fct_ms"]["count"], found["fct_ms"]["mean"], found["fct_ms"]["max"]) == (2, 20.0, 30.0)


def test_rows_of_a_tenant_and_of_a_stage_say_which():
    members, stages = rows.TABLE.groups
    assert members.prefix({"name": "tenant1", "flows": 1}) == "tenant1, 1 flow: "
    assert members.prefix({"name": "tenant2", "flows": 4.0}) == "tenant2, 4 flows: "
    assert stages.prefix({"from_s": 75.0, "flows": [1, 2.0]}) == "from 75 s, 1 + 2 flows: "
