"""Rules of single flows: what controllers want comes before what the agent closes by itself."""

from __future__ import annotations

from typing import Any

import pytest

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.flow_rules import FlowRules
from fairq_ryu.agent.turns import Closing
from fairq_ryu.model import FlowKey, WindowKind, WindowRule

ACKS = FlowKey("10.0.0.1", "10.0.0.2", 40_000, 80)
KEY = flow_key(ACKS, directed=True)
GRANT = WindowRule(WindowKind.WINDOW, 5000)
MORE = WindowRule(WindowKind.WINDOW, 9000)
# The slots of a bridge, and of another.
OWN, OTHERS = range(8), range(8, 16)
LONG = 2**62


class Table(dict[bytes, Any]):
    name, fd, full = "flow_rules", 5, False

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(bytes(key), default)

    def set(self, key: Any, value: Any) -> None:
        if self.full:
            raise BpfError("no room")
        self[bytes(key)] = value

    def delete(self, key: Any) -> bool:
        return self.pop(bytes(key), None) is not None


@pytest.fixture
def rules() -> Any:
    counts: list[int] = []
    table: Any = Table()
    made: Any = FlowRules(table, 2, lambda: counts.append(made.count))
    made.table, made.counts = table, counts
    return made


def test_a_window_is_closed_for_longer_and_opened(rules: Any) -> None:
    assert rules.close(KEY, 10) is Closing.DONE and rules.keep_closed(KEY, 20)
    (found,) = rules.table.values()
    assert (found.bytes, found.kind, found.expires_ns) == (0, 1, 20)
    assert rules.counts == [1]
    rules.open(KEY)
    rules.open(KEY)
    assert rules.table == {} and rules.counts == [1, 0]


def test_a_rule_of_a_controller_is_neither_replaced_nor_removed(rules: Any) -> None:
    rules.install(ACKS, GRANT, 10, 3, OWN)
    assert rules.close(KEY, 20) is Closing.NEVER and not rules.keep_closed(KEY, 20)
    rules.open(KEY)
    (found,) = rules.table.values()
    assert (found.bytes, found.slot) == (5000, 3) and rules.counts == [1]


def test_a_controller_takes_over_a_closed_window(rules: Any) -> None:
    rules.close(KEY, 10)
    rules.install(ACKS, GRANT, 10, 3, OWN)
    assert not rules.keep_closed(KEY, 20)
    rules.open(KEY)
    (found,) = rules.table.values()
    assert found.bytes == 5000 and rules.counts == [1]
    rules.remove(ACKS, OWN)
    assert rules.table == {} and rules.counts == [1, 0]
    assert not rules.keep_closed(KEY, 30), "it was a controller's since"
    assert rules.close(KEY, 30) is Closing.DONE


def test_without_room_no_window_is_closed(rules: Any) -> None:
    rules.table.full = True
    assert rules.close(KEY, 10) is Closing.LATER
    assert rules.count == 0
    rules.table.full = False
    keys = [flow_key(FlowKey("10.0.0.1", "10.0.0.2", port, 80), directed=True) for port in (1, 2, 3)]
    assert [rules.close(key, 10) for key in keys] == [Closing.DONE, Closing.DONE, Closing.LATER]
    rules.open(keys[0])
    assert rules.close(keys[2], 10) is Closing.DONE


def test_a_configuration_that_cannot_be_written_leaves_no_rule(rules: Any) -> None:
    def fail() -> None:
        raise BpfError("no room")

    rules._changed = fail
    assert rules.close(KEY, 10) is Closing.LATER
    assert rules.table == {} and rules.count == 0 and not rules.keep_closed(KEY, 20)


def test_of_two_bridges_the_lower_window_applies_while_its_lease_lives(rules: Any) -> None:
    def window() -> int:
        (found,) = rules.table.values()
        return int(found.bytes)

    rules.install(ACKS, MORE, LONG, 9, OTHERS)
    rules.install(ACKS, GRANT, LONG, 3, OWN)
    rules.install(ACKS, MORE, LONG, 9, OTHERS)  # renewed
    assert window() == GRANT.bytes
    rules.install(ACKS, GRANT, 10, 3, OWN)  # ends at once
    rules.install(ACKS, MORE, LONG, 9, OTHERS)
    assert window() == MORE.bytes and rules.counts == [1]
    rules.install(ACKS, WindowRule(WindowKind.WINDOW, 9500), LONG, 9, OTHERS)
    assert window() == 9500, "a bridge's own rule changes in both directions"


def test_a_bridge_removes_its_own_rule_only(rules: Any) -> None:
    rules.install(ACKS, GRANT, LONG, 3, OWN)
    rules.remove(ACKS, OTHERS)
    assert rules.count == 1
    rules.remove(ACKS, OWN)
    assert rules.count == 0 and rules.table == {}
    rules.close(KEY, LONG)
    rules.install(ACKS, GRANT, LONG, 9, OTHERS)
    assert not rules.keep_closed(KEY, LONG), "a window that the agent has closed belongs to no bridge"
