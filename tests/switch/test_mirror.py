"""A flow that leaves by two ports, because one of them is a mirror; and one that takes another way."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairq_ryu.agent.programs.program import ProgramLimits
from tests.switch.packets import Segment
from tests.switch.rig import Connection, Switch, loaded, namespace

RULE = 40_000


def ports(switch: Switch, flow: Connection) -> tuple[int, int]:
    """By which ports client and server leave, as the switch knows it."""
    found = switch.flow(flow.data_key)
    assert found is not None
    by_index = {port.ifindex: number for number, port in switch.ports.items()} | {0: 0}
    return by_index[found[0].out.ifindex], by_index[found[1].out.ifindex]


class Mirrored:
    """A switch that sends a copy of everything by port 3, before or after the segment itself."""

    def __init__(self, switch: Switch, first: bool) -> None:
        self.switch, self.first = switch, first

    def leave(self, port: int, what: Segment | bytes) -> bytes:
        if self.first:
            self.switch.leave(3, what)
        after = self.switch.leave(port, what)
        if not self.first:
            self.switch.leave(3, what)
        return after


@pytest.mark.parametrize("first", [False, True])
def test_a_mirror_moves_no_flow(switch: Switch, first: bool) -> None:
    mirror: Any = Mirrored(switch, first)
    flow = Connection(mirror).open()
    flow.data(0)
    switch.pool(2, RULE)
    for turn in range(5):
        flow.data(1000, seq=flow.client_isn + 1 + 1000 * turn)
        assert ports(switch, flow) == (2, 1), turn
        assert [switch.active(n) for n in (1, 2, 3)] == [1, 1, 0]
        assert flow.granted(ack=flow.client_isn + 1001 + 1000 * turn) == RULE >> 7
    found = switch.flow(flow.data_key)
    assert found is not None
    assert (found[0].bytes, found[0].packets) == (5000, 5), "a copy counts for nothing"
    assert switch.state(1).handshakes + switch.state(3).handshakes == 1


def test_copies_come_in_batches(switch: Switch) -> None:
    """Open vSwitch sends 32 packets by one port, then the same by the other."""
    flow = Connection(switch).open()
    flow.data(0)
    for batch in range(4):
        segments = [
            flow.from_client(payload=b"d" * 100, seq=flow.client_isn + 1 + 100 * (32 * batch + n))
            for n in range(32)
        ]
        for port in (3, 2):
            for n, segment in enumerate(segments):
                switch.leave(port, segment)
                if port == 2 and n == 16:  # the first are acknowledged meanwhile
                    flow.ack(ack=flow.client_isn + 1 + 100 * (32 * batch + 8))
        assert ports(switch, flow) == (2, 1)
        assert (switch.active(2), switch.active(3)) == (1, 0)


@pytest.mark.parametrize("direction", ["data", "acks"])
def test_a_mirror_of_one_direction(switch: Switch, direction: str) -> None:
    flow = Connection(switch).open()
    flow.data(0)
    for turn in range(5):
        data = flow.from_client(payload=b"d" * 100, seq=flow.client_isn + 1 + 100 * turn)
        ack = flow.from_server(ack=flow.client_isn + 101 + 100 * turn)
        for port, segment in ((2, data), (1, ack)):
            switch.leave(port, segment)
            if (direction == "data") == (port == 2):
                switch.leave(3, segment)
        assert ports(switch, flow) == (2, 1)


def test_a_flow_moves_when_what_left_elsewhere_is_acknowledged(switch: Switch) -> None:
    flow = Connection(switch).open()
    flow.data(1000)
    switch.rule(3, RULE)
    flow.server_port = 3
    flow.data(1000)  # a retransmission, or a copy: port 2 has seen it
    assert flow.granted(ack=flow.client_isn + 1001) == 65535
    flow.data(1000, seq=flow.client_isn + 1001)
    assert ports(switch, flow) == (2, 1)
    assert flow.granted(ack=flow.client_isn + 2001) == RULE >> 7
    assert ports(switch, flow) == (3, 1)
    assert (switch.active(2), switch.active(3)) == (0, 1)
    flow.data(1000, seq=flow.client_isn + 2001)
    found = switch.flow(flow.data_key)
    assert found is not None and found[0].bytes == 3000


def test_a_flow_moves_at_once_when_its_port_has_gone(switch: Switch) -> None:
    flow = Connection(switch).open()
    switch.rule(3, RULE)
    gone = switch.ports[2]
    switch.datapath.remove_port(2)
    try:
        flow.server_port = 3
        flow.data(1000)
        assert ports(switch, flow) == (3, 1)
        assert flow.granted(ack=flow.client_isn + 1001) == RULE >> 7
    finally:
        switch.datapath.add_port(gone)


def test_a_direction_of_bare_acks_moves_after_a_while() -> None:
    with (
        namespace(),
        loaded(ProgramLimits(flows=1024, rules=16, ports=4, active_timeout=4)) as switch,
    ):
        flow = Connection(switch).open()
        flow.data(0)
        segment = flow.from_server()
        switch.leave(3, segment)
        assert ports(switch, flow) == (2, 1)
        time.sleep(1.01)
        switch.leave(1, segment)  # it still leaves here
        switch.leave(3, segment)
        assert ports(switch, flow) == (2, 1)
        time.sleep(1.01)
        switch.leave(3, segment)
        assert ports(switch, flow) == (2, 3)


def test_a_flow_that_comes_back_keeps_its_scale(switch: Switch) -> None:
    """It has taken another switch for a while, and its numbers have gone on by more than a window."""
    flow = Connection(switch).open()
    flow.data(1000)
    flow.ack(ack=flow.client_isn + 1001)
    switch.rule(2, RULE)
    for turn in range(1, 4):
        far = flow.client_isn + turn * 500_000_000
        flow.data(1000, seq=far % 2**32)
        flow.ack(ack=(far + 1000) % 2**32)
        assert flow.granted(ack=(far + 1000) % 2**32) == RULE >> 7
        found = switch.flow(flow.data_key)
        assert found is not None and found[0].seq_next == (far + 1000) % 2**32
        assert switch.active(2) == 1


def test_a_connection_with_both_numbers_elsewhere_is_another(switch: Switch) -> None:
    """Its handshake was not seen here: the scale of the one before must not be taken for its own."""
    flow = Connection(switch).open()
    flow.data(1000)
    other = Connection(switch, sport=flow.sport, client_isn=2**31, server_isn=3 * 2**30)
    switch.rule(2, RULE)
    other.data(1000)
    other.ack(ack=other.client_isn + 1001)
    assert other.granted(ack=other.client_isn + 1001) == 65535
