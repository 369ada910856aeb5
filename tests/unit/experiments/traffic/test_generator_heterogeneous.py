"""The generators of heterogeneous flows, over the loopback interface."""

import random
import socket
import struct
import time

import pytest

from fairq_ryu.experiments.measure import tcp_trace
from fairq_ryu.experiments.traffic import datagrams
from fairq_ryu.experiments.traffic.arrivals import Sizes
from fairq_ryu.experiments.traffic.flow_sender import HEADER
from fairq_ryu.experiments.traffic.generator_control import Loop
from fairq_ryu.experiments.traffic.payload import checksum
from fairq_ryu.experiments.traffic.workers import RunError
from tests.support.generators import generators


@pytest.fixture
def start(tmp_path):
    with generators(tmp_path) as begin:
        yield begin


def soon(seconds=0.0):
    return time.monotonic_ns() + int(seconds * 1e9)


def long_flow(index, port, cc="reno", at_ns=0):
    return {"index": index, "address": "127.0.0.1", "port": port, "cc": cc, "at_ns": at_ns}


def test_long_flows_start_when_they_are_due_with_their_congestion_control_at_both_ends(start):
    sink, _port = start("sink")
    sender, _none = start("longflows")
    ports = {cc: sink.ask("listen", cc=cc)["port"] for cc in ("reno", "cubic")}
    flows = [
        long_flow(0, ports["reno"], "reno", soon()),
        long_flow(1, ports["cubic"], "cubic", soon(0.3)),
        long_flow(2, ports["cubic"], "cubic", soon(600)),
    ]
    sender.ask("begin", flows=flows, seed=7)
    seen: set[str] = set()
    while seen != {"0", "1"}:
        seen = set(sink.ask("mark")["bytes"])
        assert "2" not in seen and ("1" not in seen or soon() >= flows[1]["at_ns"])
        time.sleep(0.01)
    assert sender.ask("controls")["flows"] == {"0": "reno", "1": "cubic", "2": "cubic"}
    assert sink.ask("controls")["flows"] == {"0": "reno", "1": "cubic"}
    assert set(sender.ask("info")["flows"]) == {"0", "1", "2"}
    sent = sender.ask("finish", 30, timeout_s=20)["sent"]
    received = sink.ask("sums")["flows"]
    # The third had no connection.
    assert {index: size for index, (size, _crc) in received.items()} == sent
    assert set(sent) == {"0", "1"}
    assert sender.ask("checksum", bytes=sent)["crc"] == {i: crc for i, (_size, crc) in received.items()}


def test_a_congestion_control_that_does_not_exist_is_an_error(start):
    sender, _none = start("longflows")
    with pytest.raises(RunError, match="a socket cannot use the congestion control lemon: No such file"):
        sender.ask("begin", flows=[long_flow(0, 1, "lemon")], seed=1)


def test_a_long_flow_that_nobody_accepts_is_an_error(start):
    sender, _none = start("longflows")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        sender.ask("begin", flows=[long_flow(4, unused.getsockname()[1])], seed=1)
        with pytest.raises(RunError, match="flow 4 cannot connect: Connection refused"):
            sender.receive("never", 10)


def test_datagrams_have_their_rate_and_are_counted_and_compared(start):
    sink, port = start("datagrams")
    sender, _none = start("udp")
    sink.ask("expect", seed=5)
    at_ns, to = soon(), {"address": "127.0.0.1", "port": port}
    flows = [{"index": index, "mbit": mbit, "at_ns": at_ns, **to} for index, mbit in ((3, 4.0), (8, 1.0))]
    sender.ask("begin", flows=flows, seed=5)
    while not all(sender.ask("mark")["bytes"].values()):
        time.sleep(0.01)
    time.sleep(0.2)
    found = sender.ask("finish")
    seconds = (found["clock_ns"] - at_ns) / 1e9
    for index, mbit in (("3", 4.0), ("8", 1.0)):  # less where the machine was late
        assert 0 < found["bytes"][index] <= mbit * 1e6 / 8 * seconds
    while (arrived := sink.ask("mark"))["bytes"] != found["bytes"]:
        time.sleep(0.01)
    assert arrived["altered"] == 0
    assert sender.ask("mark")["bytes"] == found["bytes"]


