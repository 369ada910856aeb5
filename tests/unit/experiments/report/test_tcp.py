"""Pictures of what TCP did."""

import shutil
from pathlib import Path

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.measure import tcp_trace
from fairq_ryu.experiments.report import report, tcp

STORED = Path(__file__).parents[3] / "data/results/incast.json"
FLOW = {
    "host": "h3", "port": 40_000, "peer_port": 5001, "bytes": 20_000, "began_ms": 1000.0, "ended_ms": 1300.0,
    "rto_timeouts": 1, "retransmissions": 2, "syn_acks_again": 0,
    "samples": [
        [1000.0, 0, 14_480, 65_536, 14_480, 900, 0, 0],
        [1010.0, 1, 14_480, 65_536, 12_000, 1200, 0, 0],
        [1210.0, 4, 1448, 65_536, 1448, 1200, 2, 1],
        [1212.0, 0, 2896, 65_536, 1448, 1100, 2, 0],
    ],
}  # fmt: skip
TRACE = {
    "interval_ms": 5.0, "taken_ms": 5.2, "cpu_share": 0.1, "rate_mbit": 25.0, "buffer_bytes": 125_000,
    "queue": [[0.0, 0], [900.0, 50_000], [1100.0, 120_000], [1200.0, 3000]],
    "law": [[0.0, "fairq", 100_000, 0, 4], [1100.0, "fairq", 90_000, 0, 0]],
    "flows": [FLOW],
}  # fmt: skip


def stored(directory, trace, *parts):
    where = directory.joinpath("logs", *parts)
    where.mkdir(parents=True)
    tcp_trace.write(where / tcp_trace.FILE_NAME, trace)


def test_a_flow_is_drawn_under_the_queue_and_its_law():
    figure = tcp.drawn(TRACE, FLOW)
    queue, law, windows, trip = figure.axes
    labels = [each.get_ylabel() for each in figure.axes]
    assert labels == ["queue [kB]", "law [kB]", "windows [kB]", "srtt [ms]"]
    # 8 % of 300 ms before and after it; the queue is what it was before that.
    assert trip.get_xlim() == (0.0, 348.0) and trip.get_xlabel() == "time [ms], from 0.98 s of the trace on"
    assert list(queue.lines[0].get_ydata()) == [50, 120, 3, 3]
    assert list(queue.lines[0].get_xdata()) == [-76, 124, 224, 348]
    assert law.get_title(loc="left") == "law fairq"
    pool, share = law.lines
    assert list(pool.get_ydata()) == [100, 90, 90] and list(share.get_ydata()) == [25, 90, 90]
    texts = [text.get_text() for text in windows.get_legend().get_texts()]
    assert texts == [
        "receive window, as the sender saw it (above)", "congestion window", "in flight", "sent again",
        "Disorder", "Loss",
    ]  # fmt: skip
    again = windows.lines[-1]
    assert list(again.get_xdata()) == [234.0]  # when more had been sent again
    assert max(trip.lines[0].get_ydata()) == 1.2
    # It offers more than is drawn.
    assert windows.get_ylim()[1] == pytest.approx(1.15 * 2 * 14.48)


def test_a_handshake_that_took_long_is_in_the_picture():
    late = {**FLOW, "began_ms": 0.0, "syn_acks_again": 1}
    _queue, _law, windows, trip = tcp.drawn(TRACE, late).axes
    assert trip.get_xlim() == (0.0, 1404.0)  # 8 % of 1300 ms after it, and nothing is before 0
    texts = [text.get_text() for text in windows.get_legend().get_texts()]
    assert texts[-3:] == ["handshake", "Disorder", "Loss"]
    spans = [patch for patch in windows.patches if patch.get_facecolor()[:3] == (128 / 255,) * 3]
    assert [(span.get_x(), span.get_width()) for span in spans] == [(0.0, 1000.0)]
    assert tcp._caption(["droptail"], late).endswith("RTO timeouts: 1, SYN-ACKs sent again: 1")


def test_without_a_law_the_picture_says_so():
    _queue, law, _windows, _trip = tcp.drawn({**TRACE, "law": [[0.0, "", 0, 0, 3]]}, FLOW).axes
    assert law.get_title(loc="left") == "no law lowers windows" and not law.lines
    assert tcp.drawn({**TRACE, "law": []}, FLOW).axes[1].get_title(loc="left") == "no law lowers windows"


def test_every_trace_of_a_result_is_drawn_and_named_by_its_policy(tmp_path):
    for parts in (("fairq", "2"), ("droptail", "1")):
        stored(tmp_path, {**TRACE, "flows": [FLOW, FLOW]}, *parts)
    found = tcp.pictures(tmp_path)
    assert [each.name for each in found] == ["droptail-1-1", "droptail-1-2", "fairq-2-1", "fairq-2-2"]
    assert found[0].caption == (
        "What TCP did under droptail 1: h3 port 40000, 20,000 bytes in 300 ms; segments sent again: 2, RTO"
        " timeouts: 1"
    )


def test_the_report_has_them(tmp_path, capsys):
    shutil.copy(STORED, tmp_path / "result.json")
    stored(tmp_path, TRACE, "fairq")
    report.main(tmp_path)
    assert {each.name for each in (tmp_path / "tcp").iterdir()} == {"fairq-1.png", "fairq-1.pdf"}
    assert "<figcaption>What TCP did under fairq: h3" in (tmp_path / "report.html").read_text()
    assert f"report: {tmp_path}/tcp/fairq-1.png" in capsys.readouterr().err
    assert "tcp" in report.WRITTEN


@pytest.mark.parametrize("damage", [b"", b"nothing", None])
def test_a_damaged_trace_is_named(tmp_path, damage):
    stored(tmp_path, {**TRACE, "queue": [[0.0]]} if damage is None else TRACE, "fairq")
    path = tmp_path / "logs" / "fairq" / tcp_trace.FILE_NAME
    if damage is not None:
        path.write_bytes(damage)
    with pytest.raises(UserError, match=f"{path} is damaged"):
        tcp.pictures(tmp_path)
