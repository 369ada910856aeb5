"""Time from a step of a port's queue to the first lowered ACK (``python -m bench step``).

Bulk TCP flows fill the windows that FairQ grants them, so that its law counts them as users of its pool, and
they keep the queue of the receiver's port at the target. Then frames that are not TCP are put directly into
that queue: it becomes longer in one step, at a known time, and no TCP packet is lost. The ACKs are captured,
with the kernel's times, as they leave the switch towards the sender, behind the program that lowers them.
"""

from __future__ import annotations

import contextlib
import math
import random
import socket
import statistics
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.figures import median_interval
from bench.frame_burst import FrameBurst
from bench.lowered_ack import Ack, delay_to_lowered, read_ack
from fairq_ryu.experiments.measure.capture import OUTGOING, receive_tcp_only
from tests.support.lab import Lab, output, until

ROUNDS, STEPS = 2, 20
BUFFER, FLOWS = 125_000, 4
# In Mbit/s. They are measured in turn, so that other load of the machine affects all. At a higher rate ACKs
# are closer together, so the law has one to lower sooner.
RATES = 50, 100
# The step: 70,000 bytes. The queue at its target is 31,250, and the buffer holds both.
FRAME = b"\xff" * 6 + bytes.fromhex("020000000009 88b5") + bytes(1386)
STEP_FRAMES = 50
# Afterwards frames of about half of the port's rate: the queue stays above the target.
HOLD_MS = 60
PAUSE = 1.0  # s, in which the queue returns to its target
BEFORE, WITHIN = 50_000_000, 250_000_000  # ns
# A moment without a step, for comparison: it shows how often windows become lower by themselves.
QUIET, QUIET_WITHIN = 200_000_000, 100_000_000
_ETH_ALL = 3
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS, _SOL_PACKET, _PACKET_STATISTICS = 33, 35, 263, 6


class AckTap:
    """Captures the ACKs that leave by an interface. Times are the kernel's, CLOCK_REALTIME ns."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        receive_tcp_only(self._socket, OUTGOING)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 16 << 20)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.setblocking(False)
        self._socket.bind((interface, _ETH_ALL))  # with another protocol it gets no frames that are sent

    def take(self) -> list[Ack]:
        """The ACKs since the last call. ``SystemExit`` if some were missed."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, ancillary, _, _ = self._socket.recvmsg(128, 64)
                at = next(data for _, kind, data in ancillary if kind == _SO_TIMESTAMPNS)
                seconds, ns = struct.unpack("ll", at)
                ack = read_ack(seconds * 1_000_000_000 + ns, frame)
                if ack is not None:
                    found.append(ack)
        counts = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        if missed := struct.unpack("II", counts)[1]:
            raise SystemExit(f"bench: the capture missed {missed} packets")
        return found

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def main() -> None:
    """Print the figures."""
    delays: dict[int, list[float]] = {rate: [] for rate in RATES}
    by_chance: dict[int, int] = dict.fromkeys(RATES, 0)
    for _ in range(ROUNDS):
        for rate in RATES:
            steps, quiet = _round(rate)
            delays[rate] += steps
            by_chance[rate] += sum(map(math.isfinite, quiet))
    for rate, found in delays.items():
        low, high = median_interval(found)
        print(
            f"queue step to first lowered ACK, {rate:4} Mbit/s: median {statistics.median(found):5.2f} ms "
            f"({low:.2f} to {high:.2f} with 95 %), {sum(map(math.isfinite, found))} of {len(found)} steps; "
            f"without a step {by_chance[rate]} of {len(found)}"
        )


def _round(rate: int) -> tuple[list[float], list[float]]:
    """On a network of its own: the delays after each step, and after moments without one, ms."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        lab = Lab(Path(directory), rate=rate, buffer=BUFFER, forward=False)
        stack.callback(lab.close)
        manager = lab.controller("fairq")
        lab.agent(f"tcp:127.0.0.1:{manager.port}")
        manager.wait_for("agent of bridge 0000000000000001: connected")
        until(lambda: "priority=100,arp" in output("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", "s1"))
        for number in range(FLOWS):
            lab.bulk("h1", 5001 + number)
        time.sleep(3)
        _check(lab)
        tap, frames = AckTap("s1-eth1"), FrameBurst(f"s1-eth{lab.port}", [FRAME] * STEP_FRAMES)
        stack.callback(tap.close)
        stack.callback(frames.close)
        acks, moments = [], []
        for _ in range(STEPS):
            # Not in step with the controller's intervals.
            time.sleep(PAUSE + random.uniform(0, 0.02))
            moments.append(_make_step(frames, rate))
            acks += tap.take()
        time.sleep(WITHIN / 1e9)
        acks = sorted(acks + tap.take())
        _check(lab)
    return (
        [delay_to_lowered(at, acks, BEFORE, WITHIN) / 1e6 for at in moments],
        [delay_to_lowered(at - QUIET, acks, BEFORE, QUIET_WITHIN) / 1e6 for at in moments],
    )


def _check(lab: Any) -> None:
    """``SystemExit`` unless the law runs, and all flows count as users of its pool."""

    def counts() -> bool:
        port = lab.port_status()
        rule = port["rule"] or {}
        return bool(rule.get("kind") == "law" and rule["law"]["flows"] == FLOWS)

    if not until(counts):
        raise SystemExit(f"bench: the law does not count {FLOWS} flows: {lab.port_status()}")


def _make_step(frames: FrameBurst, rate: int) -> int:
    """Make the queue longer, and keep it so for a while; returns when it began, CLOCK_REALTIME ns."""
    hold = round(rate * 125 / 2 / len(FRAME))  # each ms
    began = time.time_ns()
    frames.send(STEP_FRAMES)
    for _ in range(HOLD_MS):
        time.sleep(0.001)
        frames.send(hold)
    return began
