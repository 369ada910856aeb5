"""How long is waited for what a slow machine is late with: the one factor of all time limits.

A limit only ends a wait for what never comes. On a machine that is many times slower, such as one that a
program emulates, set the environment variable ``FAIRQ_PATIENCE`` to a number from 1 (the default) to 1000.
"""

from __future__ import annotations

import os

VARIABLE = "FAIRQ_PATIENCE"
_MOST = 1000.0


def patient(seconds: float) -> float:
    """A time limit, seconds, for this machine. ``ValueError`` if the variable is not such a number."""
    text = os.environ.get(VARIABLE, "").strip() or "1"
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1.0 <= factor <= _MOST:  # false for NaN, too
        raise ValueError(f"environment variable {VARIABLE} is {text!r}, must be a number from 1 to {_MOST:g}")
    return seconds * factor
