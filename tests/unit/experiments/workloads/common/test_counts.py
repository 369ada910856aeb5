from fairq_ryu.experiments.workloads.common.counts import more, rates


def test_a_flow_that_has_not_started_has_no_bytes():
    before = {"clock_ns": 1_000_000_000, "bytes": {"0": 500}}
    after = {"clock_ns": 3_000_000_000, "bytes": {"0": 1_000_500, "2": 250_000}}
    assert rates(before, after, [2, 0, 1]) == [1.0, 4.0, 0.0]


def test_a_counter_that_the_kernel_lacks_is_not_zero():
    before, after = ({"0": {"total_rto": n}, "1": {"total_rto": 2 * n}} for n in (1, 4))
    assert more(before, after, "total_rto", [0, 1]) == 3 + 6
    assert more(before, after, "total_rto", [1]) == 6
    assert more(before, {**after, "1": {"total_rto": None}}, "total_rto", [0, 1]) is None
