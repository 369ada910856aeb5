"""Slots of ports: each is one port's, and comes back."""

from __future__ import annotations

import pytest

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs.port_slots import PortSlots


def test_a_slot_is_free_again_when_its_port_has_gone() -> None:
    slots = PortSlots(2)
    assert [slots.take(7), slots.take(8)] == [0, 1]
    with pytest.raises(BpfError, match="2 ports and transmit queues are watched already"):
        slots.take(9)
    slots.release(7)
    assert 7 not in slots and slots.take(9) == 0 and slots[8] == 1


def test_a_port_with_a_slot_gets_no_other() -> None:
    slots = PortSlots(2)
    slots.take(7)
    with pytest.raises(BpfError, match="port 7 has a slot already"):
        slots.take(7)
    assert (slots[7], slots.take(8)) == (0, 1)
