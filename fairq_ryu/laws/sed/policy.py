"""SED: in congestion, flows with deadlines get the windows that they need to be in time; the rest is shared.

Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks" (Tsinghua Science and
Technology 21(5), 2016), section 3. CNG and NOM, the base windows of all flows and the anticipation of volleys
are the switch's (``law.h``), which decides at the packet that makes them necessary. The
windows of single flows above them are the controller's: :mod:`.port`.
"""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.laws.sed import SedLaw
from fairq_ryu.laws.sed.port import SedPort
from fairq_ryu.laws.sed.settings import INTERVAL, LINGER, NOM, SETTINGS, SedParameters
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.setting import Setting


class Sed:
    """The SED policy. ``drops``: the switch sends the segments that the queue drops to the controller."""

    name: ClassVar[str] = "sed"
    settings: ClassVar[tuple[Setting, ...]] = SETTINGS
    interval: ClassVar[float] = INTERVAL
    drops = False

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = typed_parameters(SedParameters, parameters)

    def switch_law(self, port: PortKey) -> SedLaw:
        """The base windows of one port."""
        p = self.parameters
        return SedLaw(
            anticipate=1,
            linger_us=round(LINGER * 1e6),
            target_ppm=round(p.threshold * 1e6),
            calm_ppm=round(NOM * p.threshold * 1e6),
            first_window=p.initcwnd,
            limiting_segments=p.base_segments,
        )

    def port_law(self, port: PortKey) -> SedPort:
        """The windows of single flows of one port, above the law of the switch."""
        return SedPort(self.parameters, self.drops)