class Clock:
    """In place of the loop and of the module's clock: every timer is called when it is due."""

    def __init__(self, now):
        self.now, self.timers = now, []

    def call_at(self, when, callback):
        self.timers.append((when, callback))

    def monotonic(self):
        return self.now

    def monotonic_ns(self):
        return int(self.now * 1e9)

    def run(self, until):
        while min(self.timers, key=lambda each: each[0])[0] <= until:
            timer = min(self.timers, key=lambda each: each[0])
            self.timers.remove(timer)
            self.now = max(self.now, timer[0])
            timer[1]()


@pytest.mark.parametrize("late_s", [0.0, 0.02, 0.05], ids=["punctual", "late", "later"])
def test_a_udp_flow_never_sends_more_than_its_rate_gives(monkeypatch, late_s):
    """In 0.1 s it may send eleven datagrams less a byte: ten are sent, also if the machine is late."""
    clock, answers = Clock(100.0), []
    monkeypatch.setattr(datagrams, "time", clock)
    monkeypatch.setattr(datagrams, "answer", lambda re, **values: answers.append(values))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        mbit = (11 * datagrams.DATAGRAM_BYTES - 1) * 8 / 0.1 / 1e6
        flow = {"index": 0, "mbit": mbit, "address": "127.0.0.1", "port": sink.getsockname()[1]}
        sender = datagrams.UdpSender(clock)
        sender.command({"cmd": "begin", "flows": [flow | {"at_ns": 100 * 10**9}], "seed": 5})
        for until, sent in ((100.04, 4), (100.1, 10)):
            clock.run(until)
            sender.command({"cmd": "mark"})
            assert answers[-1]["bytes"] == {0: sent * datagrams.DATAGRAM_BYTES}
            clock.now += late_s
        sender.command({"cmd": "finish"})
        clock.timers[0][1]()
        assert answers[-1]["bytes"] == {0: 10 * datagrams.DATAGRAM_BYTES} and not clock.timers[1:]


def test_altered_datagrams_are_counted(start):
    sink, port = start("datagrams")
    sink.ask("expect", seed=5)
    good = datagrams.HEADER.pack(0, 7) + datagrams.body(5, 7)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for data in (good, good[:-1], good[:-1] + bytes([good[-1] ^ 1]), good):
            sock.sendto(data, ("127.0.0.1", port))
    while (found := sink.ask("mark"))["altered"] < 2 or found["bytes"] != {"0": 3 * datagrams.DATAGRAM_BYTES}:
        assert found["altered"] <= 2
        time.sleep(0.01)


def test_short_flows_arrive_until_they_cease(start):
    source, _none = start("arrivals")
    collector, port = start("collector")
    source.ask(
        "arrive", at_ns=soon(), per_s=100, seed=3, least=1500, most=20_000, shape=1.2,
        address="127.0.0.1", port=port, pids=[None],
    )  # fmt: skip
    arrived = collector.ask("await", 60, ids=[0, 1, 2], until_ns=soon(50))["flows"]
    flows = source.ask("cease")["flows"]
    ids = [flow["id"] for flow in flows]
    assert ids == list(range(len(flows))) and len(flows) >= 3
    arrived += collector.ask("await", 60, ids=ids[3:], until_ns=soon(50))["flows"]
    sent = source.ask("report", 60, ids=ids, timeout_s=50)["flows"]
    assert [each["error"] for each in sent] == [None] * len(flows)
    for flow, here in zip(flows, arrived, strict=True):
        assert 1500 <= flow["size"] <= 20_000 and here["bytes"] == flow["size"] - HEADER.size
        assert here["crc"] == checksum(flow["seed"], here["bytes"])
        assert here["done_ns"] > flow["start_ns"]
    time.sleep(0.1)
    assert len(source.ask("cease")["flows"]) == len(flows)


