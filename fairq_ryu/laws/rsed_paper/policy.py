"""rsed-paper: RSED as published, SED and three duplicate ACKs for a dropped packet, run by the controller."""

from __future__ import annotations

from typing import ClassVar

from fairq_ryu.laws.rsed_paper.algorithm import ON_PACKET_LOSS
from fairq_ryu.laws.sed_paper.policy import SedPaper, SedPaperPort
from fairq_ryu.model import PortKey


class RsedPaper(SedPaper):
    """RSED as published. Its settings are those of SED as published, in the same section."""

    name: ClassVar[str] = "rsed-paper"
    recovery = ON_PACKET_LOSS

    def port_law(self, port: PortKey) -> SedPaperPort:
        """SED's law for one port, with packet-loss messages."""
        return SedPaperPort(self.parameters, loss_messages=True)
