"""The twin in Python of the arithmetic of hosts' congestion controls, and the C compiled for the host."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

from fairq_ryu.agent.layout import read_layout
from fairq_ryu.experiments.hostcc import layout, tables
from fairq_ryu.experiments.hostcc.layout import BPF_DIR

MAX_ALPHA = 1 << 20
ONE = 128
"""d = 1"""
ARGUMENTS = {
    "alpha": (ctypes.c_uint32,) * 3,
    "window": (ctypes.c_uint32,) * 2,
    "window_after_loss": (ctypes.c_uint32,),
    "imminence": (ctypes.c_uint64,) * 2 + (ctypes.c_uint32,) * 3,
    "power": (ctypes.c_uint32,) * 2,
    "increase": (ctypes.c_uint32,),
    "hstcp_after_loss": (ctypes.c_uint32,),
    "threshold_is_impossible": (ctypes.c_uint32,) * 3,
    "cubic_time": (ctypes.c_uint32,),
}
_GROUP = ctypes.POINTER(layout.fq_cc_group)
ctrl_flow: Any = read_layout((BPF_DIR / "ctrl.h").read_text(encoding="utf-8"))[1]["ctrl_flow"]
_FLOW = ctypes.POINTER(ctrl_flow)
_U32, _U64 = ctypes.c_uint32, ctypes.c_uint64
OF_GROUPS = {
    "register": (_GROUP, _FLOW, *(_U32,) * 5, _U64),
    "leave": (_GROUP, _FLOW),
    "seen": (_GROUP, _FLOW, *(_U32,) * 3, _U64),
    "sends": (_GROUP, _FLOW, *(_U32,) * 2, _U64),
    "want": (_U32,) * 3,
    "fills": (_GROUP, _FLOW, _U32),
    "acked": (_GROUP, _FLOW, *(_U32,) * 3),
    "grow": (_GROUP, *(_U32,) * 3, _U64),
    "window": (_GROUP, _FLOW, *(_U32,) * 2),
    "lost": (_GROUP, _FLOW, *(_U32,) * 4),
    "undo": (_GROUP, _FLOW, _U32),
}
"""Functions of coupled groups, with ``ctrl_`` before the name."""
_LOG2, _EXP2, _ROWS = tables.logarithms(), tables.powers(), list(tables.hstcp_rows())


def build(into: Path) -> ctypes.CDLL:
    """``bpf/host.c`` as a library. Undefined behaviour ends the process: clang's checks are compiled in."""
    found = into / "controls.so"
    checks = ["-fsanitize=undefined,unsigned-shift-base", "-fsanitize-trap=all"]
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", *checks, "-shared", "-fPIC"]
    subprocess.run(["clang", *flags, "-o", str(found), str(BPF_DIR / "host.c")], check=True)
    library = ctypes.CDLL(str(found))
    of_groups = {f"ctrl_{name}": arguments for name, arguments in OF_GROUPS.items()}
    for name, arguments in {**ARGUMENTS, **of_groups}.items():
        function = getattr(library, f"cc_host_{name}")
        function.argtypes, function.restype = arguments, ctypes.c_uint32
    return library


def alpha(before: int, delivered: int, marked: int) -> int:
    return min(MAX_ALPHA, before - before // 16 + (marked << 16) // delivered) if delivered else before


def window(cwnd: int, power: int) -> int:
    return max(2, cwnd - (cwnd * power >> 16))


def window_after_loss(cwnd: int) -> int:
    return max(2, cwnd // 2)


def threshold_is_impossible(state: int, threshold: int, window_before: int) -> bool:
    return state >= 2 and threshold > max(2, window_before)


def imminence(left_bytes: int, left_ns: int, rtt_us: int, cwnd: int, mss: int) -> int:
    if not (left_bytes and left_ns and rtt_us and cwnd and mss):
        return ONE
    segments = min(-(-left_bytes // mss), 1 << 30)
    need = min(rtt_us, 1 << 24) * segments * 4 * ONE
    have = min(left_ns // 1000 + 1, 1 << 32) * min(cwnd, 1 << 20) * 3
    return min(256, max(64, need // have))


def power(alpha: int, imminence: int) -> int:
    if alpha >= MAX_ALPHA or imminence == ONE:
        return min(alpha, MAX_ALPHA) >> 5
    if not alpha:
        return 0
    places = 21 - alpha.bit_length()
    mantissa = (alpha << places) - MAX_ALPHA
    step, rest = mantissa >> 12, mantissa & 4095
    log = (places << 16) - _LOG2[step] - ((_LOG2[step + 1] - _LOG2[step]) * rest + 2048 >> 12)
    x = log * imminence >> 7
    step, rest, shift = x >> 8 & 255, x & 255, min(31, x >> 16)
    value = _EXP2[step] - ((_EXP2[step] - _EXP2[step + 1]) * rest + 128 >> 8)
    return (value + (1 << shift >> 1)) >> shift


def increase(cwnd: int) -> int:
    return max([a for window, a, _b in _ROWS if window <= cwnd], default=1)


def hstcp_after_loss(cwnd: int) -> int:
    b = _ROWS[increase(cwnd) - 1][2]
    return max(2, cwnd - (cwnd * round(b * 1024) >> 10))
