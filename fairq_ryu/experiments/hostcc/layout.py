"""The structures of ``bpf/layout.h`` for Python, read from the header itself."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from fairq_ryu.agent.layout import read_layout

BPF_DIR = Path(__file__).parent / "bpf"

_, STRUCTS = read_layout((BPF_DIR / "layout.h").read_text(encoding="utf-8"))

fq_cc_flow: Any = STRUCTS["fq_cc_flow"]
fq_cc_deadline: Any = STRUCTS["fq_cc_deadline"]
fq_cc_alpha: Any = STRUCTS["fq_cc_alpha"]
fq_cc_member_key: Any = STRUCTS["fq_cc_member_key"]
fq_cc_member: Any = STRUCTS["fq_cc_member"]
fq_cc_group_key: Any = STRUCTS["fq_cc_group_key"]
fq_cc_group: Any = STRUCTS["fq_cc_group"]


class LockedGroup(ctypes.Structure):
    """An entry of the map ``groups``: the kernel's lock, and the group."""

    _fields_ = (("lock", ctypes.c_uint32), ("unused", ctypes.c_uint32), ("group", fq_cc_group))
