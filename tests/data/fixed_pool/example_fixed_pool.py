"""The fixed pool in the switch: flows share the target, whatever the queue does."""

from hypothesis import given

from fairq_ryu.law_spec import LawKind
from tests.support.host_laws import FedPort, HostLaw, fq_law
from tests.support.law_traces import TRACES, drive, parameters


@given(parameters([LawKind.FIXED_POOL]), TRACES)
def test_no_event_leaves_the_bounds(values, trace):
    for law, step, _ in drive(values, trace):
        if step == "tick":
            for n in (1, 40, 5000):
                segment = law.state.segment
                floor = max(values["floor_segments"] * segment, segment)
                assert segment <= law.window(n) and n * law.window(n) <= law.pool + n * floor


def test_the_pool_is_the_target_whatever_the_queue_does():
    law = HostLaw(fq_law(LawKind.FIXED_POOL, target=62_500))
    port = FedPort(law)
    for backlog in (0, 10_000, 125_000):
        assert port.feed(backlog, flows=5) == 62_500
        assert (law.window(5), law.window(20)) == (12_500, 3_125)
    # 60 flows: one segment each is more than the pool, and two more than the buffer.
    assert law.window(60) == 1460
