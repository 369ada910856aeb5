"""The limits of the hosts' socket buffers."""

import pytest

from fairq_ryu.experiments.hostcc.hosts import buffer_limit


def test_buffers_hold_a_window_and_what_it_costs():
    # 50 Mbit/s for 120 ms and a buffer as large: 1.5 MB under way.
    assert buffer_limit(1_500_000, 3) == 6_000_000


@pytest.mark.parametrize("hosts", [2, 21, 251])
def test_large_windows_do_not_take_the_memory_of_the_machine(hosts):
    # 100 Gbit/s for 1 s, and 1 GiB: the kernel refuses a limit of 2^31 bytes.
    limit = buffer_limit(100_000 * 125 * 1000 + (1 << 30), hosts)
    assert limit < 1 << 31 and (1 << 30) - hosts < limit * hosts <= 1 << 30