def test_scheduled_flows_start_when_they_are_due_whether_or_not_others_have_ended(start):
    """The first cannot end, because nobody reads it."""
    source, _none = start("scheduled")
    collector, port = start("collector")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        at_ns = soon(0.1)
        ports, dues = (deaf.getsockname()[1], port, port, port), (0, 0.05, 0.1, 600)
        sizes = (1 << 26, 13, 500_000, 13)
        flows = [
            {
                "id": number, "size": size, "seed": number, "at_ns": at_ns + int(due * 1e9), "pid": None,
                "address": "127.0.0.1", "port": port,
            }
            for number, (size, due, port) in enumerate(zip(sizes, dues, ports, strict=True))
        ]  # fmt: skip
        source.ask("schedule", flows=flows)
        arrived = collector.ask("await", 60, ids=[1, 2], until_ns=soon(50))["flows"]
        started = source.ask("started")["flows"]
        assert [flow["id"] for flow in started] == [0, 1, 2]
        assert source.ask("started")["flows"] == []
        for flow, due, here in zip(started[1:], dues[1:], arrived, strict=False):
            assert flow["start_ns"] >= at_ns + due * 1e9
            assert here["done_ns"] > flow["start_ns"] and here["bytes"] == flow["size"] - HEADER.size
            assert here["crc"] == checksum(flow["seed"], here["bytes"])
        sent = source.ask("report", 30, ids=[0, 1, 2], timeout_s=0.1)["flows"]
        assert [each["error"] for each in sent] == ["timeout", None, None]


def test_a_trace_has_the_flows_that_were_there(start, tmp_path):
    tracer, _none = start("tracer")
    source, _none = start("source")
    collector, port = start("collector")
    path = tmp_path / tcp_trace.FILE_NAME
    tracer.ask(
        "start", hosts={"here": None}, port="lo", status=str(tmp_path / "no agent"), law_port="lo",
        interval_ms=2, count=50, rate_mbit=1000, buffer_bytes=5000,
    )  # fmt: skip
    flow = {"id": 0, "size": 0, "seed": 1, "pid": None, "address": "127.0.0.1", "port": port}
    (own,) = source.ask("open", flows=[flow])["ports"].values()
    source.ask("go", ids=[0], at_ns=soon())
    time.sleep(0.3)
    source.ask("end", ids=[0])
    collector.ask("await", 60, ids=[0], until_ns=soon(50))
    tracer.ask("end", path=str(path))
    trace = tcp_trace.load(path)
    assert (trace["interval_ms"], trace["rate_mbit"], trace["buffer_bytes"]) == (2, 1000, 5000)
    assert trace["queue"][0][1] == 0 and trace["law"] == [] and 0 < trace["cpu_share"] < 1
    (found,) = (each for each in trace["flows"] if (each["port"], each["peer_port"]) == (own, port))
    assert found["host"] == "here" and found["bytes"] > 0 and found["samples"][0][0] >= found["began_ms"]


class Uniform(random.Random):
    """In place of random numbers: the share of the distribution that is above."""

    def __init__(self, above):
        super().__init__()
        self.above = above

    def random(self):
        return 1.0 - self.above


def test_sizes_have_a_pareto_distribution():
    sizes = Sizes(1500, 1_000_000, 1.2)
    # P(size > x) = (1500 / x) ** 1.2
    for size in (1500, 3000, 15_000, 150_000):
        assert sizes.draw(Uniform((1500 / size) ** 1.2)) == pytest.approx(size, abs=1)
    assert sizes.draw(Uniform(1e-9)) == 1_000_000
    numbers = random.Random(1)
    assert all(1500 <= sizes.draw(numbers) <= 1_000_000 for _ in range(1000))


def test_timers_are_called_in_order_and_a_step_ends_when_one_is_due():
    here, there = socket.socketpair()
    with here, there:
        loop, called = Loop(here.fileno()), []
        now = time.monotonic()
        loop.call_at(now + 0.03, lambda: called.append("second"))
        loop.call_at(now + 0.01, lambda: called.append("first"))
        loop.call_at(now + 100, lambda: called.append("never"))
        while len(called) < 2:
            loop.step(50.0)
        assert called == ["first", "second"]
        assert 0.03 <= time.monotonic() - now < 40
        loop.selector.close()


def test_a_datagram_with_its_headers_fills_a_frame():
    assert datagrams.DATAGRAM_BYTES + 8 + 20 + 14 == 1514
    assert datagrams.HEADER.size == struct.calcsize("!IQ") < datagrams.DATAGRAM_BYTES
