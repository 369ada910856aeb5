import json
import os

import pytest

from fairq_ryu.experiments.measure import tcpinfo


def test_tcp_info_of_a_known_kernel():
    raw = bytearray(248)
    raw[16:20] = (1448).to_bytes(4, "little")
    raw[100:104] = (3).to_bytes(4, "little")
    raw[152:160] = (8).to_bytes(4, "little") + (9).to_bytes(4, "little")
    raw[240:242] = (2).to_bytes(2, "little")
    info = tcpinfo.parse(bytes(raw))
    assert info._asdict() == {
        "snd_mss": 1448, "rtt_us": 0, "total_retrans": 3,
        "data_segs_in": 8, "data_segs_out": 9, "total_rto": 2,
    }  # fmt: skip
    assert tcpinfo.parse(bytes(raw[:232])).total_rto is None
    with pytest.raises(ValueError):
        tcpinfo.parse(bytes(raw[:150]))


def test_namespace_counters_are_those_of_tcp():
    counters = tcpinfo.namespace_counters(os.getpid())
    assert counters["RetransSegs"] >= 0
    assert counters["TCPTimeouts"] >= 0
    assert json.dumps(counters)
