import socket
import time

import pytest

from fairq_ryu.experiments.traffic import flow_sender, mice
from fairq_ryu.experiments.traffic.workers import RunError, Worker, ask_all
from tests.support.generators import Here, generators


@pytest.fixture
def start(tmp_path):
    with generators(tmp_path) as begin:
        yield begin


def mouse(number, port, size=11_500, seed=None, requests=1):
    seed = number if seed is None else seed
    order = {"id": number, "size": size, "seed": seed, "requests": requests}
    return {**order, "address": "127.0.0.1", "port": port}


def test_elephants_are_counted_at_the_receiver(start):
    sink, port = start("sink")
    elephants, _none = start("elephants")
    flows = [{"index": index, "address": "127.0.0.1", "port": port} for index in (0, 5)]
    elephants.ask("start", flows=flows, seed=7)
    while set((before := sink.ask("mark"))["bytes"]) != {"0", "5"}:
        time.sleep(0.01)
    asked = time.monotonic_ns()
    after = before
    while not all(after["bytes"][index] > before["bytes"][index] for index in before["bytes"]):
        time.sleep(0.01)
        after = sink.ask("mark")
    assert before["clock_ns"] <= asked <= after["clock_ns"] <= time.monotonic_ns()
    info = elephants.ask("info")["flows"]
    assert all(flow["data_segs_out"] > 0 for flow in info.values())
    sent = elephants.ask("finish", 30, timeout_s=20)["sent"]
    received = sink.ask("sums")["flows"]
    assert {index: size for index, (size, _crc) in received.items()} == sent
    sums = elephants.ask("checksum", bytes=sent)["crc"]
    assert {index: crc for index, (_size, crc) in received.items()} == sums
    assert sums["0"] != sums["5"]


def test_a_volley_of_mice_transfers_every_byte(start):
    first, first_port = start("server")
    second, second_port = start("server")
    client, _none = start("client")
    wanted = [mouse(n, (first_port, second_port)[n % 2], size=1 + 4_000 * n) for n in range(20)]
    answer = client.ask("round", 30, mice=wanted, timeout_s=10)
    assert [each["id"] for each in answer["mice"]] == list(range(20))
    assert all(each["error"] is None for each in answer["mice"])
    assert all(0 < each["fct_ns"] <= answer["took_ns"] for each in answer["mice"])
    reports = [each for report in ask_all([first, second], "report") for each in report["mice"]]
    by_id = {each["id"]: each for each in reports}
    assert set(by_id) == set(range(20))
    # The loopback has no loss: every sent segment is received.
    for each in answer["mice"]:
        assert by_id[each["id"]]["data_segs_out"] == each["data_segs_in"]
        assert by_id[each["id"]]["data_segs_in"] == each["data_segs_out"] == 1
    assert first.ask("report") == {"re": "report", "mice": [], "open": 0}


def test_mice_that_follow_each_other_are_never_open_together(start):
    server, port = start("server")
    client, _none = start("client")
    answer = client.ask("round", 30, mice=[mouse(0, port, requests=20), mouse(20, port)], timeout_s=10)
    assert [each["id"] for each in answer["mice"]] == list(range(21))
    assert all(each["error"] is None and each["intact"] for each in answer["mice"])
    ends = [each["last_ns"] for each in answer["mice"][:20]]
    assert ends == sorted(ends)
    assert sum(each["fct_ns"] for each in answer["mice"][:20]) <= ends[-1] <= answer["took_ns"]
    report = server.ask("report")
    assert {each["id"] for each in report["mice"]} == set(range(21)) and report["open"] == 0


def test_mice_that_follow_one_without_an_answer_are_not_begun(start):
    client, _none = start("client")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        order = mouse(0, deaf.getsockname()[1], requests=3)
        answer = client.ask("round", 30, mice=[order], timeout_s=0.3)
    assert [each["error"] for each in answer["mice"]] == ["timeout", "not begun", "not begun"]
    assert [each["id"] for each in answer["mice"]] == [0, 1, 2]


TALK = {"size": 200, "interval_s": 0.02, "timeout_s": 5, "seed": 1}


def test_messages_are_answered_on_their_connections(start):
    echo, port = start("echo")
    talkers, _none = start("talkers")
    echo.ask("expect", size=200)
    talkers.ask("open", 10, connections=7, address="127.0.0.1", port=port)
    for _ in range(2):
        answer = talkers.ask("talk", 10, seconds=0.2, **TALK)
        # The first message of a connection is due within the first interval, the last before the end.
        assert 7 * 9 <= answer["sent"] <= 7 * 10
        assert len(answer["times_ns"]) == answer["sent"] and min(answer["times_ns"]) > 0
        assert answer["errors"] == 0
        assert answer["timeouts"] == [0] * 7


def test_messages_without_an_answer_and_closed_connections_are_reported(start):
    talkers, _none = start("talkers")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        talkers.ask("open", 10, connections=2, address="127.0.0.1", port=deaf.getsockname()[1])
        answer = talkers.ask("talk", 10, seconds=0.1, **TALK | {"timeout_s": 0.1})
        assert answer["sent"] >= 8 and answer["times_ns"] == [] and answer["errors"] == 0
    answer = talkers.ask("talk", 10, seconds=0.1, **TALK | {"timeout_s": 0.1})
    assert answer["errors"] == 2 and answer["timeouts"] == []


