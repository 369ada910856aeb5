"""The rule table, by OpenFlow 1.3.5 section 6.4: what each command changes and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent import rule_table
from fairq_ryu.agent.rule_table import NS, Rule, RuleTable
from fairq_ryu.channel.flow_match import match_fields
from fairq_ryu.channel.flowmod_decoder import FlowMod
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.model import FlowKey, WindowKind, WindowRule
from tests.support.fakes import FakeDatapath

FLOW4 = FlowKey("10.0.0.1", "10.0.0.2", 33000, 80)
FLOW6 = FlowKey("2001:db8::1", "2001:db8::2", 33000, 80)
WINDOW, POOL = WindowRule(WindowKind.WINDOW, 3000), WindowRule(WindowKind.POOL, 9000)
ANY = ofp.OFPP_ANY


def mod(
    command: int, target: int | FlowKey | None = 1, window: WindowRule | None = WINDOW, **more: Any
) -> FlowMod:
    """A FlowMod as the decoder returns it; target None matches all."""
    values: dict[str, Any] = {
        "match": {} if target is None else match_fields(target),
        "cookie": 0,
        "cookie_mask": 0,
        "hard_timeout": 2,
        "priority": 1,
        "out_port": ANY,
        "out_group": ofp.OFPG_ANY,
        "flags": 0,
    }
    return FlowMod(command=command, window=window, **(values | more))


def add(target: int | FlowKey = 1, window: WindowRule = WINDOW, **more: Any) -> FlowMod:
    return mod(ofp.OFPFC_ADD, target, window, **more)


def delete(target: int | FlowKey | None = None, strict: bool = False, **more: Any) -> FlowMod:
    command = ofp.OFPFC_DELETE_STRICT if strict else ofp.OFPFC_DELETE
    return mod(command, target, None, **more)


@dataclass
class Bench:
    """A table on a datapath with ports 1, 2 and 3."""

    sink: FakeDatapath
    table: RuleTable

    def refused(self, change: FlowMod, now: int = 0) -> tuple[int, int]:
        """Apply a FlowMod that must be refused; nothing may change."""
        before, writes = self.table.rules(), self.sink.writes
        with pytest.raises(OpenFlowError) as caught:
            self.table.apply(change, now)
        assert (self.table.rules(), self.sink.writes) == (before, writes)
        return caught.value.type, caught.value.code

    def count(self, target: int | FlowKey, matched: int) -> None:
        self.sink.counted[self.sink.installed[target][2]] = (matched, matched)

    def counted(self, target: int | FlowKey) -> int:
        return self.sink.counters(self.sink.installed[target][2])[0]


@pytest.fixture
def bench() -> Bench:
    sink = FakeDatapath(1, 2, 3)
    return Bench(sink, RuleTable(sink, capacity=4))


# Adding


def test_an_added_rule_is_installed_until_its_lease_ends(bench):
    assert bench.table.apply(add(1, POOL, hard_timeout=5), 7) == []
    window, expires, _ = bench.sink.installed[1]
    assert (window, expires) == (POOL, 7 + 5 * NS)
    assert bench.table.port_rule(1).match == {"in_port": 1}
    assert bench.table.port_rule(2) is None
    assert len(bench.table) == 1


def test_adding_again_renews_and_replaces_but_counts_on(bench):
    bench.table.apply(add(1, WINDOW, cookie=1), 0)
    bench.count(1, 50)
    assert bench.table.apply(add(1, POOL, cookie=2, hard_timeout=3, priority=9), NS) == []
    (rule,) = bench.table.rules()
    assert (rule.window, rule.cookie, rule.priority, rule.since_ns) == (POOL, 2, 9, NS)
    assert bench.sink.installed[1][:2] == (POOL, 4 * NS)
    assert bench.counted(1) == 50


def test_counters_start_again_when_asked(bench):
    bench.table.apply(add(1), 0)
    bench.count(1, 50)
    bench.table.apply(add(1, flags=ofp.OFPFF_RESET_COUNTS), 0)
    assert bench.counted(1) == 0


def test_a_new_rule_does_not_inherit_an_old_ones_counters(bench):
    bench.table.apply(add(1), 0)
    bench.count(1, 50)
    bench.table.apply(delete(1), 0)
    bench.table.apply(add(2), 0)
    assert bench.counted(2) == 0


def test_check_overlap(bench):
    overlap = ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_OVERLAP
    bench.table.apply(add(1, flags=ofp.OFPFF_CHECK_OVERLAP), 0)
    assert bench.refused(add(1, POOL, flags=ofp.OFPFF_CHECK_OVERLAP), 1) == overlap
    bench.table.apply(add(2, flags=ofp.OFPFF_CHECK_OVERLAP), 0)
    bench.table.apply(add(1, POOL), 0)


def test_a_full_table(bench):
    for target in (1, 2, FLOW4, FLOW6):
        bench.table.apply(add(target), 0)
    assert bench.refused(add(3)) == (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL)
    # it replaces a rule: there is room for that
    bench.table.apply(add(FLOW4, WindowRule(WindowKind.WINDOW, 1)), 0)
    bench.table.apply(delete(2), 0)
    bench.table.apply(add(3), 0)
    slots = [slot for *_, slot in bench.sink.installed.values()]
    assert sorted(slots) == [0, 1, 2, 3]


def test_renewing_costs_no_room(bench):
    for now in range(20):
        bench.table.apply(add(1), now)
    for target in (2, FLOW4, FLOW6):
        bench.table.apply(add(target), 0)
    assert len(bench.table) == 4


def test_a_port_that_is_not_there(bench):
    assert bench.refused(add(9)) == (ofp.OFPET_BAD_MATCH, ofp.OFPBMC_BAD_VALUE)


def test_a_match_that_no_rule_has(bench):
    assert bench.refused(add(1, match={"in_port": 1, "eth_type": 0x0800}))[0] == ofp.OFPET_BAD_MATCH


def test_a_datapath_that_fails_costs_no_room(bench):
    bench.sink.failure = OSError("no memory")
    for _ in range(10):
        with pytest.raises(OSError, match="no memory"):
            bench.table.apply(add(1), 0)
    assert len(bench.table) == 0
    bench.sink.failure = None
    for target in (1, 2, FLOW4, FLOW6):
        bench.table.apply(add(target), 0)


# Modifying


@pytest.mark.parametrize("command", [ofp.OFPFC_MODIFY, ofp.OFPFC_MODIFY_STRICT])
def test_a_modification_keeps_all_but_the_window(bench, command):
    bench.table.apply(add(1, cookie=5, hard_timeout=5, priority=7, flags=1), 10)
    bench.count(1, 50)
    bench.table.apply(mod(command, 1, POOL, cookie=9, hard_timeout=60, priority=7, flags=0), 3 * NS)
    (rule,) = bench.table.rules()
    assert rule.window == POOL
    assert (rule.cookie, rule.hard_timeout, rule.priority, rule.flags) == (5, 5, 7, 1)
    assert bench.sink.installed[1][:2] == (POOL, 10 + 5 * NS)
    assert bench.counted(1) == 50
    bench.table.apply(mod(command, 1, POOL, flags=ofp.OFPFF_RESET_COUNTS), 0)
    assert bench.counted(1) == 0


@pytest.mark.parametrize("command", [ofp.OFPFC_MODIFY, ofp.OFPFC_MODIFY_STRICT])
def test_modifying_a_missing_rule_changes_nothing(bench, command):
    assert bench.table.apply(mod(command, 1), 0) == []
    assert (len(bench.table), bench.sink.writes) == (0, 0)


def test_a_loose_modification_changes_all_matching_rules(bench):
    for target in (1, FLOW4, FLOW6):
        bench.table.apply(add(target), 0)
    new = WindowRule(WindowKind.WINDOW, 5)
    bench.table.apply(mod(ofp.OFPFC_MODIFY, None, new, match={"eth_type": 0x0800}), 0)
    assert {t: window for t, (window, *_) in bench.sink.installed.items()} == {
        1: WINDOW,
        FLOW4: new,
        FLOW6: WINDOW,
    }
    bench.table.apply(mod(ofp.OFPFC_MODIFY_STRICT, None, new), 0)  # no rule has an empty match
    assert bench.sink.installed[1][0] == WINDOW


# Deleting


def test_loose_deletions_remove_all_matching_rules(bench):
    for target in (1, 2, FLOW4, FLOW6):
        bench.table.apply(add(target), 0)
    gone = bench.table.apply(delete(None, match={"tcp_dst": 80, "eth_type": 0x86DD, "ip_proto": 6}), 0)
    assert [rule.target for rule in gone] == [FLOW6]
    assert bench.table.apply(delete(3), 0) == []
    assert len(bench.table.apply(delete(), 0)) == 3
    assert not bench.sink.installed


def test_strict_deletions_remove_the_equal_match_only(bench):
    for target in (1, FLOW4):
        bench.table.apply(add(target), 0)
    assert bench.table.apply(delete(None, strict=True), 0) == []
    assert bench.table.apply(delete(None, strict=True, match={"eth_type": 0x0800}), 0) == []
    assert [rule.target for rule in bench.table.apply(delete(FLOW4, strict=True), 0)] == [FLOW4]
    assert list(bench.sink.installed) == [1]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("cookie", "mask", "goes"), [(0, 0, True), (5, 0, True), (0xA5, 0xF0, True), (5, 0xFF, False)]
)
def test_cookie_masks(bench, strict, cookie, mask, goes):
    bench.table.apply(add(1, cookie=0xA0), 0)
    change = delete(1, strict=strict, cookie=cookie, cookie_mask=mask)
    assert bool(bench.table.apply(change, 0)) == goes
    assert bool(bench.sink.installed) != goes


@pytest.mark.parametrize("more", [{"out_port": 1}, {"out_group": 1}])
def test_a_filter_on_outputs_selects_nothing(bench, more):
    bench.table.apply(add(1), 0)
    assert bench.table.apply(delete(**more), 0) == []
    assert len(bench.table) == 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("target", [7, FLOW4])
def test_a_match_that_names_one_rule_is_compared_with_no_other(monkeypatch, strict, target):
    """Thousands of flows may end together, and each sends a deletion."""
    table = RuleTable(FakeDatapath(*range(1, 101)), capacity=102)
    for each in (*range(1, 101), FLOW4):
        table.apply(add(each), 0)
    compared = []
    monkeypatch.setattr(rule_table, "match_fields", lambda of: compared.append(of) or match_fields(of))
    assert [rule.target for rule in table.apply(delete(target, strict=strict), 0)] == [target]
    assert table.apply(delete(target, strict=strict), 0) == []
    assert table.select(match_fields(8), 0, 0)[0].target == 8
    assert compared == []
    assert len(table.apply(delete(None, match={"eth_type": 0x86DD}), 0)) == 0 < len(compared)


# Time and ports


def test_leases_are_looked_at_only_when_one_may_have_ended(bench, monkeypatch):
    for target in (1, 2, FLOW4):
        bench.table.apply(add(target, hard_timeout=5), 0)
    looked = []
    ends = Rule.expires_ns.fget
    monkeypatch.setattr(Rule, "expires_ns", property(lambda rule: looked.append(rule.target) or ends(rule)))
    bench.table.expire(NS)
    looked.clear()
    for tick in range(20, 50):
        assert bench.table.expire(tick * NS // 10) == []
    assert looked == []
    bench.table.apply(add(2, hard_timeout=1), 4 * NS)
    looked.clear()
    assert [rule.target for rule in bench.table.expire(5 * NS)] == [1, 2, FLOW4]


def test_expiry(bench):
    bench.table.apply(add(1, hard_timeout=1), 0)
    bench.table.apply(add(FLOW4, hard_timeout=2), 0)
    assert bench.table.expire(NS - 1) == []
    assert [rule.target for rule in bench.table.expire(NS)] == [1]
    bench.table.apply(add(FLOW4, hard_timeout=2), NS)  # renewed
    assert bench.table.expire(2 * NS) == []
    assert [rule.target for rule in bench.table.expire(3 * NS)] == [FLOW4]
    assert not bench.sink.installed


def test_the_rule_of_a_removed_port_is_removed(bench):
    bench.table.apply(add(1), 0)
    bench.table.apply(add(FLOW4), 0)
    assert bench.table.forget_port(2) == []
    assert [rule.target for rule in bench.table.forget_port(1)] == [1]
    assert list(bench.sink.installed) == [FLOW4]


def test_rules_are_selected_by_cookie_and_match(bench):
    for target, cookie in ((1, 1), (2, 2), (FLOW4, 2)):
        bench.table.apply(add(target, cookie=cookie), 0)
    assert len(bench.table.select({}, 0, 0)) == 3
    assert [rule.target for rule in bench.table.select({}, 2, 0xFF)] == [2, FLOW4]
    assert [rule.target for rule in bench.table.select({"in_port": 2}, 0, 0)] == [2]


TARGETS = st.sampled_from([1, 2, 9, FLOW4, FLOW6])
CHANGES = st.lists(
    st.builds(
        mod,
        st.integers(0, 4),
        st.none() | TARGETS,
        st.sampled_from([WINDOW, WindowRule(WindowKind.WINDOW, 1)]),
        cookie=st.integers(0, 1),
        cookie_mask=st.integers(0, 1),
        hard_timeout=st.integers(1, 3),
        flags=st.sampled_from([0, ofp.OFPFF_CHECK_OVERLAP, ofp.OFPFF_RESET_COUNTS]),
    )
)


@given(CHANGES, st.integers(1, 5))
def test_table_and_datapath_always_agree(changes, capacity):
    sink = FakeDatapath(1, 2)
    table = RuleTable(sink, capacity)
    for now, change in enumerate(changes):
        before = table.rules()
        try:
            removed = table.apply(change, now * NS)
        except OpenFlowError:
            assert table.rules() == before
        else:
            assert {rule.target for rule in removed} <= {rule.target for rule in before} - {
                r.target for r in table.rules()
            }
        table.expire(now * NS)
        listed = {rule.target: (rule.window, rule.expires_ns, rule.slot) for rule in table.rules()}
        assert listed == sink.installed
        slots = [rule.slot for rule in table.rules()]
        assert len(set(slots)) == len(slots) <= capacity
        assert all(0 <= slot < capacity for slot in slots)
