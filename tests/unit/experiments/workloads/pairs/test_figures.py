import pytest

from fairq_ryu.experiments.workloads.common.outcomes import Flow, Outcome
from fairq_ryu.experiments.workloads.pairs import figures, rows


def outcome(ms, retransmissions=0, timeouts=0):
    return Outcome(Flow(0, 0, 1000, 1), ms, 1000, None if ms else "timeout", retransmissions, timeouts)


def rate(mbit, long_ms, short_ms, drops=0, timeouts=0):
    return {
        "rate_mbit": mbit,
        "buffer_bytes": 12_500 * mbit,
        "pairs": 1,
        "long": figures.flows_figures([outcome(long_ms, 2, timeouts)], 10.0),
        "short": figures.flows_figures([outcome(short_ms, 1, timeouts)], 10.0),
        "qdisc_drops": drops,
        "queue_mean_bytes": 100.0,
    }


def step(mbit, unsound=None, **changes):
    found = rate(mbit, 1000.0 / mbit, 100.0 / mbit, drops=mbit)
    return {
        "unsound": unsound,
        "tcp": {"reno": "the kernel's"},
        "tcp_left_out": {"reno": mbit},
        "pairs": figures.pairs_figures([found]),
        "senders": {"retransmissions": mbit, "rto_timeouts": 1},
        "losses": {"refused": 0, "taken": mbit, "program": mbit, "law": None},
        "queue": {
            "law": "red",
            "limit_bytes": 12_500 * mbit,
            "qdisc_drops": mbit,
            "refused": 0,
            "rounds": None,
        },
        "integrity": {"flows": 2, "mismatched": 0},
        "capture": None,
        "seconds": 1.5,
        **changes,
    }


def test_an_unfinished_flow_takes_the_time_limit():
    found = figures.flows_figures([outcome(4000.0), outcome(None, 3, 2)], 10.0)
    assert (found["unfinished"], found["fct_list_ms"]) == (1, [4000.0, 10_000.0])
    assert found["fct_ms"]["mean"] == 7000.0
    assert (found["retransmissions"], found["rto_timeouts"]) == (3, 2)
    assert figures.flows_figures([outcome(1.0, 0, None)], 1.0)["rto_timeouts"] is None


def test_sums_are_over_rates_and_over_both_flows():
    found = figures.pairs_figures([rate(1, None, 5.0, 3, 1), rate(2, 7.0, 5.0, 4)])
    assert (found["pairs"], found["unfinished"], found["qdisc_drops"]) == (2, 1, 7)
    assert (found["retransmissions"], found["rto_timeouts"]) == (6, 2)
    assert (found["timeout_flows"], found["timeout_share"]) == (2, 0.5)
    assert figures.pairs_figures([rate(1, 5.0, 5.0, timeouts=None)])["rto_timeouts"] is None


def test_the_rates_of_a_policy_are_joined():
    found = figures.joined([step(4, "the law raised"), step(2), step(1, "the law raised")])
    assert [each["rate_mbit"] for each in found["pairs"]["rates"]] == [4, 2, 1]
    assert found["pairs"]["pairs"] == 3
    assert found["unsound"] == "the law raised"
    assert found["senders"] == {"retransmissions": 7, "rto_timeouts": 3}
    assert found["losses"] == {"refused": 0, "taken": 7, "program": 7, "law": None}
    assert found["integrity"] == {"flows": 6, "mismatched": 0}
    assert found["tcp_left_out"] == {"reno": 7}
    # Of the highest rate, but for the drops.
    assert (found["queue"]["limit_bytes"], found["queue"]["qdisc_drops"]) == (50_000, 7)
    assert (found["capture"], found["seconds"]) == (None, 4.5)


def test_captures_are_added_up():
    seen = {"acks": 10, "beyond": 0}
    assert figures.joined([step(1, capture=seen), step(2, capture=seen)])["capture"] == {
        "acks": 20, "beyond": 0
    }  # fmt: skip
    assert figures.joined([step(1), step(2)])["unsound"] is None


def test_one_rate_is_as_it_is():
    only = step(3)
    assert figures.joined([only]) == only


def test_the_ratio_is_that_of_the_rate_with_the_least_gain():
    first = {"pairs": {"rates": [rate(1, 100.0, 30.0), rate(2, 100.0, 20.0)]}}
    other = {"pairs": {"rates": [rate(1, 50.0, 10.0), rate(2, 80.0, 10.0)]}}
    ratios = {each.name: each for each in rows.TABLE.ratios}
    assert ratios["short_fct_times_lower"].of(first, other) == pytest.approx(2.0)
    assert ratios["long_fct_times_lower"].of(first, other) == pytest.approx(1.25)
    assert ratios["short_fct_times_lower"].of({}, other) is None
