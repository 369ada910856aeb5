"""The congestion controls of Linux, and what to do about one that this kernel does not offer."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

LINUX = (
    *("bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "reno"),
    *("scalable", "vegas", "veno", "westwood", "yeah"),
)
"""The controls of Linux, most of which are modules."""


def remedy(name: str, there: Sequence[str]) -> str:
    """What to do about the control ``name``, which is not among those that are ``there``. Only one of Linux
    can be loaded as a module: no other name is the name of one.
    """
    if name in LINUX:
        return f"`modprobe tcp_{name}`, or choose one of {', '.join(there)}"
    close = get_close_matches(name, list(dict.fromkeys((*there, *LINUX))), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"choose one of {', '.join(there)}"
