import pytest

from fairq_ryu.experiments.traffic.workers import RunError
from fairq_ryu.experiments.workloads.common.measurement import Integrity


def test_one_altered_flow_fails_the_run():
    integrity = Integrity()
    integrity.flow(True)
    assert integrity.check() == {"flows": 1, "mismatched": 0}
    integrity.flow(False)
    with pytest.raises(RunError, match="1 of 2 flows delivered other bytes"):
        integrity.check()
