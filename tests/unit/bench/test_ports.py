"""The benchmark of many ports: what the simulated switches send and count, and a short run of three ports."""

from __future__ import annotations

import re
import struct
import time
from pathlib import Path

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from bench import ports
from bench.ports import Case, Measured
from bench.simulated_agent import LIMITS, SimulatedPorts, make_server
from bench.simulated_bridge import BridgeSession
from bench.simulated_flows import Flows
from bench.simulated_switches import MessageCounter, Report, Traffic
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.channel import flow_records
from fairq_ryu.channel.protocol import parser
from fairq_ryu.errors import UserError
from fairq_ryu.model import WindowKind, WindowRule
from fairq_ryu.openflow import meters, pipeline
from fairq_ryu.packet import parse
from tests.support.fakes import DATAPATH, ryu_decode, split, wire

AGENT = Path(__file__).parents[3] / "fairq_ryu/agent"
NS = 10**9


def flows(**values: float) -> Flows:
    given = {"bridge": 1, "ports": 3, "lasting": 2, "rate": 1.0, "seconds": 1.0, "began": 100.0}
    return Flows(**(given | values))  # type: ignore[arg-type]


# Flows


def test_a_connection_is_copied_at_its_two_ports_when_it_begins_and_ends():
    made = flows()
    assert list(made.advance(100.3)) == []
    syn, answer = made.advance(100.34)
    first, second = parse.parse(syn.frame).tcp, parse.parse(answer.frame).tcp
    assert (first.syn, first.ack, second.syn, second.ack) == (True, False, True, True)
    assert second.key == first.key.reversed and second.ack_number == first.seq + 1
    assert answer.port == 1 != syn.port and (first.mss, first.wscale) == (1460, 9)
    assert [parse.parse(copy.frame).tcp.fin for copy in made.advance(101.33)] == [False] * 4
    ends = [parse.parse(copy.frame).tcp for copy in made.advance(101.34)]
    assert [each.key for each in ends if each.fin] == [first.key, second.key]


def test_connections_begin_at_the_rate_and_are_forgotten_like_in_an_agent():
    made = flows(rate=10.0)
    for step in range(500):
        list(made.advance(100 + step / 50))
    assert made.opened == 6 + 299
    # 30 a second: one second open, two in which the agent keeps what is closed.
    found = list(made.records(109.98, {1, 2, 3}))
    assert 2 * (6 + 88) <= len(found) <= 2 * (6 + 92)
    closed = [each for each in found if each.flags & flow_records.CLOSED]
    assert 2 * 58 <= len(closed) <= 2 * 62 and max(each.idle_ms for each in closed) < 2000


def test_every_port_has_its_lasting_flows():
    data = [each for each in flows(rate=0.0).records(102.0, {1, 2, 3}) if each.bytes]
    assert sorted(each.port for each in data) == [1, 1, 2, 2, 3, 3]
    assert all(each.key.src != each.key.dst and each.acked == each.bytes == 16_000_000 for each in data)


# The agent


def test_a_simulated_agent_has_all_that_the_server_of_an_agent_needs():
    used = re.compile(r"\b(?:data|_data|_sink|_queues|_ports|_bridge)\.([a-z]\w*)")
    found = {name for path in AGENT.glob("*.py") for name in used.findall(path.read_text(encoding="utf-8"))}
    needed = found & set(dir(BridgePrograms))
    assert {"ports", "install_rule", "queue_law_counts", "set_thresholds", "copy_counts"} < needed
    assert needed - set(dir(SimulatedPorts)) == set()


# The bridge


def test_the_bridge_announces_hosts_until_the_controller_has_rules_for_them():
    sent = bytearray()
    bridge = BridgeSession(flows(), 1, sent.extend)
    sent.clear()
    assert bridge.advance(100.0) == 0, "the controller has not joined"
    for message in pipeline.source(DATAPATH, "02:00:00:01:00:02", 2, 300):
        bridge.receive(wire(message))
    assert bridge.known == 1 and bridge.advance(100.1) == 2
    found = [ryu_decode(data) for data in split(bytes(sent))]
    assert [(each.match["in_port"], each.cookie) for each in found] == [
        (1, pipeline.COOKIE_SOURCE),
        (3, pipeline.COOKIE_SOURCE),
    ]


