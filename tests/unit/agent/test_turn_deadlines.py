"""The deadlines that an agent stores for connections whose handshakes may wait."""

from __future__ import annotations

from fairq_ryu.agent.turn_deadlines import TurnDeadlines


def test_the_last_deadline_of_a_connection_counts():
    made = TurnDeadlines()
    made.set(b"a", 50, 0)
    made.set(b"a", 90, 1)
    assert (made.get(b"a", 1), made.get(b"b", 1)) == (90, None)
    made.set(b"a", None, 2)
    made.set(b"b", None, 2)
    assert made.get(b"a", 2) is None and len(made) == 0


def test_a_deadline_is_kept_for_a_while_after_it_was_set_last():
    made = TurnDeadlines(keep_ns=100)
    made.set(b"a", 50, 0)
    made.set(b"b", 50, 10)
    made.set(b"a", 50, 20)
    assert made.get(b"b", 109) == 50 and made.get(b"b", 110) is None
    assert made.get(b"a", 119) == 50 and made.get(b"a", 120) is None
    made.set(b"c", 50, 119)
    assert len(made) == 2, "the old one takes no memory"


def test_the_deadline_that_was_set_longest_ago_gives_way():
    made = TurnDeadlines(capacity=2)
    for number, name in enumerate((b"a", b"b", b"a", b"c")):
        made.set(name, number, 0)
    assert [made.get(name, 0) for name in (b"a", b"b", b"c")] == [2, None, 3]
