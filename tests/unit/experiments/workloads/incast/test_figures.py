import pytest

from fairq_ryu.experiments.workloads.incast.figures import Round, mice_of, mice_summary


def client_mouse(number, fct_ms, received, error=None, retrans=0, rto=0):
    return {
        "id": number, "fct_ns": None if fct_ms is None else int(fct_ms * 1e6), "error": error,
        "data_segs_in": received, "data_segs_out": 1, "total_retrans": retrans, "total_rto": rto,
    }  # fmt: skip


def server_mouse(number, sent, retrans=0, rto=0):
    return {
        "id": number, "data_segs_in": 1, "data_segs_out": sent, "total_retrans": retrans, "total_rto": rto,
    }  # fmt: skip


def test_mice_are_matched_by_number():
    client = [client_mouse(2, 20, 8), client_mouse(0, 10, 8), client_mouse(1, None, 5, "timeout", 1, 1)]
    servers = [server_mouse(0, 8), server_mouse(1, 11, 3, 2), server_mouse(2, 9, 1)]
    mice = mice_summary(client, servers, namespace_timeouts=99)
    assert (mice["count"], mice["unfinished"], mice["errors"]) == (3, 1, {"timeout": 1})
    assert mice["fct_list_ms"] == [20.0, 10.0, None]
    assert mice["fct_ms"]["mean"] == pytest.approx(15)
    assert mice["segments_dropped"] == (9 - 8) + (11 - 5)
    assert mice["rto_timeouts"] == 3
    assert mice["rto_source"] == "tcp_info"
    assert mice["retransmissions"] == 5
    assert mice["client_retransmissions"] == 1


def test_a_mouse_that_never_reached_its_server_is_unfinished_and_drops_nothing_known():
    mice = mice_summary([client_mouse(4, None, 0, "timeout", 3, 3)], [], 0)
    assert (mice["unfinished"], mice["segments_dropped"], mice["fct_ms"]) == (1, 0, None)
    assert mice["rto_timeouts"] == 3


def test_mice_that_were_not_begun_are_unfinished_and_have_no_counters():
    rest = {"id": 1, "fct_ns": None, "error": "not begun", "intact": True}
    mice = mice_summary([client_mouse(0, None, 0, "timeout", 3, 3), rest], [], 0)
    assert (mice["count"], mice["unfinished"]) == (2, 2)
    assert mice["errors"] == {"timeout": 1, "not begun": 1}
    assert (mice["rto_timeouts"], mice["retransmissions"], mice["rto_source"]) == (3, 3, "tcp_info")


def test_old_kernels_fall_back_to_the_namespace_and_are_marked():
    mice = mice_summary([client_mouse(0, 10, 8, rto=None)], [server_mouse(0, 8, rto=None)], 12)
    assert (mice["rto_timeouts"], mice["rto_source"]) == (12, "namespace")


def report(number, retrans):
    return {
        "id": number, "fct_ns": 10**7 * (number + 1), "error": None, "data_segs_in": 8, "data_segs_out": 9,
        "total_retrans": retrans, "total_rto": None,
    }  # fmt: skip


def test_the_mice_of_chosen_rounds_are_summed_at_both_ends():
    both = [Round([report(n, 1) for n in ids], 5, 0.0) for ids in ([0, 1], [3, 2], [4, 5])]
    servers = [report(number, 10) for number in (5, 4, 3, 2, 0)]  # mouse 1 never reached its server
    mice = mice_of([both[0], both[2]], servers)
    assert mice is not None
    assert (mice["count"], mice["fct_list_ms"]) == (4, [10, 20, 50, 60])
    assert (mice["retransmissions"], mice["client_retransmissions"]) == (4 + 3 * 10, 4)
    assert mice["segments_dropped"] == 3 * (9 - 8)
    assert (mice["rto_timeouts"], mice["rto_source"]) == (10, "namespace")
    rest = mice_of([both[1]], servers)
    assert rest is not None
    assert (rest["count"], rest["fct_list_ms"], rest["rto_timeouts"]) == (2, [40, 30], 5)
    assert mice_of([], servers) is None
