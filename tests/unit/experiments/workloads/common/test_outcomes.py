from fairq_ryu.experiments.workloads.common.outcomes import last_ms
from tests.support.results import outcome


def test_a_deadline_is_met_to_the_millisecond():
    assert outcome(300, 0.3).met is True
    assert outcome(300.001, 0.3).met is False
    assert outcome(None, 0.3).met is False
    assert outcome(10_000).met is None


def test_the_last_byte_of_an_unfinished_round_is_its_timeout():
    assert last_ms([outcome(5), outcome(9)], 20) == 9
    assert last_ms([outcome(5), outcome(None)], 20) == 20_000
