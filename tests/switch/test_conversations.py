"""Random conversations with loss and reordering on either side of the switch: nothing is taken for forged."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from fairq_ryu.agent import layout
from tests.switch import packets
from tests.switch.rig import Connection, Switch

C = layout.CONSTANTS
WRAP = 2**32
RULE = 20_000
SCALE = 4


@dataclass
class End:
    """One side, with numbers counted from its own first byte, so that they do not wrap."""

    size: int
    una: int = 0  # acknowledged by the other side
    sent: int = 0
    got: int = 0  # received in order
    early: set[tuple[int, int]] = field(default_factory=set)
    edge: int = 65_535  # right edge of the other side's window
    buffer: int = 65_535

    def take(self, start: int, length: int) -> None:
        """Receive bytes (a FIN is one)."""
        self.early.add((start, length))
        for begin, count in sorted(self.early):
            if begin <= self.got < begin + count:
                self.got = begin + count
        self.early = {each for each in self.early if each[0] + each[1] > self.got}


@pytest.mark.parametrize("seed", range(20))
def test_all_that_two_hosts_send_belongs_to_them(switch: Switch, seed: int) -> None:
    dice = random.Random(seed)
    flow = Connection(
        switch,
        sport=32_000,
        client_scale=SCALE,
        server_scale=SCALE,
        client_isn=WRAP - dice.randrange(100_000),
        server_isn=2**31 - dice.randrange(100_000),
    ).open()
    flow.data(0)
    for port in (1, 2):
        switch.rule(port, RULE, slot=port)
    ends = {side: End(size=dice.randrange(1, 400_000)) for side in ("client", "server")}
    isn = {"client": flow.client_isn, "server": flow.server_isn}
    other = {"client": "server", "server": "client"}
    loss, mirror = dice.choice([0, 0.02, 0.2]), dice.choice(["", "before", "after"])
    late: list[tuple[int, str, dict[str, object]]] = []  # on the way to the switch: when, by whom, what
    clock = 0

    def send(side: str, start: int, length: int, fin: bool) -> None:
        end = ends[side]
        window = max(0, end.buffer - dice.choice([0, 0, 30_000])) >> 2
        what = {"start": start, "length": length, "fin": fin, "ack": end.got, "window": window}
        if dice.random() >= loss:
            late.append((clock + dice.choice([0, 0, 0, 5]), side, what))

    def passes(side: str, what: dict[str, object]) -> None:
        start, length, fin, ack, window = (what[name] for name in ("start", "length", "fin", "ack", "window"))
        make = flow.from_client if side == "client" else flow.from_server
        segment = make(
            seq=(isn[side] + 1 + start) % WRAP,  # type: ignore[operator]
            ack=(isn[other[side]] + 1 + ack) % WRAP,  # type: ignore[operator]
            flags="FA" if fin else "A",
            payload=bytes(length),  # type: ignore[call-overload]
            window=window,
        )
        if mirror == "before":
            switch.leave(3, segment)
        after = switch.leave(2 if side == "client" else 1, segment)
        if mirror == "after":
            switch.leave(3, segment)
        assert packets.window(after) == min(window, max(RULE >> SCALE, -(-1460 >> SCALE)))  # type: ignore[call-overload]
        if dice.random() >= loss:
            receiver = ends[other[side]]
            if length or fin:
                receiver.take(start, length + fin)  # type: ignore[arg-type, operator]
            receiver.una = max(receiver.una, ack)  # type: ignore[type-var]
            granted = packets.window(after) << SCALE
            receiver.edge = max(receiver.edge, ack + granted)  # type: ignore[operator]

    def finished() -> bool:
        return all(
            end.una == end.size + 1 and end.got == ends[other[side]].size + 1 for side, end in ends.items()
        )

    while not finished():
        clock += 1
        assert clock < 20_000
        for side, end in ends.items():
            if end.sent < end.size:
                if end.sent < end.edge:
                    length = min(dice.choice([1460, 1460, 700]), end.size - end.sent, end.edge - end.sent)
                    send(side, end.sent, length, fin=False)
                    end.sent += length
            elif end.sent == end.size:
                send(side, end.size, 0, fin=True)
                end.sent += 1
            if end.una < end.sent and clock % 40 == 0:
                length = min(1460, end.size - end.una)
                send(side, end.una, length, fin=end.una + length == end.size and end.sent > end.size)
            if dice.random() < 0.5:
                send(side, end.sent, 0, fin=False)
        for segment in [each for each in late if each[0] <= clock]:
            late.remove(segment)
            passes(*segment[1:])

    found = switch.flow(flow.data_key)
    assert found is not None
    assert [each.out.ifindex for each in found] == [switch.ports[2].ifindex, switch.ports[1].ifindex]
    for side, direction in zip(("client", "server"), found, strict=True):
        assert direction.flags & C["FQ_FIN"], side
        assert direction.seq_next == (isn[side] + ends[side].size + 2) % WRAP
        assert direction.acked <= ends[other[side]].size
    assert (switch.active(1), switch.active(2)) == (0, 0)
    assert list(switch.datapath.window.rivals.keys()) == []
