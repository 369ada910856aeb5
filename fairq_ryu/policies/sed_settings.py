"""The settings of SED, which RSED has as well, and the same as typed parameters of its laws."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.policies.common_settings import initial_window, syn_allowance
from fairq_ryu.setting import Setting

NOM = 0.2
"""The queue is no longer congested (NOM) when it has fallen to this fraction of K."""


@dataclass(frozen=True, slots=True)
class SedParameters:
    """``interval`` T, ``base_rtt`` and ``linger`` in s; ``threshold`` K a part of the buffer, ``margin`` of
    the time to the deadline; windows in segments.
    """

    interval: float = 0.01
    threshold: float = 0.25
    base_rtt: float = 0.001
    base_segments: int = 1
    margin: float = 0.9
    missed: str = "demote"
    initial_window: int = 10
    linger: float = 0.1
    syn_allowance: int = 256


def deadline_settings(section: str) -> tuple[Setting, ...]:
    """The settings of SED, as entries of ``section``: RSED has them as well."""
    return (
        Setting(
            section, "interval", 0.01, "s", "T: time between two computations of the windows.", 0.0005, 10
        ),
        Setting(
            section,
            "threshold",
            0.25,
            "",
            "K: the queue is congested (CNG) from this fraction of the buffer on.",
            0.01,
            1,
        ),
        Setting(
            section,
            "base_rtt",
            0.001,
            "s",
            "Round-trip time with empty queues, used until it is known from handshakes of the port's flows.",
            0.00001,
            10,
        ),
        Setting(section, "base_segments", 1, "segments", "Window of each flow without a deadline.", 1, 10),
        Setting(
            section,
            "margin",
            0.9,
            "",
            "Windows are planned so that a flow ends after this fraction of the time to its deadline "
            "(1: at the deadline).",
            0.1,
            1,
        ),
        Setting(
            section,
            "missed",
            "demote",
            "",
            "What happens to a flow after its deadline: demote (it is treated as a flow without a "
            "deadline) or pause (its window is 0).",
            choices=("demote", "pause"),
        ),
        initial_window(section),
        Setting(
            section,
            "linger",
            0.1,
            "s",
            "Windows are removed when the queue has been at NOM for this long (0: immediately).",
            0,
            60,
        ),
        syn_allowance(section),
    )
