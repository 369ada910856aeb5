"""Signals while a run builds, measures and removes its network."""

import os
import signal
from collections.abc import Iterator

import pytest

from fairq_ryu.experiments.testbed import Interrupted, Interrupts

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_interrupts_and_a_second_one_does_not_stop_the_clean_up(number: int) -> None:
    with pytest.raises(Interrupted), Interrupts():
        os.kill(os.getpid(), number)
    os.kill(os.getpid(), number)  # ends this process, unless it is ignored


def test_a_signal_is_delayed_until_the_end_of_a_protected_block() -> None:
    done = []
    with pytest.raises(Interrupted), Interrupts() as interrupts, interrupts.deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("all of it")
    assert done == ["all of it"]


def test_without_a_signal_everything_is_as_before() -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    with Interrupts():
        assert [signal.getsignal(number) for number in NUMBERS] != before
    assert [signal.getsignal(number) for number in NUMBERS] == before
