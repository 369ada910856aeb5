"""What a tick of a law costs (``python -m bench ticks``), and so what busy ports cost at T = 0.2 ms.

A law runs in the queue program, when a packet enters or leaves the queue of its port at least T after its
last tick. So a tick costs what the queue program takes when it ticks at each packet, less what it takes when
it never does. Both are measured in turn with the same packets, while flows share the port and the queue is
now above the target and now below it; the kernel counts the time. The law does not look at packets, and only
counts flows, so n busy ports cost n times as much as one.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from ctypes import c_char, c_int32, c_uint32, c_uint64
from typing import Any

from bench.frame_burst import FrameBurst
from bench.program import PORTS, bridge, connect
from bench.program_run import LoadedProgram
from fairq_ryu.agent.bpf_info import ProgInfo
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.libbpf import BpfError, error_code, failure, load_library
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.laws.fairswitch import FairSwitchLaw
from fairq_ryu.laws.las import LasLaw
from fairq_ryu.model import WindowKind, WindowRule

LAWS = (FairQLaw, FairSwitchLaw, LasLaw)
BUSY_PORTS, TICKS = 16, 5000
"""The ports whose cost is printed, and the ticks of each in a second with T = 0.2 ms."""
ROUNDS, BURSTS, BURST = 9, 150, 80
FRAME = b"\xff" * 6 + bytes.fromhex("020000000009 88b5") + bytes(1000)
RATE, BUFFER = 125_000_000, 125_000
# With EACH the law ticks at each packet, and each tick counts as late; with NONE it never ticks.
EACH, NONE = 1, 4_000_000_000  # ns
# In a round that other traffic of the machine has disturbed, the programs run for its packets, too.
_ATTEMPTS = 10
_RUN_TIME = 0


class _Info(ProgInfo):
    """``struct bpf_prog_info`` up to the counts of runs."""

    _fields_ = [  # noqa: RUF012 (ctypes reads it when the class is made)
        ("name", c_char * 16),
        ("ifindex", c_uint32),
        ("flags", c_uint32),
        ("netns", c_uint64 * 2),
        ("nr_jited", c_uint32 * 2),
        ("jited", c_uint64 * 2),
        ("btf_id", c_uint32),
        ("func_info_rec_size", c_uint32),
        ("func_info", c_uint64),
        ("nr_func_and_line", c_uint32 * 2),
        ("line_info", c_uint64 * 2),
        ("nr_jited_line_info", c_uint32),
        ("rec_sizes", c_uint32 * 2),
        ("nr_prog_tags", c_uint32),
        ("prog_tags", c_uint64),
        ("run_time_ns", c_uint64),
        ("run_cnt", c_uint64),
    ]


class RunTimes:
    """The runs of the queue program that was loaded last, while the kernel counts their time."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        """What it opens is closed with ``stack``. Raises :class:`BpfError`."""
        self._lib = load_library()
        stack.callback(os.close, _checked(self._lib.bpf_enable_stats(_RUN_TIME), "time programs"))
        last: dict[bytes, int] = {}
        for program in self._programs():
            stack.callback(os.close, program)
            name = self._info(program).name
            if name in (b"fq_enqueue", b"fq_dequeue"):
                last[name] = program
        if len(last) != 2:
            raise BpfError(f"found {len(last)} of the two queue programs")
        self._fds = list(last.values())

    def _programs(self) -> Iterator[int]:
        """File descriptors of all loaded programs, in the order in which they were loaded."""
        number = c_uint32(0)
        while self._lib.bpf_prog_get_next_id(number, ctypes.byref(number)) == 0:
            fd = self._lib.bpf_prog_get_fd_by_id(number)
            if fd >= 0:  # otherwise it has just been unloaded
                yield fd

    def _info(self, fd: int) -> _Info:
        info, size = _Info(), c_uint32(ctypes.sizeof(_Info))
        result = self._lib.bpf_obj_get_info_by_fd(c_int32(fd), ctypes.byref(info), ctypes.byref(size))
        _checked(result, "read a program's counts")
        return info

    def read(self) -> tuple[int, int]:
        """Nanoseconds and number of the runs so far."""
        found = [self._info(fd) for fd in self._fds]
        return sum(each.run_time_ns for each in found), sum(each.run_cnt for each in found)


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise failure(f"cannot {what}", error_code(result))
    return result


class Port:
    """A busy port with a law, and what its queue program takes."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        """What it makes is removed with ``stack``."""
        self._datapath, self._indexes = stack.enter_context(bridge())
        for name in PORTS:
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        shaper = ["tc", "qdisc", "add", "dev", PORTS[0], "root", "handle", "1:", "tbf"]
        subprocess.run([*shaper, "rate", f"{RATE * 8}bit", "burst", "5000", "limit", f"{BUFFER}"], check=True)
        self._window = stack.enter_context(LoadedProgram.attached(self._indexes[0]))
        self._times = RunTimes(stack)
        self._frames = FrameBurst(PORTS[0], [FRAME] * BURST)
        stack.callback(self._frames.close)
        self._client_ports = itertools.cycle(range(20_000, 60_000))

    def tick_ns(self, kind: type[LawSpec]) -> float:
        """The time of a tick of a law: that of an event which ticks, less that of one which does not."""
        law = parameters(kind(), QueueLimits("bench", BUFFER, RATE))
        lease = time.monotonic_ns() + 3600 * 10**9
        costs = []
        for interval in (EACH, NONE):
            law.interval_ns = interval
            self._datapath.install_law(1, 1, law, lease)
            self._datapath.install_rule(1, WindowRule(WindowKind.LAW, 1), lease, 0)
            costs.append(self._event_ns(interval == EACH))
        self._datapath.remove_law(1)
        return costs[0] - costs[1]

    def _event_ns(self, ticks: bool) -> float:
        for _ in range(_ATTEMPTS):
            self._burst()  # the first tick of a law
            before, state = self._times.read(), self._state()
            for _ in range(BURSTS):
                self._burst()
            (taken, runs), after = self._times.read(), self._state()
            taken, runs = taken - before[0], runs - before[1]
            if not ticks:
                if after.last_ns != state.last_ns:
                    raise SystemExit("bench: the law has ticked within its interval")
                return taken / runs
            if after.late - state.late == runs:
                if not (after.flows and after.updates > state.updates):
                    raise SystemExit("bench: the law had no flows, or its pool did not move")
                return taken / runs
        raise SystemExit("bench: other traffic disturbed each round. Remedy: stop what sends on this machine")

    def _burst(self) -> None:
        """A new flow, and packets that fill the queue above the target; until it is empty."""
        connect(self._window, self._indexes, next(self._client_ports))
        self._frames.send(BURST)
        time.sleep(0.002)

    def _state(self) -> Any:
        state = self._datapath.law_state(1)
        assert state is not None
        return state


def main() -> None:
    """Print the figures."""
    with contextlib.ExitStack() as stack:
        port = Port(stack)
        for kind in LAWS:
            costs = sorted(port.tick_ns(kind) for _ in range(ROUNDS))
            cost = statistics.median(costs)
            share = BUSY_PORTS * TICKS * cost / 1e9
            print(
                f"a tick of {kind.name:10} {cost:5.0f} ns ({costs[0]:.0f} to {costs[-1]:.0f}); "
                f"{BUSY_PORTS} busy ports at T = {1e3 / TICKS:g} ms {share:5.1%} of a core"
            )
