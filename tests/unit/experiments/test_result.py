import json
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.measure import queues, stats
from fairq_ryu.experiments.report import result
from fairq_ryu.experiments.traffic.workers import RunError

samples = st.lists(st.floats(min_value=0, max_value=1e9), min_size=1, max_size=200)


@given(samples)
def test_mean_and_deviation_agree_with_the_standard_library(values):
    assert stats.mean(values) == pytest.approx(statistics.fmean(values))
    if len(values) > 1:
        assert stats.deviation(values) == pytest.approx(statistics.stdev(values), abs=1e-6)
    else:
        assert stats.deviation(values) == 0


@given(st.lists(st.floats(min_value=0, max_value=1e9), min_size=2, max_size=200))
def test_percentiles_agree_with_the_standard_library(values):
    hundredths = statistics.quantiles(values, n=100, method="inclusive")
    for share in (0.5, 0.95, 0.99):
        expected = hundredths[round(share * 100) - 1]
        assert stats.percentile(values, share) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert stats.percentile(values, 0) == min(values)
    assert stats.percentile(values, 1) == max(values)


@given(samples)
def test_jain_lies_between_one_nth_and_one(values):
    assert 1 / len(values) - 1e-9 <= stats.jain(values) <= 1 + 1e-9


def test_jain_of_known_shares():
    assert stats.jain([5, 5, 5, 5]) == pytest.approx(1)
    assert stats.jain([10, 0, 0, 0]) == pytest.approx(0.25)
    assert stats.jain([1, 2, 3]) == pytest.approx(36 / (3 * 14))
    assert stats.jain([0, 0]) == 1
    assert stats.jain([1e-200, 1e-200]) == pytest.approx(1)


@pytest.mark.parametrize("function", [stats.mean, stats.deviation, stats.jain])
def test_nothing_has_no_statistics(function):
    with pytest.raises(ValueError):
        function([])
    with pytest.raises(ValueError):
        stats.percentile([], 0.5)
    with pytest.raises(ValueError):
        stats.percentile([1], 1.5)


def test_time_percentile_weighs_by_time():
    histogram = [(0, 100, 90), (100, 200, 0), (200, 300, 10)]
    assert stats.time_percentile(histogram, 0.45) == pytest.approx(50)
    assert stats.time_percentile(histogram, 0.9) == pytest.approx(100)
    assert stats.time_percentile(histogram, 0.99) == pytest.approx(290)
    assert stats.time_percentile(histogram, 1.0) == pytest.approx(300)
    assert stats.time_percentile([(0, 100, 0)], 0.99) is None
    assert stats.time_percentile([], 0.99) is None


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30), st.floats(0, 1))
def test_time_percentile_stays_in_the_range(weights, share):
    histogram = [(10.0 * i, 10.0 * (i + 1), w) for i, w in enumerate(weights)]
    depth = stats.time_percentile(histogram, share)
    if sum(weights) == 0:
        assert depth is None
    else:
        assert 0 <= depth <= 10.0 * len(weights)


def status(byte_ns, clock_ns, drops, rewritten, histogram):
    queue = {
        "bytes": 0, "peak": 0, "limit": 125_000, "rate": 25e6, "drops": drops, "packets": 10 * drops,
        "byte_ns": byte_ns, "clock_ns": clock_ns, "histogram": histogram,
    }  # fmt: skip
    port = {"ofport": 3, "name": "s1-eth3", "ifindex": 9, "queue": queue, "rewritten": rewritten}
    return {"bridge": "s1", "ports": [{"name": "s1-eth1", "queue": None, "rewritten": 0}, port]}


def test_two_readings_of_a_queue_are_differenced():
    before = queues.queue_of(status(5_000, 1_000, 3, 7, [[0, 1000, 400]]), "s1-eth3")
    after = queues.queue_of(
        status(5_000 + 2_000 * 10**9, 1_000 + 10**9, 10, 107, [[0, 1000, 400], [1000, 3000, 10**9]]),
        "s1-eth3",
    )
    figures = queues.between(before, after)
    assert figures["mean_bytes"] == pytest.approx(2_000)
    assert figures["seconds"] == pytest.approx(1)
    assert figures["p99_bytes"] == pytest.approx(1000 + 0.99 * 2000)
    assert (figures["drops"], figures["packets"], figures["acks_rewritten"]) == (7, 70, 100)
    assert figures["histogram"] == [[1000, 3000, 10**9]]


