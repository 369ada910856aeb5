"""A pass through the flow map: dead flows go, and controllers are told what has changed."""

from __future__ import annotations

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.flow_sweep import FlowSweep
from fairq_ryu.channel import flow_changes, flow_records
from fairq_ryu.channel.flow_changes import NEVER_MS, ChangeRequest, ChunkFlags
from fairq_ryu.model import FlowKey
from tests.support.flow_rows import ESTABLISHED, FlowRows

C = layout.CONSTANTS
SECOND = 1_000_000_000
KEYS = [FlowKey("10.0.0.1", "10.0.0.2", 33000 + n, 80) for n in range(9)]
KEYS6 = [FlowKey("fe80::9", "fe80::2", 33000, 80)]


class Agent(FlowRows):
    """A flow map that is swept, and a controller that asks what has changed."""

    generation = 0

    def sweep(
        self, now: float, idle: float = 300.0, closed: float = 2.0, unify: tuple[int, float] = (14, 0.0)
    ) -> FlowSweep:
        sweep = FlowSweep(
            self.map,
            [(self.changes, self.ofports)],
            int(now * 1e9),
            int(idle * 1e9),
            int(closed * 1e9),
            (unify[0], int(unify[1] * 1e9)),
        )
        while (part := sweep.read()) is not None:
            sweep.process(part)
        sweep.finish()
        return sweep

    def ask(self, now: float, limit: int = 640, refresh: int = 1000) -> flow_changes.Changes:
        wanted = ChangeRequest(self.generation, refresh, limit)
        found = self.map.changed(self.changes, wanted, int(now * 1e9), self.ofports)
        decoded = flow_changes.decode_reply(flow_changes.encode_reply(found))
        self.generation = decoded.head.generation
        return decoded

    def told(self, now: float, **more: int) -> tuple[list[FlowKey], list[FlowKey]]:
        """Directions that were reported, and those that are gone."""
        found = self.ask(now, **more)
        records = flow_records.decode_reply(found.records)
        return [each.key for each in records], flow_changes.decode_removed(found.removed)


@pytest.fixture
def agent() -> Agent:
    return Agent()


def pairs(*keys: FlowKey) -> set[FlowKey]:
    return {each for key in keys for each in (key, key.reversed)}


def test_a_flow_is_reported_once_and_again_when_it_sends(agent):
    agent.put(KEYS[0], 2, 1, last=1.0, bytes=500)
    agent.put(KEYS6[0], 3, 4, last=1.0)
    agent.sweep(1.5)
    found = agent.ask(2.0)
    assert found.head.flags == ChunkFlags.ANEW and found.head.age_ms == 500
    records = {each.key: each for each in flow_records.decode_reply(found.records)}
    assert records.keys() == pairs(KEYS[0], KEYS6[0])
    assert (records[KEYS[0]].port, records[KEYS[0].reversed].port) == (2, 1)
    assert (records[KEYS[0]].bytes, records[KEYS[0]].idle_ms) == (500, 1000)
    agent.sweep(2.5)
    assert agent.told(3.0) == ([], [])
    agent.put(KEYS[0], 2, 1, last=3.2, bytes=900)
    agent.sweep(3.5)
    (data, back) = flow_records.decode_reply(agent.ask(4.0).records)
    assert {data.key, back.key} == pairs(KEYS[0]) and data.bytes == 900


def test_a_record_is_as_the_map_has_it_when_it_is_sent(agent):
    agent.put(KEYS[0], 2, 1, last=1.0, bytes=500)
    agent.sweep(1.5)
    agent.put(KEYS[0], 2, 1, last=1.9, bytes=800)
    assert {each.bytes for each in flow_records.decode_reply(agent.ask(2.0).records)} == {800}


def test_both_directions_of_a_connection_follow_each_other_in_chunks(agent):
    for n, key in enumerate(KEYS):
        agent.put(key, 2 + n % 2, 1, last=1.0)
    agent.sweep(1.0)
    found, chunks, more = [], 0, True
    while more:
        reply = agent.ask(1.0, limit=5)
        records = [each.key for each in flow_records.decode_reply(reply.records)]
        assert len(records) <= 5
        assert records[::2] == [each.reversed for each in records[1::2]]
        found += records
        chunks, more = chunks + 1, ChunkFlags.MORE in reply.head.flags
    assert set(found) == pairs(*KEYS) and len(found) == 18 and chunks == 5


