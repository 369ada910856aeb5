"""Which disable wins, and when it ends."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairq_ryu.control.windows.disables import LIMIT, Disables, Scope, TooMany
from fairq_ryu.model import PortKey

ALL, BRIDGE, PORT = Scope(), Scope(1), Scope(1, 3, "tap3")
HERE, BESIDE, ELSEWHERE = PortKey(1, 3), PortKey(1, 4), PortKey(2, 3)
NAMES = {HERE: "tap3", BESIDE: "tap4", ELSEWHERE: "tap9"}


def until(disables: Disables) -> list[float | None]:
    return [disables.until(key, name) for key, name in NAMES.items()]


@pytest.mark.parametrize(
    ("scope", "found"),
    [(ALL, [9, 9, 9]), (BRIDGE, [9, 9, None]), (PORT, [9, None, None])],
)
def test_what_a_disable_covers(scope, found):
    disables = Disables()
    disables.disable(scope, 9)
    assert until(disables) == found


def test_a_port_that_comes_back_with_another_number_is_known_by_its_name():
    disables = Disables()
    disables.disable(PORT)
    assert disables.until(PortKey(1, 8), "tap3") == math.inf
    assert disables.until(PortKey(1, 8), "tap8") is None
    assert disables.until(PortKey(2, 8), "tap3") is None
    unnamed = Disables()
    unnamed.disable(Scope(1, 3))
    assert unnamed.until(PortKey(1, 8), "") is None


def test_another_port_with_the_number_of_a_disabled_one_is_not_disabled_and_enables_only_itself():
    disables = Disables()
    disables.disable(PORT)
    moved, other = PortKey(1, 7), HERE
    assert disables.until(other, "tap99") is None
    disables.enable(Scope(*other, "tap99"))
    assert disables.until(moved, "tap3") == math.inf
    disables.enable(Scope(*moved, "tap3"))
    assert not disables


@pytest.mark.parametrize("names", [("", "tap3"), ("tap3", ""), ("", "")])
def test_the_number_decides_where_a_name_is_not_known(names):
    disabled, now = names
    disables = Disables()
    disables.disable(Scope(*HERE, disabled))
    assert disables.until(HERE, now) == math.inf and disables.until(BESIDE, now) is None
    disables.enable(Scope(*BESIDE, now and "tap4"))
    assert disables.until(HERE, now) == math.inf
    disables.enable(Scope(*HERE, now))
    assert not disables


@pytest.mark.parametrize("order", [(ALL, PORT), (PORT, ALL)])
def test_the_longer_of_two_disables_counts(order):
    disables = Disables()
    for scope in order:
        disables.disable(scope, math.inf if scope == ALL else 9)
    assert until(disables) == [math.inf, math.inf, math.inf]
    assert disables.expire(9) == [PORT]
    assert until(disables) == [math.inf, math.inf, math.inf]


def test_an_enable_ends_all_earlier_disables_of_its_ports_and_of_no_others():
    disables = Disables()
    disables.disable(ALL)
    disables.disable(PORT, 50)
    disables.enable(PORT)
    assert until(disables) == [None, math.inf, math.inf]
    disables.disable(BRIDGE, 70)
    assert until(disables) == [70, math.inf, math.inf]
    disables.expire(70)
    assert until(disables) == [None, math.inf, math.inf]
    disables.enable(ALL)
    assert until(disables) == [None, None, None] and not disables


def test_the_end_comes_by_itself():
    disables = Disables()
    assert disables.next_end == math.inf
    disables.disable(BRIDGE, 9)
    disables.disable(PORT, 5)
    assert disables.next_end == 5
    assert disables.expire(4.9) == []
    assert disables.expire(5) == [PORT]
    assert disables.expire(9) == [BRIDGE]
    assert not disables and disables.next_end == math.inf


def test_bounded():
    disables = Disables()
    for number in range(LIMIT):
        disables.disable(Scope(1, number))
    for refused in (lambda: disables.disable(Scope(2)), lambda: disables.enable(Scope(3))):
        with pytest.raises(TooMany):
            refused()
    assert disables.until(PortKey(2, 1), "") is None and disables.until(PortKey(1, LIMIT - 1), "")
    disables.enable(Scope(1))
    assert not disables


def test_the_same_disable_again_is_no_other():
    """Somebody may have it in a crontab."""
    disables = Disables()
    disables.enable(ALL)
    for minute in range(2 * LIMIT):
        disables.disable(PORT, 90 + minute)
        disables.disable(BRIDGE, 100)
    assert len(disables.statements()) == 2 and disables.until(HERE, "tap3") == 89 + 2 * LIMIT
    disables.enable(PORT)
    disables.disable(PORT, 5)
    assert disables.until(HERE, "tap3") == 5


def test_enables_alone_are_not_stored():
    disables = Disables()
    disables.enable(PORT)
    assert not disables
    disables.disable(ALL, 3)
    for _ in range(2 * LIMIT):
        disables.enable(PORT)
    disables.expire(3)
    assert not disables


SCOPES = st.sampled_from([ALL, BRIDGE, PORT, Scope(1, 4, "tap4"), Scope(2), Scope(2, 3, "tap9")])


@given(st.lists(st.tuples(SCOPES, st.none() | st.integers(1, 20) | st.just(math.inf)), max_size=12))
def test_against_a_table_of_ports(statements):
    """Each port on its own: an enable clears it, a disable adds a time."""
    disables = Disables()
    table: dict[PortKey, list[float]] = {key: [] for key in NAMES}
    for scope, end in statements:
        if end is None:
            disables.enable(scope)
        else:
            disables.disable(scope, end)
        for key, name in NAMES.items():
            if scope.covers(key, name):
                table[key] = [] if end is None else [*table[key], end]
    for now in range(22):
        disables.expire(now)
        for key, name in NAMES.items():
            left = [end for end in table[key] if end > now]
            assert disables.until(key, name) == (max(left) if left else None)
