"""RSED: SED, and the network sees to it that lost segments are sent again at once.

Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks" (2016), section 4.
Windows are SED's. The switch also hands over what the queue drops; what is done about that is
:attr:`Rsed.recovery`, and done elsewhere.
"""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters, Recovery
from fairq_ryu.policies.sed import SedParameters, SedPort


class Rsed:
    """The RSED policy."""

    name: ClassVar[str] = "rsed"

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[rsed]``: SED's, and those of the recovery."""
        self.parameters = SedParameters.of(parameters)
        mode = parameters["recovery"]
        self.recovery = Recovery(
            dupack=mode in ("dupack", "both"),
            reinject=mode in ("reinject", "both"),
            bytes=int(parameters["recovery_bytes"]),
            age=float(parameters["recovery_age"]),
        )

    @property
    def interval(self) -> float:
        """T, seconds."""
        return self.parameters.interval

    def port_law(self, port: PortKey) -> SedPort:
        """The law for one port."""
        return SedPort(self.parameters, drops=self.recovery.dupack or self.recovery.reinject)
