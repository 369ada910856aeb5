"""The settings of SED, which RSED has as well, and the same as typed parameters of its port law."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.policies.common_settings import initial_window, switch_interval, syn_allowance, where
from fairq_ryu.setting import Setting


@dataclass(frozen=True, slots=True)
class SedParameters:
    """``interval`` T, ``base_rtt``, ``settle``, ``idle_after``, ``linger`` and ``switch_interval`` in s;
    ``threshold`` K a part of the buffer, ``nom`` of K, ``margin`` of the time to the deadline, ``keep`` of a
    flow's need; windows in segments.
    """

    interval: float = 0.01
    threshold: float = 0.25
    nom: float = 0.2
    base_rtt: float = 0.001
    base_segments: int = 1
    margin: float = 0.9
    missed: str = "demote"
    partial: bool = False
    keep: float = 0.5
    floors: bool = True
    spare: bool = True
    settle: float = 0.004
    anticipate: bool = True
    initial_window: int = 10
    idle_after: float = 0.2
    linger: float = 0.1
    syn_allowance: int = 256
    where: str = "switch"
    switch_interval: float = 0.0002


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
            "nom",
            0.2,
            "",
            "The queue is no longer congested (NOM) when it has fallen to this fraction of K.",
            0,
            0.95,
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
        Setting(
            section,
            "partial",
            False,
            "",
            "A deadline flow that needs a larger window than is available gets what is available "
            "instead of 0.",
        ),
        Setting(
            section,
            "keep",
            0.5,
            "",
            "A flow that is already sending gets a smaller window instead of a pause if at least "
            "this fraction of its need is available (1: never).",
            0,
            1,
        ),
        Setting(
            section,
            "floors",
            True,
            "",
            "The window of a deadline flow, which is at least one segment, is subtracted from the "
            "total instead of its need.",
        ),
        Setting(
            section,
            "spare",
            True,
            "",
            "When all flows of a port have deadlines, window that is left over is given to them, in "
            "the order of their deadlines.",
        ),
        Setting(
            section,
            "settle",
            0.004,
            "s",
            "Flows that start or end within this time are handled in one computation.",
            0,
            1,
        ),
        Setting(
            section,
            "anticipate",
            True,
            "",
            "Windows are installed as soon as the initial windows of the new flows, taken together, "
            "would make the queue congested.",
        ),
        initial_window(section),
        Setting(
            section,
            "idle_after",
            0.2,
            "s",
            "A flow that has sent nothing for this long gets no share (0: every flow always gets a share).",
            0,
            3600,
        ),
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
        where(
            section,
            "Where the base windows are decided: in the switch, or in the controller. The windows of single "
            "flows are always decided in the controller.",
        ),
        switch_interval(section),
    )
