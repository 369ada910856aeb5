"""What a tick of a law costs (``python -m bench ticks``), and so what busy ports cost at T = 0.2 ms.

A law runs in the queue program, when a packet enters or leaves the queue of its port at least T after its
last tick. So a tick costs what the queue program takes when it ticks at each packet, less what it takes when
it never does. Both are measured in turn with the same packets; the kernel counts the time. The cost depends
neither on the packets nor on the number of flows: busy ports cost their number of ticks.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from ctypes import c_char, c_int32, c_uint32, c_uint64
from typing import Any

from bench.frame_burst import FrameBurst
from bench.program import PORTS, bridge
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.libbpf import BpfError, load_library
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.law_spec import Gain, LawKind, LawSpec

LAWS = {
    "fairq, gain ours": LawSpec(LawKind.FAIRQ),
    "fairq, gain paper": LawSpec(LawKind.FAIRQ, gain=Gain.PAPER),
    "fairswitch": LawSpec(LawKind.FAIRSWITCH),
    "iqm": LawSpec(LawKind.IQM),
    "sed-base": LawSpec(LawKind.SED_BASE),
    "las": LawSpec(LawKind.LAS),
}
BUSY_PORTS, TICKS = 16, 5000
"""The ports whose cost is printed, and the ticks of each in a second with T = 0.2 ms."""
ROUNDS, BURSTS, BURST = 9, 60, 200
FRAME = b"\xff" * 6 + bytes.fromhex("020000000009 88b5") + bytes(46)
RATE, BUFFER = 125_000_000, 125_000
# With the one interval each packet ticks, and late, as more than two have passed; with the other none does.
EACH, NONE = 1, 4_000_000_000  # ns
_RUN_TIME = 0


class _Info(ctypes.Structure):
    """``struct bpf_prog_info`` up to the counts of runs."""

    _fields_ = [
        ("type", c_uint32),
        ("id", c_uint32),
        ("tag", c_char * 8),
        ("code_sizes", c_uint32 * 2),
        ("codes", c_uint64 * 2),
        ("load_time", c_uint64),
        ("created_by_uid", c_uint32),
        ("nr_map_ids", c_uint32),
        ("map_ids", c_uint64),
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
        stack.callback(os.close, self._checked(self._lib.bpf_enable_stats(_RUN_TIME), "time programs"))
        last: dict[bytes, int] = {}
        for program in self._programs():
            stack.callback(os.close, program)
            name = self._info(program).name
            if name in (b"fq_enqueue", b"fq_dequeue"):
                last[name] = program
        if len(last) != 2:
            raise BpfError(f"found {len(last)} of the two queue programs")
        self._fds = list(last.values())

    @staticmethod
    def _checked(fd: int, what: str) -> int:
        if fd < 0:
            raise BpfError(f"cannot {what}: {os.strerror(-fd)}")
        return fd

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
        self._checked(result, "read a program's counts")
        return info

    def read(self) -> tuple[int, int]:
        """Nanoseconds and number of the runs so far."""
        found = [self._info(fd) for fd in self._fds]
        return sum(each.run_time_ns for each in found), sum(each.run_cnt for each in found)


def main() -> None:
    """Print the figures."""
    with contextlib.ExitStack() as stack:
        datapath, _ = stack.enter_context(bridge())
        for name in PORTS:
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        shaper = ["tc", "qdisc", "add", "dev", PORTS[0], "root", "handle", "1:", "tbf"]
        subprocess.run([*shaper, "rate", f"{RATE * 8}bit", "burst", "5000", "limit", f"{BUFFER}"], check=True)
        times = RunTimes(stack)
        frames = FrameBurst(PORTS[0], [FRAME] * BURST)
        stack.callback(frames.close)
        limits = QueueLimits("bench", BUFFER, RATE)
        for name, spec in LAWS.items():
            costs = sorted(_tick(datapath, times, frames, parameters(spec, limits)) for _ in range(ROUNDS))
            cost = statistics.median(costs)
            share = BUSY_PORTS * TICKS * cost / 1e9
            print(
                f"a tick of {name:20} {cost:5.0f} ns ({costs[0]:.0f} to {costs[-1]:.0f}); "
                f"{BUSY_PORTS} busy ports at T = {1e3 / TICKS:g} ms {share:5.1%} of a core"
            )


def _tick(datapath: BridgePrograms, times: RunTimes, frames: FrameBurst, law: Any) -> float:
    """The time of a tick, ns: that of an event which ticks, less that of one which does not."""
    found = []
    for interval in (EACH, NONE):
        law.interval_ns = interval
        datapath.install_law(1, 1, law, time.monotonic_ns() + 3600 * 10**9)
        frames.send(1)
        time.sleep(0.001)
        before, late = times.read(), _late(datapath)
        for _ in range(BURSTS):
            frames.send(BURST)
            time.sleep(0.001)
        ticked = _late(datapath) - late
        taken, runs = (now - then for now, then in zip(times.read(), before, strict=True))
        if ticked != (runs if interval == EACH else 0):
            raise SystemExit(f"bench: {ticked} ticks at {runs} packets with an interval of {interval} ns")
        found.append(taken / runs)
    datapath.remove_law(1)
    return found[0] - found[1]


def _late(datapath: BridgePrograms) -> int:
    """The late ticks of the law so far."""
    state = datapath.law_state(1)
    assert state is not None
    return int(state.late)
