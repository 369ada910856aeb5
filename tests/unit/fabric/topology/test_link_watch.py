"""A link is lost by silence only if nothing else can explain the silence."""

import random

import pytest

from fairq_ryu.fabric.topology.link_watch import TIMEOUT, LinkWatch
from fairq_ryu.model import PortKey

PERIOD = 1.0


def both(a, b):
    return {(PortKey(*a), PortKey(*b)), (PortKey(*b), PortKey(*a))}


DEAD = both((1, 1), (2, 1))
AT_1, AT_2 = both((1, 2), (3, 1)), both((2, 2), (3, 2))
FORTH = (PortKey(1, 1), PortKey(2, 1))


def after(links, *quiet, end=30, period=PERIOD):
    """What is lost when all ``links`` are heard for 10 periods, and then those that are not ``quiet``."""
    watch, lost = LinkWatch(), []
    for turn in range(end):
        for link in links:
            if turn < 10 or link not in set().union(*quiet):
                watch.heard(link, turn * period)
        lost = watch.silent(links, period, turn * period)
        if lost:
            return lost, turn
    return lost, None


def test_both_directions_silent_and_both_bridges_hear_others():
    assert after(DEAD | AT_1 | AT_2, DEAD) == (sorted(DEAD), 9 + TIMEOUT + 1)


@pytest.mark.parametrize(
    ("links", "quiet"),
    [
        (DEAD | AT_1 | AT_2, [{FORTH}]),
        (DEAD | AT_1 | AT_2, [DEAD, AT_1, AT_2]),
        (DEAD | AT_1 | AT_2, [DEAD, AT_2]),
        (DEAD | AT_1, [DEAD]),
        (DEAD, [DEAD]),
    ],
    ids=["one direction", "all", "all of one bridge", "one bridge has no other link", "the only link"],
)
def test_any_other_silence_loses_nothing(links, quiet):
    assert after(links, *quiet) == ([], None)


def test_the_timeout_follows_the_period():
    assert after(DEAD | AT_1 | AT_2, DEAD, period=10.0) == (sorted(DEAD), 9 + TIMEOUT + 1)


def test_a_direction_alone_is_forgotten():
    assert after({FORTH}, {FORTH}) == ([FORTH], 9 + TIMEOUT + 1)


def test_frames_that_are_lost_by_chance_lose_no_link():
    """However many: of a bridge that drops nearly all frames, those that are left are no steady series."""
    chance = random.Random(1)
    links = DEAD | AT_1 | AT_2
    for part in (0.5, 0.8, 0.9, 0.99):
        watch = LinkWatch()
        for turn in range(2000):
            for link in links:
                if turn < 20 or chance.random() > part:
                    watch.heard(link, turn * PERIOD)
            assert watch.silent(links, PERIOD, turn * PERIOD) == []


def test_links_that_are_gone_are_forgotten():
    watch = LinkWatch()
    watch.heard(FORTH, 1.0)
    watch.silent(set(), PERIOD, 2.0)
    assert len(watch) == 0
