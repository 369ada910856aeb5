"""New hosts of a port: a thousand at once, a hundred a second, and each port by itself."""

from fairq_ryu.fabric.topology.host_limit import BURST, RATE, HostLimit
from fairq_ryu.model import PortKey

PORT, OTHER = PortKey(1, 1), PortKey(1, 2)


def admitted(limit, frames, now, port=PORT):
    return sum(limit.admits(port, now) for _ in range(frames))


def test_a_foreign_switch_that_comes_up_is_known_at_once_and_a_flood_is_not():
    limit = HostLimit()
    assert admitted(limit, 5000, 100.0) == BURST
    assert limit.put_aside == 5000 - BURST
    assert admitted(limit, 5000, 100.5) == RATE / 2
    # Frames that were put aside cost nothing later: the bucket is full again.
    assert admitted(limit, 5000, 200.0) == BURST


def test_a_port_that_floods_all_the_time_gets_the_rate_and_takes_none_from_others():
    limit = HostLimit()
    admitted(limit, 5000, 0.0)
    steps = [1 + step / 100 for step in range(2000)]
    assert 20.9 * RATE < sum(admitted(limit, 10, now) for now in steps) <= 21 * RATE
    assert admitted(limit, 5000, steps[-1], OTHER) == BURST


def test_only_ports_with_new_hosts_of_late_are_kept():
    limit = HostLimit()
    for number in range(10_000):
        limit.admits(PortKey(1, number), number / 100)
        assert len(limit._buckets) <= 2 * 100 * BURST / RATE
