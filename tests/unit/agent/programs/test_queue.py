"""The queue program's entries for ports, without a kernel."""

from __future__ import annotations

from typing import Any

import pytest

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs.queue import QueueProgram


class Table(dict[int, Any]):
    """A map of ports; ``full`` makes it refuse entries."""

    full = False

    def set(self, key: Any, value: Any) -> None:
        if self.full:
            raise BpfError("no room")
        self[key.value] = value

    def delete(self, key: Any) -> None:
        self.pop(key.value, None)


@pytest.fixture
def program() -> QueueProgram:
    made = QueueProgram(None, 4)
    made.queues, made._histograms = Table(), Table()
    return made


def test_a_port_has_an_entry_in_both_maps(program):
    program.add_port(7)
    assert list(program.queues) == list(program._histograms) == [7]
    program.remove_port(7)
    assert not program.queues and not program._histograms


@pytest.mark.parametrize("name", ["queues", "_histograms"])
def test_a_port_whose_entry_fails_leaves_nothing_behind(program, name):
    program.add_port(7)
    getattr(program, name).full = True
    with pytest.raises(BpfError):
        program.add_port(8)
    assert list(program.queues) == list(program._histograms) == [7]
    getattr(program, name).full = False
    program.add_port(8)
    assert list(program.queues) == list(program._histograms) == [7, 8]
