"""The benchmark of many bridges and connections: its parts, and a short run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import scale
from bench.apps.probe import Sample
from bench.scale import Measured, Samples, describe, growth, make_case, measure, quantile
from bench.simulated_agent import SimulatedPorts
from bench.simulated_flows import Flows
from fairq_ryu.channel import flow_changes, flow_records
from fairq_ryu.channel.flow_changes import ChangeRequest, ChunkFlags
from fairq_ryu.errors import UserError
from fairq_ryu.model import FlowKey


def ask(
    data: SimulatedPorts, generation: int
) -> tuple[dict[FlowKey, flow_records.FlowRecord], list[FlowKey], int]:
    """The records that have changed, the directions that are gone, and the next generation."""
    found = data.flow_changes(ChangeRequest(generation, 1, 640))
    assert ChunkFlags.MORE not in found.head.flags
    records = {each.key: each for each in flow_records.decode_reply(found.records)}
    return records, flow_changes.decode_removed(found.removed), found.head.generation


def test_a_simulated_agent_reports_the_connections_of_its_bridge(monkeypatch):
    clock = [100.0]
    for module in ("simulated_agent", "simulated_map"):
        monkeypatch.setattr(f"bench.{module}.time.monotonic", lambda: clock[0])
        monkeypatch.setattr(f"bench.{module}.time.monotonic_ns", lambda: int(clock[0] * 1e9))
    flows = Flows(bridge=1, ports=3, lasting=100, rate=1.0, seconds=1.0, began=100.0, sending=0.5)
    data = SimulatedPorts(flows)
    clock[0] = 102.0
    data.sweep()
    records, gone, generation = ask(data, 0)
    same = {each.key: each for each in flows.records(102.0, {1, 2, 3})}
    assert len(records) == 600 and records.keys() == same.keys() and gone == []
    for key, record in records.items():
        simulated = same[key]
        assert (record.port, record.mss, record.wscale) == (simulated.port, simulated.mss, simulated.wscale)
        assert record.bytes == pytest.approx(simulated.bytes, abs=1) and record.rtt_us == simulated.rtt_us
    assert sum(each.idle_ms == 0 for each in records.values()) == 300
    assert sum(each.idle_ms == 2000 for each in records.values()) == 300
    ask(data, generation)
    list(flows.advance(102.5))  # 7 connections begin
    clock[0] = 103.0
    data.sweep()
    records, gone, generation = ask(data, generation)
    assert len(records) == 300 + 14 and gone == []
    list(flows.advance(103.5))  # they end, and 3 begin
    ask(data, generation)
    clock[0] = 103.6
    data.sweep()
    records, gone, generation = ask(data, generation)
    ended = {key for key, each in records.items() if each.flags & flow_records.CLOSED}
    assert len(ended) == 14
    clock[0] = 106.0
    data.sweep()
    assert set(ask(data, generation)[1]) == ended


def test_the_load_is_spread_over_bridges_and_processes():
    case = make_case(100, 100_000, 2000, 1.0, 2)
    assert (case.ports, case.ports_each, case.lasting, case.rate) == (1000, 10, 100, 2.0)
    spread = [(each.first, each.switches, each.ports) for each in case.settings(1)]
    assert spread == [(1, 50, 10), (51, 50, 10)]
    with pytest.raises(UserError):
        make_case(100, 100_001, 0, 1.0, 2)


def test_samples_are_read_as_they_are_written(tmp_path: Path):
    file = tmp_path / "probe"
    samples = Samples(file)
    assert samples.read() is None
    lines = [json.dumps(Sample(1.0 + n, n, n, 10 * n, n == 2, [5 - n, n], [n])) + "\n" for n in range(3)]
    file.write_text(lines[0] + lines[1][:9])
    assert samples.read() == Sample(1.0, 0, 0, 0, False, [5, 0], [0])
    file.write_text("".join(lines))
    assert samples.read() == Sample(3.0, 2, 2, 20, True, [3, 2], [2])
    assert samples.read() == samples.all[-1] and len(samples.all) == 3
    assert (samples.delays(1.0, 3.0), samples.own(1.0, 3.0)) == ([1, 2, 3, 4], [1, 2])


def test_quantiles():
    assert [quantile(range(1000), part) for part in (0.5, 0.99, 1.0)] == [500, 990, 999]
    assert quantile([], 0.99) == 0


def test_the_figures_name_what_was_wanted():
    few = Measured(
        2.0, [100, 900], [100] * 99 + [2000], [100] * 99 + [1000], 0.1, 0.25, 100 * 10**6, 10_050, 200.0, 0
    )
    many = Measured(
        8.0,
        [100, 7000],
        [200] * 50 + [4000] * 50,
        [200] * 50 + [3000] * 50,
        0.8,
        0.5,
        300 * 10**6,
        102_000,
        2000.0,
        1,
    )
    delay, start, cost = describe(make_case(100, 100_000, 2000, 1.0, 2), many)
    assert delay.startswith("scale, 100 bridges, 1000 ports, 100000 connections: loop delay p50 4.00, p99 4")
    assert "p99 wanted 5 at most; without waits for a processor p50 3.00, p99 3.00, longest 3.0 ms" in delay
    assert "2000 new connections a second, 102000 known" in delay
    assert "start to full knowledge 8.0 s, wanted 10 at most, with loop delay p50 7.00" in start
    assert "0.80 of a core, waited for a processor 50 % of the time, memory 300 MB, leases ended 1" in cost
    assert growth(few, many, 10) == (
        "scale, 10 times as much: loop delay without waits p99 3.0 times, start 4.0 times, "
        "processor 8.0 times, memory 3.0 times"
    )


@pytest.mark.parametrize(("connected", "began"), [((0, 0, 1), 1.1), ((0, 2, 2), 1.0), ((1, 1, 1), 0.9)])
def test_the_start_is_before_the_first_connection(connected, began):
    """All may be known in the sample that is the first to know of a connection."""
    samples = [Sample(1.0 + n / 10, agents, 0, 0, True, [], []) for n, agents in enumerate(connected)]
    assert scale.first_connection(samples) == pytest.approx(began)


def test_two_bridges_of_a_real_controller_are_known(tmp_path: Path):
    case = make_case(2, 400, 20, 1.0, 1)
    found = measure(case, tmp_path, seconds=1.5, warm_up=0.0)
    assert 0 < found.start < scale._START_TIME and found.connections >= 400
    assert found.delays and found.memory > 1_000_000 and found.opened > 0
