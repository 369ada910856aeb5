# mypy: allow-subclassing-any, allow-untyped-decorators
"""``ryu-manager bench.apps.discard``: the bridge forwards by itself and copies TCP SYNs, which are discarded.

This is the minimum cost of copies to a Ryu controller: only Ryu's own work for each copy.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

COPY_BYTES = 192
SYN = 0x002


class Discard(app_manager.RyuApp):
    """Discards every copy."""

    OFP_VERSIONS: ClassVar[list[int]] = [ofp.OFP_VERSION]

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_features(self, event: Any) -> None:
        """A bridge has connected: install two rules."""
        datapath = event.msg.datapath
        normal = parser.OFPActionOutput(ofp.OFPP_NORMAL)
        copy = parser.OFPActionOutput(ofp.OFPP_CONTROLLER, COPY_BYTES)
        syn = parser.OFPMatch(eth_type=0x0800, ip_proto=6, tcp_flags=(SYN, SYN))
        for priority, match, actions in ((0, parser.OFPMatch(), [normal]), (100, syn, [copy, normal])):
            datapath.send_msg(
                parser.OFPFlowMod(
                    datapath,
                    priority=priority,
                    match=match,
                    instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)],
                )
            )

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event: Any) -> None:
        """A copy has arrived: discard it."""