def test_the_bridge_answers_what_the_controller_asks():
    sent = bytearray()
    bridge = BridgeSession(flows(), 1, sent.extend)
    requests = [
        parser.OFPFeaturesRequest(DATAPATH),
        parser.OFPPortDescStatsRequest(DATAPATH),
        parser.OFPBarrierRequest(DATAPATH),
        pipeline.ask_rules(DATAPATH),
        pipeline.ask_counters(DATAPATH),
        meters.ask(DATAPATH),
    ]
    data = b"".join(wire(request) for request in requests)
    bridge.receive(data[:11])
    bridge.receive(data[11:])
    _hello, features, desc, barrier, rules, counters, drops = (ryu_decode(d) for d in split(bytes(sent)))
    assert features.datapath_id == 1 and barrier.msg_type == ofp.OFPT_BARRIER_REPLY
    assert [port.port_no for port in desc.body] == [port.port_no for port in counters.body] == [1, 2, 3]
    assert rules.body == [] and drops.body[0].band_stats[0].packet_band_count == 0


def test_messages_are_counted_in_any_pieces():
    stream = b"".join(struct.pack("!BBHI", 4, 0, size, 1) + bytes(size - 8) for size in (8, 60, 8, 9))
    for step in (1, 3, 7, 8, 30, 1000):
        counter = MessageCounter()
        assert sum(counter.count(stream[at : at + step]) for at in range(0, len(stream), step)) == 4


# The agent


def test_a_lease_that_ends_is_counted_and_so_is_the_time_between_renewals():
    data = SimulatedPorts(flows())
    server = make_server(flows(), 1, data)
    rule = WindowRule(WindowKind.POOL, 1000)
    now = time.monotonic_ns()
    data.install_rule(1, rule, now + NS, 0)
    data.install_rule(2, rule, now + 100 * NS, 1)
    assert (data.governed(now), data.governed(now + NS)) == (2, 1)
    data.expire(server, now + NS)
    data.install_rule(2, rule, now + 100 * NS, 1)
    taken = data.take_leases(now + 5 * NS)
    assert (taken.renewals, taken.lapses) == (1, 1)
    assert taken.gap == pytest.approx(5 * NS, rel=0.01) and 0.99 < taken.left < 1
    assert data.take_leases(now).renewals == 0


def test_the_queues_are_busy_and_of_known_size():
    data = SimulatedPorts(flows())
    state = data.queue(data.ports[1])
    assert 0 < state.backlog < LIMITS.limit and LIMITS.limit and LIMITS.rate
    assert data.active_flows(data.ports[1]) == 3


# The benchmark


def test_ports_are_spread_over_switches_and_processes():
    spread = Case(1000).settings(6653)
    assert [(each.first, each.switches, each.ports) for each in spread] == [(1, 10, 50), (11, 10, 50)]
    assert [(each.first, each.switches, each.ports) for each in Case(10).settings(1)] == [(1, 1, 10)]
    for impossible in (Case(101), Case(1)):
        with pytest.raises(UserError):
            impossible.settings(6653)


def test_the_figures_are_of_a_core_a_port_and_a_message():
    report = Report(
        governed=1000,
        laws=1000,
        least=998,
        renewals=40_000,
        lapses=2,
        gap=0.55,
        left=0.7,
        connections=2000,
        agents=Traffic(1000, 2000, 300, 700),
        bridges=Traffic(500, 500, 400, 600),
    )
    head, channel, outcome = ports.describe(Case(1000), Measured([0.1, 0.2], 0.25, 20.0, 150 * 10**6, report))
    assert "0.150 of a core (-0.485 to 0.785), wanted 0.20 at most, 150 µs a second and port" in head
    assert "1500 µs a message, memory 150 MB, waited for a processor 25 % of the time" in head
    assert "100 messages and 0 kB a second" in channel and "100 new connections a second" in channel
    assert "ports governed at all times 998, by laws in the switch 1000, leases ended 2" in outcome
    assert "renewals 2000 a second, longest gap 0.55 s of 2 s, least left at a renewal 70%" in outcome


def test_three_ports_of_a_real_controller_are_governed(tmp_path: Path):
    case = Case(3, ports_each=3, lasting=1, rate=5.0, lifetime=0.2)
    found = ports.measure(case, tmp_path, seconds=1.0, warm_up=0.2)
    assert (found.report.governed, found.report.laws, found.report.hosts) == (3, 3, 3)
    assert found.report.renewals > 0 and found.report.connections > 0
    assert found.report.agents.messages_out > 0 and found.memory > 1_000_000
    assert all(share >= 0 for share in found.processor)
