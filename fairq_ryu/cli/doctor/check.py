"""The outcome of a check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """The outcome of one check. `remedy` is a command or, where no command helps, a step; empty when ok.

    `fail` means that fairq_ryu cannot run here, `warn` that something optional is missing or unusual.
    """

    name: str
    status: Status
    found: str
    remedy: str = ""
