"""The settings of SED, which are RSED's as well, and the same as typed parameters of its laws."""

from __future__ import annotations

from dataclasses import dataclass

from fairq_ryu.policies.common_settings import BASE_RTT, INITCWND
from fairq_ryu.setting import Setting

INTERVAL = 0.01
"""T, seconds: time between two computations of the windows. Several round trips with a full queue, in which
a window shows its effect, and a fraction of the deadlines that are worth announcing. Each costs the agent a
report of all flows of the port."""

LINGER = 0.1
"""Windows stay until the queue has been at NOM for this long, seconds: they are what makes it short, and all
senders at once would fill it again. To stay longer costs little: a flow that is alone has the whole total."""

NOM = 0.2
"""The queue is no longer congested (NOM) when it has fallen to this fraction of K."""


@dataclass(frozen=True, slots=True)
class SedParameters:
    """``base_rtt`` in s; ``threshold`` K a part of the buffer, ``margin`` of the time to the deadline;
    windows in segments.
    """

    threshold: float
    base_rtt: float
    base_segments: int
    margin: float
    missed: str
    initcwnd: int


SETTINGS = (
    Setting(
        "sed",
        "threshold",
        0.25,
        "",
        "K: the queue is congested (CNG) from this fraction of the buffer on. Lower it where packets "
        "are lost in volleys; raise it where flows do not fill the link.",
        0.01,
        1,
    ),
    BASE_RTT,
    Setting(
        "sed",
        "base_segments",
        1,
        "segments",
        "Window of each flow without a deadline. Raise it where flows without a deadline must not fall "
        "behind.",
        1,
        10,
    ),
    Setting(
        "sed",
        "margin",
        0.9,
        "",
        "Windows are planned so that a flow ends after this fraction of the time to its deadline (1: at "
        "the deadline). Lower it where flows are just too late.",
        0.1,
        1,
    ),
    Setting(
        "sed",
        "missed",
        "demote",
        "",
        "What happens to a flow after its deadline: demote (it is treated as a flow without a deadline) "
        "or pause (its window is 0). Set pause where late answers are of no use.",
        choices=("demote", "pause"),
    ),
    INITCWND,
)
"""The settings of SED. RSED has them as well, in the same section."""
