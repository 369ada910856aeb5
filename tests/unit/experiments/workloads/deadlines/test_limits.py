"""Physical limits, computed here by hand."""

from dataclasses import replace

from fairq_ryu.experiments import scenario
from fairq_ryu.experiments.workloads.deadlines import limits


def test_deadlines_that_no_order_meets():
    # 10 Mbit/s carry 1.25 MB a second, headers included
    one = scenario.build(
        {
            **scenario.load("deadlines").settings,
            "rate_mbit": 10.0,
            "senders": 4,
            "sizes_bytes": (1_000_000, 1_000_000, 300_000, 9_000_000),
            "deadlines_s": (1.0, 1.1, 1.2, 0.0),
        }
    )
    # The two large ones do not fit together before 1.1 s. Without one of them the small one is in time.
    assert limits.impossible(one) == 1
    assert limits.impossible(replace(one, deadlines_s=(1.0, 2.0, 3.0, 0.0))) == 0
