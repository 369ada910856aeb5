"""What queue laws have counted at a port only grows, whatever laws come and go; maps are tables here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs import queue_law
from fairq_ryu.agent.programs.queue_law import QueueLawProgram
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.queue_law_table import parameters
from fairq_ryu.laws.afq import AfqLaw
from fairq_ryu.laws.codel import CodelLaw
from fairq_ryu.laws.mark import MarkLaw
from fairq_ryu.queue_law_spec import QueueLawSpec

PORT, OTHER = 7, 8
MARK = MarkLaw()


class Table(dict[int, Any]):
    """A map: what is read is a copy."""

    def get(self, key: Any, default: Any = None) -> Any:
        found = super().get(key.value, default)
        return None if found is None else type(found).from_buffer_copy(found)

    def set(self, key: Any, value: Any) -> None:
        self[key.value] = value


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    tc = SimpleNamespace(attach=lambda *_: None, detach=lambda *_: None)
    monkeypatch.setattr(queue_law, "TcFilter", lambda lib, priority: tc)
    ids: dict[int, tuple[int, ...]] = {}
    window = SimpleNamespace(slots={PORT: 2, OTHER: 3}, ids=lambda ifindex: ids.get(ifindex, (ifindex,)))
    maps = SimpleNamespace(laws=Table(), bins=Table())
    queues = SimpleNamespace(law_maps=maps, set_bins=lambda count: None)
    made: Any = QueueLawProgram(None, window, queues, None, 4)  # type: ignore[arg-type]
    made._object, made._program, made._states, made._tables = object(), 0, Table(), Table()
    made.ids = ids
    return made


def install(program: Any, law: QueueLawSpec = MARK, port: int = PORT, law_id: int = 1) -> None:
    program.install(port, law_id, parameters(law, QueueLimits("htb", 125_000, 25_000_000)), 10**18)


def judge(program: Any, judged: int, dropped: int, slot: int = 2) -> None:
    """As the law in a slot does."""
    counts = program._states[slot].state.counts
    counts.judged += judged
    counts.dropped += dropped


def counted(program: Any, port: int = PORT) -> tuple[int, int]:
    counts = program.counts(port)
    state = program.state(port)
    if state is not None:
        assert bytes(state.counts) == bytes(counts)
    return counts.judged, counts.dropped


def test_counts_go_on_with_another_law(program: Any) -> None:
    assert counted(program) == (0, 0)
    install(program)
    judge(program, 10, 4)
    install(program)  # a renewal
    assert counted(program) == (10, 4)
    install(program, CodelLaw())
    assert counted(program) == (10, 4)
    judge(program, 5, 5)  # more than at the last reading: a reading alone cannot tell
    judge(program, 10, 0)
    assert counted(program) == (25, 9)
    install(program, AfqLaw(), law_id=2)
    assert counted(program) == (25, 9) and program._states[2].state.counts.judged == 0


def test_counts_go_on_after_a_time_without_a_law(program: Any) -> None:
    install(program)
    judge(program, 10, 4)
    program.remove(PORT)
    assert counted(program) == (10, 4) and program.state(PORT) is None
    install(program)
    judge(program, 1, 1)
    assert counted(program) == (11, 5)
    assert counted(program, OTHER) == (0, 0)


def test_a_law_that_cannot_be_changed_leaves_its_counts(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(program)
    judge(program, 10, 4)
    program._free_tables.clear()
    with pytest.raises(BpfError, match="no room"):
        install(program, AfqLaw())
    assert program.state(PORT) is None and counted(program) == (10, 4)


def test_the_transmit_queues_of_a_port_are_added_up_and_may_go(program: Any) -> None:
    program.ids[PORT] = (100, 101)
    program._window.slots |= {100: 4, 101: 5}
    install(program)
    judge(program, 10, 4, slot=4)
    judge(program, 3, 1, slot=5)
    assert counted(program) == (13, 5)
    # The port has one queue again: the slots of the others are free before the laws end.
    del program.ids[PORT], program._window.slots[100], program._window.slots[101]
    program.remove(PORT)
    install(program)
    judge(program, 1, 0)
    assert counted(program) == (14, 5)


def test_a_port_that_comes_again_begins_at_0(program: Any) -> None:
    install(program)
    judge(program, 10, 4)
    program.remove_port(PORT)
    assert counted(program) == (0, 0)
