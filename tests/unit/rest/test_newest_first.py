"""Who is let in next when long answers wait."""

from __future__ import annotations

import eventlet
import pytest

from fairq_ryu.rest.newest_first import NewestFirst


class Requests:
    """Requests that need the lock; ``made``: those that have had it, in order."""

    def __init__(self) -> None:
        self.turn, self.made = NewestFirst(), []

    def ask(self, name: str, fails: bool = False) -> eventlet.greenthread.GreenThread:
        """A request that comes now. Others run while it has the lock."""

        def answer() -> None:
            with self.turn:
                self.made.append(name)
                eventlet.sleep(0)
                if fails:
                    raise ValueError(name)

        made = eventlet.spawn(answer)
        eventlet.sleep(0)
        return made


@pytest.fixture
def requests() -> Requests:
    return Requests()


def finish(*askers: eventlet.greenthread.GreenThread) -> None:
    with eventlet.Timeout(5):
        for each in askers:
            each.wait()


def test_the_newest_is_next(requests):
    with requests.turn:
        askers = [requests.ask(name) for name in "abc"]
        assert requests.made == []
    finish(*askers)
    assert requests.made == ["c", "b", "a"]
    finish(requests.ask("d"))
    assert requests.made[-1] == "d"


def test_one_whose_connection_is_closed_waits_no_more(requests):
    with requests.turn:
        first, second = requests.ask("a"), requests.ask("b")
        second.kill()
    finish(first)
    assert requests.made == ["a"]


def test_one_that_is_closed_when_its_turn_has_come_lets_the_next_in(requests):
    with requests.turn:
        first, second = requests.ask("a"), requests.ask("b")
    second.kill()  # it has not run yet
    finish(first)
    assert requests.made == ["a"]


def test_one_that_fails_lets_the_next_in(requests):
    with requests.turn:
        first, second = requests.ask("a"), requests.ask("b", fails=True)
    with pytest.raises(ValueError, match="b"):
        second.wait()
    finish(first)
    assert requests.made == ["b", "a"]
