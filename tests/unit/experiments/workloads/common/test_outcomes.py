from fairq_ryu.experiments.workloads.common.outcomes import Flow, Outcome, last_ms


def came(ms, deadline=None, size=1000, rto=0, retrans=0):
    error = "timeout" if ms is None else None
    return Outcome(Flow(0, 0, size, 1, deadline), ms, size - 12 if ms else 0, error, retrans, rto)


def test_a_deadline_is_met_to_the_millisecond():
    assert came(300, 0.3).met is True
    assert came(300.001, 0.3).met is False
    assert came(None, 0.3).met is False
    assert came(10_000).met is None


def test_the_last_byte_of_an_unfinished_round_is_its_timeout():
    assert last_ms([came(5), came(9)], 20) == 9
    assert last_ms([came(5), came(None)], 20) == 20_000
