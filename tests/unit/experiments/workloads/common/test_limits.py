"""Physical limits, computed here by hand."""

from fairq_ryu.experiments.workloads.common import limits


def test_bytes_on_the_wire():
    assert limits.wire_bytes(1448, True) == 1514
    assert limits.wire_bytes(1460, False) == 1514
    assert limits.wire_bytes(1449, True) == 1449 + 2 * 66
    # 11,500 bytes are 8 segments
    assert limits.wire_bytes(11_500, True) == 11_500 + 8 * 66