@pytest.mark.parametrize(
    ("change", "directions"),
    [
        ({"flags": ESTABLISHED | C["FQ_FIN"]}, 2),
        ({"flags": ESTABLISHED & ~C["FQ_KNOWN"]}, 2),
        ({"mss": 1000}, 2),
        ({"rtt_ns": 5000}, 2),
        ({"ruled_until": 10**15}, 2),
        ({"packets": 0}, 2),
        ({"tsval": 77}, 0),
        ({"window": 77}, 0),
    ],
)
def test_changes_that_a_controller_is_told_at_once(agent, change, directions):
    agent.put(KEYS[0], 2, 1, last=1.0)
    agent.sweep(1.0)
    agent.ask(1.0)
    agent.put(KEYS[0], 2, 1, last=1.0, **change)
    agent.sweep(1.1)
    assert len(agent.told(1.2)[0]) == directions


def test_a_direction_that_takes_another_port_or_none_of_the_bridge(agent):
    agent.put(KEYS[0], 2, 1, last=1.0)
    agent.sweep(1.0)
    agent.ask(1.0)
    agent.put(KEYS[0], 3, 9, last=1.0)
    agent.sweep(1.1)
    assert agent.told(1.2) == ([KEYS[0]], [KEYS[0].reversed])
    del agent.ofports[103]  # the port is removed
    agent.sweep(1.2)
    found, gone = agent.told(1.3)
    assert found == [] and set(gone) == pairs(KEYS[0])


def test_flows_that_are_gone_and_those_that_the_sweep_removes(agent):
    agent.put(KEYS[0], 2, 1, last=1.0)
    agent.put(KEYS[1], 2, 1, last=1.0, flags=ESTABLISHED | C["FQ_FIN"])
    agent.put(KEYS[2], 2, 1, last=1.0)
    agent.sweep(1.0)
    assert set(agent.told(1.0)[0]) == pairs(*KEYS[:3])
    agent.remove(KEYS[0])
    sweep = agent.sweep(9.0)
    assert (sweep.gone, sweep.left) == (1, 1)
    found, gone = agent.told(9.0)
    assert found == [] and set(gone) == pairs(*KEYS[:2])


def test_an_unanswered_syn_is_no_flow(agent):
    agent.put(KEYS[0], 2, 1, last=1.0, flags=C["FQ_SEQ"], packets=0)
    agent.sweep(1.0)
    assert agent.told(1.0) == ([], [])
    agent.put(KEYS[0], 2, 1, last=1.2, packets=0)
    agent.sweep(1.5)
    assert set(agent.told(1.5)[0]) == pairs(KEYS[0])


def test_silent_connections_are_moved_a_limited_number_at_a_time(agent, monkeypatch):
    monkeypatch.setattr("fairq_ryu.agent.programs.flow_sweep._MOVES", 4)
    for key in KEYS:
        agent.put(key, 2, 1, last=1.0)
    assert [agent.sweep(400.0).left for _ in range(3)] == [5, 1, 0]
    assert len(agent.silent.entries) == 9


def test_before_the_first_pass_nothing_is_known(agent):
    head = agent.ask(1.0).head
    assert (head.age_ms, head.flags, head.generation) == (NEVER_MS, ChunkFlags.ANEW, 0)


def test_the_head_tells_how_many_flows_there_are(agent):
    agent.put(KEYS[0], 2, 1, last=9.8)
    agent.put(KEYS[1], 2, 9, last=1.0, flags=C["FQ_ACK"] | C["FQ_SEQ"])
    agent.sweep(10.0)
    head = agent.ask(10.0).head
    assert (head.listed, head.active, head.unscaled, head.refresh_ms) == (3, 2, 1, 1000)


def test_a_syn_that_has_left_with_a_larger_scale_is_remembered_until_none_may_be_sent_again(agent):
    opening = C["FQ_SYN_SEEN"]
    for key, scale in zip(KEYS, (9, 7), strict=False):
        agent.put(key, 1, 0, flags=opening, packets=0, wscale=scale)
    assert (agent.sweep(9.0, unify=(7, 75.0)).left, agent.sweep(11.0, unify=(7, 75.0)).left) == (2, 1)
    assert agent.sweep(74.0, unify=(7, 75.0)).left == 1
    assert agent.sweep(76.0, unify=(7, 75.0)).left == 0
    agent.put(KEYS[0], 1, 0, flags=opening, packets=0, wscale=9)
    assert agent.sweep(11.0).left == 0, "nothing is unified"
