"""The drops of a port's queue laws only grow, whatever laws come and go."""

from __future__ import annotations

from fairq_ryu.agent.programs.law_drops import LawDrops


def test_a_new_law_goes_on_with_the_count_of_those_before() -> None:
    drops = LawDrops()
    assert [drops.read(1, count) for count in (0, 5, 9, 2, 0, 4)] == [0, 5, 9, 11, 11, 15]
    assert drops.read(2, 3) == 3
    drops.forget(1)
    assert drops.read(1, 1) == 1
