import pytest

from fairq_ryu.experiments.workloads.heterogeneous import figures, rows
from fairq_ryu.experiments.workloads.heterogeneous.figures import Mark, Sockets
from fairq_ryu.experiments.workloads.heterogeneous.settings import Group

TWO_CUBIC, RENO, UDP = (
    Group("cubic", range(2), 0.0),
    Group("reno", range(2, 3), 4.0),
    Group("udp", range(3, 4), 0.0),
)


def counts(seconds, **received):
    """``f0=`` and so on: bytes of the flow of that number."""
    return {
        "clock_ns": int(seconds * 1e9),
        "bytes": {name.removeprefix("f"): count for name, count in received.items()},
    }


def info(retransmissions, timeouts=0):
    return {
        number: {"total_retrans": count, "total_rto": timeouts} for number, count in retransmissions.items()
    }


def figures_of(groups=(TWO_CUBIC, RENO, UDP), middle=()):
    """2 s: the first flow has 4 Mbit/s, the second 2, Reno 2; UDP sends 8 and 6 of these arrive."""
    before = Mark(1.0, counts(10, f0=500, f1=0), counts(10.5, f3=1000))
    after = Mark(3.0, counts(12, f0=1_000_500, f1=500_000, f2=500_000), counts(12.5, f3=1_501_000))
    sockets = (
        Sockets(info({"0": 1, "1": 2, "2": 3}), counts(20, f3=0)),
        Sockets(info({"0": 4, "1": 2, "2": 10}, timeouts=1), counts(22, f3=2_000_000)),
    )
    return figures.long_flows(groups, [before, *middle, after], sockets, 20.0)


def test_throughput_is_per_flow_and_per_group():
    found = figures_of()
    assert found["goodput_mbit"] == pytest.approx([4.0, 2.0, 2.0, 6.0])
    assert found["goodput_sum_mbit"] == pytest.approx(14.0)
    assert found["jain_tcp"] == pytest.approx(64 / (3 * 24))
    assert found["jain"] == pytest.approx(14**2 / (4 * 60))
    assert found["stages"] is None
    cubic, reno, udp = found["groups"]
    assert (cubic["kind"], cubic["flows"], cubic["start_s"]) == ("cubic", 2, 0.0)
    assert (cubic["goodput_sum_mbit"], cubic["least_mbit"], cubic["most_mbit"]) == pytest.approx((6, 2, 4))
    assert cubic["link_share"] == pytest.approx(0.3)
    assert (cubic["retransmissions"], cubic["rto_timeouts"]) == (3, 2)
    assert (reno["retransmissions"], reno["least_mbit"], reno["jain"]) == (7, None, 1.0)
    assert (udp["retransmissions"], udp["sent_mbit"], udp["lost_share"]) == pytest.approx((None, 8, 0.25))


def test_timeouts_are_unknown_on_kernels_that_do_not_count_them():
    none = info({"0": 0, "1": 0}, timeouts=None)
    mark = Mark(0.0, counts(0), None)
    last = Mark(1.0, counts(1, f0=0, f1=0), None)
    found = figures.long_flows([TWO_CUBIC], [mark, last], (Sockets(none, None), Sockets(none, None)), 20.0)
    assert found["groups"][0]["rto_timeouts"] is None
    # A flow that has no connection has sent nothing.
    assert found["goodput_mbit"] == [0.0, 0.0]


def test_one_tcp_flow_is_not_fair_or_unfair():
    found = figures_of(groups=(RENO, UDP))
    assert found["jain_tcp"] is None and found["jain"] < 1


def test_each_start_within_the_phase_begins_a_stage():
    reno = Group("reno", range(2, 3), 2.0)
    half = Mark(2.0, counts(11, f0=500_500, f1=250_000), None)
    found = figures_of(groups=(TWO_CUBIC, reno), middle=[half])
    first, second = found["stages"]
    assert (first["from_s"], first["flows"], second["flows"]) == (1.0, 2, 3)
    assert first["goodput_sum_mbit"] == pytest.approx(4 + 2)
    assert second["goodput_sum_mbit"] == pytest.approx(4 + 2 + 4)
    assert first["seconds"] == second["seconds"] == 1.0
    assert second["jain"] == pytest.approx(100 / (3 * 36))
    # Over the whole phase all flows count, also for the time before they started.
    assert found["goodput_mbit"] == pytest.approx([4.0, 2.0, 2.0])


def test_the_delay_is_the_queue_over_the_rate():
    # 8 Mbit/s: a byte is a microsecond.
    queue = {"mean_bytes": 4000.0, "histogram": [[0, 1000, 50], [1000, 3000, 48], [8000, 9000, 2]]}
    found = figures.delay_ms(queue, 100_000, 8.0)
    assert found == pytest.approx({"mean": 4.0, "p50": 1.0, "p99": 8.5, "max": 9.0})
    # The last range reaches beyond the buffer, which the queue cannot.
    assert figures.delay_ms(queue, 8500, 8.0) == pytest.approx(
        {"mean": 4.0, "p50": 1.0, "p99": 8.25, "max": 8.5}
    )
    assert figures.delay_ms(None, 100_000, 8.0) is None


def test_a_full_link_is_used_wholly():
    assert figures.utilisation(5_000_000, 2.0, 20.0) == pytest.approx(1.0)


def test_rows_of_a_group_and_of_a_stage_say_which():
    groups, stages = rows.TABLE.groups
    assert groups.prefix({"flows": 10, "kind": "hstcp", "start_s": 0.0}) == "10 x hstcp: "
    assert groups.prefix({"flows": 1, "kind": "udp", "start_s": 2.5}) == "1 x udp from 2.5 s: "
    assert stages.prefix({"from_s": 30.0004, "flows": 1}) == "from 30 s, 1 flow: "
    assert stages.prefix({"from_s": 60.0, "flows": 3.0}) == "from 60 s, 3 flows: "
