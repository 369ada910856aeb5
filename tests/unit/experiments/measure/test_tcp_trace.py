"""Which samples and which connections are kept."""

import struct

from fairq_ryu.experiments.measure import tcp_trace
from fairq_ryu.experiments.measure.tcp_trace import COLUMNS, Connection


def info(state=0, cwnd=10, unacked=0, sacked=0, lost=0, retrans=0, acked=0, timeouts=0, sent_again=0, sent=0):
    raw = bytearray(248)
    raw[1] = state
    struct.pack_into("=I", raw, 16, 1000)
    struct.pack_into("=IIII", raw, 24, unacked, sacked, lost, retrans)
    struct.pack_into("=I", raw, 68, 2500)
    struct.pack_into("=I", raw, 80, cwnd)
    struct.pack_into("=I", raw, 100, sent_again)
    struct.pack_into("=Q", raw, 120, acked)
    struct.pack_into("=QQ", raw, 200, sent + sent_again * 1000, sent_again * 1000)
    struct.pack_into("=I", raw, 228, 64_000)
    struct.pack_into("=H", raw, 240, timeouts)
    return bytes(raw)


def connection(began, ended, acked, host="h1"):
    made = Connection(host, 1, 2, began)
    made.sample(began, info())
    made.sample(ended, info(acked=acked))
    return made


def test_a_sample_has_windows_in_bytes_and_what_is_in_flight():
    one = Connection("h1", 1, 2, 0.5)
    one.sample(
        0.5,
        info(state=3, unacked=9, sacked=2, lost=4, retrans=1, sent_again=5, timeouts=2, acked=7, sent=9007),
    )
    found = one.described()
    assert dict(zip(COLUMNS, found["samples"][0], strict=True)) == {
        "ms": 500.0, "state": 3, "cwnd": 10_000, "rwnd": 64_000, "in_flight": 4000, "srtt_us": 2500,
        "retransmissions": 5, "backoff": 0,
    }  # fmt: skip
    assert (found["rto_timeouts"], found["retransmissions"], found["bytes"]) == (2, 5, 7)
    # Before Linux 6.7, the kernel does not tell timeouts.
    old = Connection("h1", 1, 2, 0.0)
    old.sample(0.0, info()[:232])
    assert old.described()["rto_timeouts"] is None


def test_small_segments_are_not_counted_as_full_ones():
    one = Connection("h1", 1, 2, 0.0)
    one.sample(0.0, info(unacked=2, acked=5000, sent=6000, sent_again=3))
    (sample,) = one.described()["samples"]
    assert dict(zip(COLUMNS, sample, strict=True))["in_flight"] == 1000


def test_samples_that_do_not_differ_are_left_out_and_the_end_is_known():
    one = Connection("h1", 1, 2, 0.0)
    for number in range(10):
        one.sample(number / 10, info(cwnd=10 if number < 7 else 20))
    found = one.described()
    assert [sample[0] for sample in found["samples"]] == [0.0, 700.0]
    assert (found["began_ms"], found["ended_ms"]) == (0.0, 900.0)


def test_the_one_with_most_bytes_is_chosen_and_then_the_slowest_for_their_bytes():
    elephant, other = connection(0, 10, 9_000_000, "elephant"), connection(0, 10, 8_000_000, "other")
    # 125,000 bytes take 10 ms at 100 Mbit/s.
    late, later = connection(3, 3.4, 125_000, "late"), connection(5, 5.5, 125_000, "later")
    large = connection(1, 2, 6_000_000, "large")
    silent = connection(1, 2, 0, "silent")
    every = [silent, other, large, late, elephant, later]

    def names(count, seconds=10):
        return [each.host for each in tcp_trace.chosen(every, count, 100, seconds)]

    assert names(1) == ["later"]
    assert names(3) == ["elephant", "later", "late"]
    assert names(9) == ["elephant", "later", "late", "large"]  # others that never end are not slow
    assert names(0) == []
    assert [each.host for each in tcp_trace.chosen([elephant, other], 2, 100, 10)] == ["elephant", "other"]
    assert tcp_trace.chosen([silent], 2, 100, 10) == []
    # A mouse that waits for most of the trace is slow, and none of the long ones.
    waits = connection(1, 9, 125_000, "waits")
    assert [each.host for each in tcp_trace.chosen([*every, waits], 2, 100, 10)] == ["elephant", "waits"]


def test_the_file_is_read_as_it_was_written(tmp_path):
    trace = {"interval_ms": 5.0, "flows": [connection(0, 1, 5).described()], "queue": [[0.0, 1514]]}
    tcp_trace.write(tmp_path / tcp_trace.FILE_NAME, trace)
    assert tcp_trace.load(tmp_path / tcp_trace.FILE_NAME) == trace