def test_a_queue_that_cannot_be_read_is_an_error():
    with pytest.raises(RunError, match="does not show port s1-eth9"):
        queues.queue_of(status(0, 0, 0, 0, []), "s1-eth9")
    with pytest.raises(RunError, match="no queue for port s1-eth1"):
        queues.queue_of(status(0, 0, 0, 0, []), "s1-eth1")
    reading = queues.queue_of(status(0, 5, 0, 0, []), "s1-eth3")
    with pytest.raises(RunError, match="restarted"):
        queues.between(reading, reading)


def client_mouse(number, fct_ms, received, error=None, retrans=0, rto=0):
    return {
        "id": number, "fct_ns": None if fct_ms is None else int(fct_ms * 1e6), "error": error,
        "data_segs_in": received, "data_segs_out": 1, "total_retrans": retrans, "total_rto": rto,
    }  # fmt: skip


def server_mouse(number, sent, retrans=0, rto=0):
    return {
        "id": number, "data_segs_in": 1, "data_segs_out": sent, "total_retrans": retrans, "total_rto": rto,
    }  # fmt: skip


def test_mice_are_matched_by_number():
    client = [client_mouse(2, 20, 8), client_mouse(0, 10, 8), client_mouse(1, None, 5, "timeout", 1, 1)]
    servers = [server_mouse(0, 8), server_mouse(1, 11, 3, 2), server_mouse(2, 9, 1)]
    mice = result.mice_summary(client, servers, namespace_timeouts=99)
    assert (mice["count"], mice["unfinished"], mice["errors"]) == (3, 1, {"timeout": 1})
    assert mice["fct_list_ms"] == [20.0, 10.0, None]
    assert mice["fct_ms"]["mean"] == pytest.approx(15)
    assert mice["segments_dropped"] == (9 - 8) + (11 - 5)
    assert mice["rto_timeouts"] == 3
    assert mice["rto_source"] == "tcp_info"
    assert mice["retransmissions"] == 5
    assert mice["client_retransmissions"] == 1


def test_a_mouse_that_never_reached_its_server_is_unfinished_and_drops_nothing_known():
    mice = result.mice_summary([client_mouse(4, None, 0, "timeout", 3, 3)], [], 0)
    assert (mice["unfinished"], mice["segments_dropped"], mice["fct_ms"]) == (1, 0, None)
    assert mice["rto_timeouts"] == 3


def test_old_kernels_fall_back_to_the_namespace_and_say_so():
    mice = result.mice_summary([client_mouse(0, 10, 8, rto=None)], [server_mouse(0, 8, rto=None)], 12)
    assert (mice["rto_timeouts"], mice["rto_source"]) == (12, "namespace")


def test_goodput_is_between_two_marks_by_number_of_the_elephant():
    before = {"clock_ns": 0, "bytes": {"0": 100, "10": 0, "9": 0}}
    after = {"clock_ns": 2 * 10**9, "bytes": {"10": 500_000, "9": 250_000, "0": 1_000_100}}
    assert result.goodputs(before, after) == pytest.approx([4.0, 1.0, 2.0])
    info = {i: {"total_retrans": 2, "total_rto": 0} for i in ("0", "9", "10")}
    later = {i: {"total_retrans": 5, "total_rto": 1} for i in ("0", "9", "10")}
    elephants = result.elephants_summary(before, after, info, later, 7.5)
    assert elephants["goodput_sum_mbit"] == pytest.approx(7.0)
    assert elephants["jain"] == pytest.approx(49 / (3 * 21))
    assert (elephants["retransmissions"], elephants["rto_timeouts"]) == (9, 3)


