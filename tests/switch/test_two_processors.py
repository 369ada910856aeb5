"""Two processors process segments of one direction at once, as with a NIC of several receive queues."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable

from tests.switch.packets import Segment
from tests.switch.rig import Connection, Switch

STEP = 1448
SEGMENTS = 20_000
BATCH = 20  # each process waits for the other after this number of its segments


def leave_at_once(switch: Switch, port: int, segment: Callable[[int], Segment]) -> None:
    """Segments ``segment(1)``, ``segment(2)``, ... leave by a port, alternately from two processes. These
    wait for each other after each batch.
    """
    frames = [segment(number).frame() for number in range(1, SEGMENTS + 1)]
    ifindex = switch.ports[port].ifindex
    rounds = mmap.mmap(-1, 2)  # each process writes one byte: its round, modulo 256

    def run(own: int) -> None:
        mine = frames[own::2]
        for start in range(0, len(mine), BATCH):
            rounds[own] = (rounds[own] + 1) % 256
            while (rounds[own] - rounds[1 - own]) % 256 == 1:
                time.sleep(0)
            for frame in mine[start : start + BATCH]:
                switch.program.run(frame, ifindex)

    child = os.fork()
    if not child:
        failed = 1
        try:
            run(1)
            failed = 0
        finally:
            os._exit(failed)
    run(0)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_data_and_acknowledgements(switch: Switch) -> None:
    flow = Connection(switch, client_scale=14, server_scale=14).open()
    flow.data(0)
    flow.ack(65_535)
    first = flow.client_isn + 1

    def data(number: int) -> Segment:
        return flow.from_client(seq=first + (number - 1) * STEP, payload=b"d" * STEP)

    def ack(number: int) -> Segment:
        return flow.from_server(ack=first + number * STEP)

    for port, segment in ((2, data), (1, ack)):
        leave_at_once(switch, port, segment)
    found = switch.flow(flow.data_key)
    assert found is not None
    client, server = found
    assert (client.seq_next - first, client.bytes, client.packets) == (
        SEGMENTS * STEP,
        SEGMENTS * STEP,
        SEGMENTS,
    )
    assert (server.ack - first, server.acked) == (SEGMENTS * STEP, SEGMENTS * STEP)
