"""The structures of ``bpf/layout.h`` for Python, read from the header itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairq_ryu.agent.layout import read_layout

BPF_DIR = Path(__file__).parent / "bpf"

_, STRUCTS = read_layout((BPF_DIR / "layout.h").read_text(encoding="utf-8"))

fq_cc_flow: Any = STRUCTS["fq_cc_flow"]
fq_cc_deadline: Any = STRUCTS["fq_cc_deadline"]
fq_cc_alpha: Any = STRUCTS["fq_cc_alpha"]