def once(policies):
    """A single repetition."""
    return [{"order": [each["policy"] for each in policies], "floor": None, "policies": policies}]


def policy(name, p99, rto, goodput, mean_bytes=None):
    fct = {"count": 1, "mean": p99 / 2, "sd": p99 / 4, "p50": 1, "p95": 2, "p99": p99, "max": p99}
    return {
        "policy": name, "failed": None,
        "mice": {"fct_ms": fct, "rto_timeouts": rto, "segments_dropped": 0},
        "elephants": {"goodput_sum_mbit": goodput, "jain": 1.0},
        "queue": {"rounds": {"mean_bytes": mean_bytes} if mean_bytes else None, "qdisc_drops": 4},
    }  # fmt: skip


def test_the_first_policy_is_what_the_others_are_compared_with():
    compared = result.compare([policy("droptail", 800, 400, 190), policy("fairq", 20, 2, 185.25)])
    assert set(compared) == {"fairq"}
    assert compared["fairq"]["fct_p99_times_lower"] == pytest.approx(40)
    assert compared["fairq"]["mice_rto_share"] == pytest.approx(0.005)
    assert compared["fairq"]["goodput_share"] == pytest.approx(0.975)
    assert compared["fairq"]["mice_drops_share"] is None  # nothing to divide by
    assert compared["fairq"]["queue_mean_share"] is None
    assert result.compare([]) == {}
    assert result.compare([policy("droptail", 800, 400, 190)]) == {}


def test_failed_policies_are_kept_but_not_compared():
    whole = result.assemble(
        {"title": "t"}, {}, once([{"policy": "droptail", "failed": "no"}, policy("fairq", 20, 2, 185)])
    )
    assert len(whole["policies"]) == 2
    assert whole["comparison"] == {}


def test_a_result_survives_the_disk(tmp_path):
    whole = result.assemble(
        {"title": "t"}, {"kernel": "6"}, once([policy("a", 8, 1, 2), policy("b", 4, 1, 2)])
    )
    path = result.save(whole, tmp_path)
    assert result.load(tmp_path) == whole == json.loads(path.read_text())
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "fairq-result/0"}', '{"schema": "fairq-result/1"}']
)
def test_what_is_no_result_is_refused(tmp_path, text):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(UserError) as caught:
        result.load(tmp_path)
    assert "fairq run" in caught.value.remedy
    assert "\n" not in str(caught.value)


def test_no_result_is_refused(tmp_path):
    with pytest.raises(UserError, match="there is no"):
        result.load(tmp_path / "nowhere")


def test_summary_has_every_figure():
    summary = result.fct_summary([1.0, 2.0, 3.0])
    assert set(summary) == {"count", "mean", "sd", "p50", "p95", "p99", "max"}
    assert math.isclose(summary["sd"], 1.0)
    assert result.fct_summary([]) is None


def test_drops_are_compared_by_the_round():
    first, other = policy("droptail", 800, 400, 190), policy("fairq", 20, 2, 185)
    assert result.compare([first, other])["fairq"]["drops_share"] == pytest.approx(1)  # an older result
    first["rounds"], other["rounds"] = {"made": 30}, {"made": 60}
    assert result.compare([first, other])["fairq"]["drops_share"] == pytest.approx(0.5)
    first["rounds"] = other["rounds"] = None  # without mice
    assert result.compare([first, other])["fairq"]["drops_share"] == pytest.approx(1)


def test_one_altered_flow_fails_the_run():
    from fairq_ryu.experiments.measure.measurement import Integrity

    integrity = Integrity()
    integrity.flow(True)
    assert integrity.check() == {"flows": 1, "mismatched": 0}
    integrity.flow(False)
    with pytest.raises(RunError, match="1 of 2 flows brought other bytes"):
        integrity.check()


def test_results_of_the_schema_before_are_read(tmp_path):
    whole = result.assemble({"title": "t"}, {}, once([policy("a", 8, 1, 2)]))
    result.save({**whole, "schema": "fairq-result/1"}, tmp_path)
    assert result.load(tmp_path)["policies"] == whole["policies"]
