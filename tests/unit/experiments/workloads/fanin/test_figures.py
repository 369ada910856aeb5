import pytest

from fairq_ryu.experiments.report import result
from fairq_ryu.experiments.workloads.fanin import figures
from tests.support.results import outcome


def test_rounds_add_up():
    made = [
        [outcome(10, 0.02, rto=1, retrans=2), outcome(30, 0.02)],
        [outcome(20, 0.02), outcome(None, 0.02, retrans=5, rto=3)],
    ]
    summed = figures.rounds_figures(made, namespace_timeouts=99, timeout_s=1)
    assert (summed["flows"], summed["unfinished"], summed["errors"]) == (4, 1, {"timeout": 1})
    assert (summed["deadlines"], summed["missed"]) == (4, 2)
    assert summed["last_byte_list_ms"] == [30, 1000]
    assert summed["goodput_mbit"] == pytest.approx(3 * 988 * 8e-6 / 1.03)
    assert (summed["rto_timeouts"], summed["rto_source"], summed["retransmissions"]) == (4, "tcp_info", 7)
    assert (summed["timeout_flows"], summed["timeout_share"]) == (2, 0.5)


def test_old_kernels_fall_back_to_the_namespace():
    summed = figures.rounds_figures([[outcome(10, rto=None)]], 7, 1)
    assert (summed["rto_timeouts"], summed["rto_source"], summed["deadlines"]) == (7, "namespace", 0)
    assert summed["timeout_flows"] is None


def fanin(*medians, missed=1, rto=2):
    sweep = [
        {"last_byte_ms": {"p50": p50}, "last_byte_list_ms": [p50], "goodput_mbit": 1.0,
         "flows": 1, "unfinished": 0, "deadlines": 4, "missed": missed,
         "rto_timeouts": rto, "timeout_flows": 1, "retransmissions": 0, "qdisc_drops": 0}
        for p50 in medians
    ]  # fmt: skip
    return {"failed": None, "fanin": figures.fanin_figures(sweep, 0)}


def test_the_flows_with_timeouts_of_all_numbers_of_flows_add_up():
    found = fanin(10, 20, 30)["fanin"]
    assert (found["timeout_flows"], found["timeout_share"], found["flows"]) == (3, 1.0, 3)


def test_the_goodput_of_all_rounds_weighs_each_by_its_time():
    sweep = [
        {**fanin(100)["fanin"]["sweep"][0], "goodput_mbit": 10.0, "last_byte_list_ms": [100, 200]},
        {**fanin(100)["fanin"]["sweep"][0], "goodput_mbit": 40.0, "last_byte_list_ms": [300]},
    ]
    found = figures.fanin_figures(sweep, 0)
    assert found["goodput_mbit"] == pytest.approx((10 * 300 + 40 * 300) / 600)
    assert (found["last_byte_ms"]["count"], found["last_byte_ms"]["max"]) == (3, 300)


def test_fan_ins_are_compared_at_the_worst_number_of_flows():
    compared = result.compare(
        [{"policy": "droptail", **fanin(300, 200, missed=5)}, {"policy": "rsed", **fanin(30, 50, rto=1)}]
    )["rsed"]
    assert compared["last_byte_times_lower"] == 4
    assert compared["fanin_missed_share"] == pytest.approx(0.2)
    assert compared["fanin_rto_share"] == pytest.approx(0.5)
    assert compared["goodput_share"] is None
