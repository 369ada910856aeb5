"""Lines of ``fairq show`` about the queue laws of ports."""

from __future__ import annotations

from fairq_ryu.cli.queue_law_notes import queue_law_notes

PORT = {
    "dpid": "0000000000000001",
    "port": 3,
    "queue_law": "afcd",
    "queue_law_missing": None,
    "queue_law_limits": "share",
    "judged": 123456,
    "judged_dropped": 789,
    "judged_marked": 0,
    "judged_not_ect": 123456,
    "fair_share": 500.4,
    "fair_share_flows": 4,
    "queue_delay_s": 0.00251,
    "delay_target_s": 0.0006,
    "delay_interval_s": 0.012,
}


def test_what_a_law_has_done() -> None:
    (line,) = queue_law_notes([PORT])
    assert line == (
        "queue law afcd on 1:3: 123,456 judged, 789 dropped, 0 marked, 123,456 not ECN-capable, fair share "
        "500 samples of 4 flows, delay 2.5 ms, target 0.6 ms, interval 12 ms, limits by share"
    )


def test_a_law_without_flows_and_delays() -> None:
    none = dict.fromkeys(("fair_share", "fair_share_flows", "delay_target_s", "delay_interval_s"))
    (line,) = queue_law_notes([{**PORT, **none, "queue_law": "mark", "queue_law_limits": "nothing"}])
    assert line.endswith("not ECN-capable, delay 2.5 ms")


def test_a_law_that_is_not_in_force() -> None:
    missing = {**PORT, "queue_law_missing": "its kernel does not run the law"}
    unreported = {**PORT, "judged": None}
    assert list(queue_law_notes([missing, unreported, {**PORT, "queue_law": None}])) == [
        "no queue law on 1:3: afcd: its kernel does not run the law",
        "queue law afcd on 1:3: no report yet",
    ]
