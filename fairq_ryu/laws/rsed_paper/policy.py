"""rsed-paper: RSED as published, SED and three duplicate ACKs for a dropped packet, run by the controller."""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.laws.rsed_paper.algorithm import ON_PACKET_LOSS
from fairq_ryu.laws.sed_paper.policy import SedPaper, SedPaperPort, sed_settings
from fairq_ryu.model import PortKey
from fairq_ryu.setting import Setting


class RsedPaper(SedPaper):
    """RSED as published."""

    name: ClassVar[str] = "rsed-paper"
    settings: ClassVar[tuple[Setting, ...]] = sed_settings("rsed-paper")
    recovery = ON_PACKET_LOSS

    def port_law(self, port: PortKey) -> SedPaperPort:
        """SED's law for one port, with packet-loss messages."""
        return SedPaperPort(self.parameters, loss_messages=True)
