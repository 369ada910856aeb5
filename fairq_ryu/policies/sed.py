"""SED: in congestion, flows with deadlines get the windows that they need to be in time; the rest is shared.

Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks" (Tsinghua Science
and Technology 21(5), 2016), section 3. :mod:`.sed_port` is the law, which runs in the controller and is the
reference. By default the switch sets the base windows, and the controller the windows of single flows above
them: :mod:`.sed_above`.
"""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.law_spec import LawSpec
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.sed_above import SedAbove, base_law
from fairq_ryu.policies.sed_port import SedPort
from fairq_ryu.policies.sed_settings import SedParameters, deadline_settings
from fairq_ryu.setting import Setting

__all__ = ["Sed", "SedParameters", "SedPort"]


class Sed:
    """The SED policy. ``drops``: the switch sends the segments that the queue drops to the controller."""

    name: ClassVar[str] = "sed"
    settings: ClassVar[tuple[Setting, ...]] = deadline_settings("sed")
    drops = False

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[sed]``."""
        self.parameters = typed_parameters(SedParameters, parameters)
        self.interval = self.parameters.interval

    def port_law(self, port: PortKey) -> SedPort:
        """The whole law for one port, where the switch does not run a part of it."""
        return SedPort(self.parameters, self.drops)

    def switch_law(self, port: PortKey) -> LawSpec | None:
        """The base windows of one port, where the switch sets them; None: it does not."""
        return base_law(self.parameters)

    def flow_law(self, port: PortKey) -> SedAbove:
        """The windows of single flows above the law of the switch."""
        return SedAbove(self.parameters, self.drops)