def test_a_refused_mouse_is_an_error_of_its_own(start):
    _server, port = start("server")
    client, _none = start("client")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = unused.getsockname()[1]
        answer = client.ask("round", 30, mice=[mouse(0, port), mouse(1, closed)], timeout_s=5)
    assert answer["mice"][0]["error"] is None
    assert answer["mice"][1]["error"] == "Connection refused"
    assert answer["mice"][1]["fct_ns"] is None


def test_a_mouse_without_an_answer_is_unfinished_after_the_timeout(start):
    client, _none = start("client")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        answer = client.ask("round", 30, mice=[mouse(0, deaf.getsockname()[1])], timeout_s=0.3)
    assert answer["mice"][0]["error"] == "timeout"
    assert answer["mice"][0]["fct_ns"] is None
    assert answer["took_ns"] >= 0.3e9


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"x" * 100, "wrong data"),
        (b"x" * 40, "closed after 40 bytes"),
        (b"x" * 101, "more data than asked for"),
    ],
)
def test_wrong_bytes_are_detected(start, data, error):
    client, _none = start("client")
    with socket.create_server(("127.0.0.1", 0)) as liar:
        client.send("round", mice=[mouse(0, liar.getsockname()[1], size=100)], timeout_s=5)
        served, _peer = liar.accept()
        with served:
            assert mice.REQUEST.unpack(served.recv(100)) == (0, 100, 0)
            served.sendall(data)
        answer = client.receive("round", 30)
    assert answer["mice"][0]["error"] == error


def flow(number, port, size, seed=None):
    return {
        "id": number, "pid": None, "address": "127.0.0.1", "port": port, "size": size,
        "seed": number if seed is None else seed,
    }  # fmt: skip


@pytest.mark.parametrize("prepared", [False, True])
def test_flows_start_at_one_moment_and_are_compared_byte_for_byte(start, prepared):
    source, _none = start("source")
    collector, port = start("collector")
    sizes = {0: 64, 1: 2_900, 2: 3_000_000, 3: 0}
    ports = source.ask("open", flows=[flow(n, port, size) for n, size in sizes.items()])["ports"]
    assert len(set(ports.values())) == 4
    if prepared:
        assert source.ask("connect", 30, ids=list(sizes), timeout_s=5)["missing"] == []
    at_ns = time.monotonic_ns() + 50_000_000
    assert source.ask("go", ids=list(sizes), at_ns=at_ns)["took_ns"] > 0
    until_ns = at_ns + 10 * 10**9
    received = collector.ask("await", 30, ids=[0, 1, 2], until_ns=until_ns)["flows"]
    assert all(each["done_ns"] > at_ns for each in received)
    source.ask("end", ids=[3])
    received += collector.ask("await", 30, ids=[3], until_ns=until_ns)["flows"]
    sent = source.ask("report", 30, ids=list(sizes), timeout_s=5)["flows"]
    # The last flow is endless: it may still write when the other end closes.
    assert [each["error"] for each in sent][:3] == [None] * 3
    assert [each["bytes"] for each in received] == [each["sent"] for each in sent]
    assert [each["bytes"] for each in received[:3]] == [
        size - flow_sender.HEADER.size for size in (64, 2_900, 3_000_000)
    ]
    wanted = [(n, each["bytes"]) for n, each in enumerate(received)]
    assert [each["crc"] for each in received] == source.ask("checksum", wanted=wanted)["crc"]
    assert received[3]["series"][-1][1] == received[3]["bytes"] > 0
    assert received[3]["series"] == sorted(received[3]["series"])


def test_a_flow_that_is_not_complete_in_time_is_aborted_and_forgotten(start):
    source, _none = start("source")
    collector, port = start("collector")
    source.ask("open", flows=[flow(7, port, 0), flow(8, port, 100)])
    source.ask("go", ids=[7], at_ns=time.monotonic_ns())
    until_ns = time.monotonic_ns() + 1_000_000_000
    late, never = collector.ask("await", 30, ids=[7, 8], until_ns=until_ns)["flows"]
    assert late["done_ns"] is None and late["bytes"] > 0
    assert (never["done_ns"], never["bytes"]) == (None, 0)
    first, second = source.ask("report", 30, ids=[7, 8], timeout_s=0.2)["flows"]
    assert first["error"] is not None and second["sent"] == 0
    assert source.ask("checksum", wanted=[(7, late["bytes"])])["crc"] == [late["crc"]]


def test_a_refused_flow_is_an_error_of_its_own(start):
    source, _none = start("source")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        source.ask("open", flows=[flow(0, unused.getsockname()[1], 100)])
        source.ask("go", ids=[0], at_ns=time.monotonic_ns())
        (report,) = source.ask("report", 30, ids=[0], timeout_s=5)["flows"]
    assert report["error"] == "Connection refused"


def test_a_generator_that_fails_reports_the_reason(start):
    elephants, _none = start("elephants")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(RunError, match=r"elephants on loopback: .*refused"):
            flow = {"index": 0, "address": "127.0.0.1", "port": unused.getsockname()[1]}
            elephants.ask("start", flows=[flow], seed=0)


def test_a_generator_that_ended_is_detected(start):
    sink, _port = start("sink")
    sink.process.kill()
    sink.process.wait()
    with pytest.raises(RunError, match="has ended"):
        sink.ask("mark")


def test_a_late_answer_is_detected(start):
    client, _none = start("client")
    with pytest.raises(RunError, match="did not answer 'round' within"):
        client.receive("round", 0.05)


def test_end_of_input_ends_a_generator(tmp_path):
    worker = Worker(Here(), "client", tmp_path / "log")
    worker.receive("ready", 20)
    worker.end()
    assert worker.process.returncode == 0
