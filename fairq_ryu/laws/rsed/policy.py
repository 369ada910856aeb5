"""RSED: SED, and the network retransmits lost segments at once.

Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks" (2016), section 4.
The windows are SED's. :attr:`Rsed.recovery` says how the segments that the queue drops are recovered, and the
agent of the switch does it.
"""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.laws.sed.policy import Sed
from fairq_ryu.laws.sed.settings import SETTINGS
from fairq_ryu.policies.base import Parameters, Recovery
from fairq_ryu.setting import Setting

STORED_BYTES = 1 << 20
"""For the dropped segments of a port: about 590 full frames, with the 256 bytes that each needs in addition,
and 128 MiB for 128 ports."""

STORED_AGE = 1.0
"""Seconds after which a dropped segment is no longer worth sending: five times the least retransmission
timeout of Linux, so its sender has sent it again."""


class Rsed(Sed):
    """The RSED policy."""

    name: ClassVar[str] = "rsed"
    settings: ClassVar[tuple[Setting, ...]] = (
        *SETTINGS,
        Setting(
            "rsed",
            "recovery",
            "reinject",
            "",
            "How a dropped segment is recovered: dupack (duplicate ACKs), reinject (it is sent again), both "
            "or none. Set dupack to see the paper's way, none where the network must not send segments "
            "itself.",
            choices=("dupack", "reinject", "both", "none"),
        ),
    )

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are SED's, of section ``[sed]``, and that of the recovery, of section ``[rsed]``."""
        super().__init__(parameters)
        mode = parameters["recovery"]
        self.recovery = Recovery(
            dupack=mode in ("dupack", "both"),
            reinject=mode in ("reinject", "both"),
            bytes=STORED_BYTES,
            age=STORED_AGE,
        )
        self.drops = self.recovery.dupack or self.recovery.reinject
