# mypy: allow-subclassing-any, allow-untyped-decorators
"""``ryu-manager bench.apps.reactive``: a learning switch with a rule for each flow, as many controllers do
it.

The first packet of each direction waits for the controller, which learns the port of its sender, installs an
exact-match rule for the flow and forwards the packet.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ryu.base import app_manager
from ryu.controller import ofp_event
from ryu.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib.packet import ether_types, ethernet, ipv4, packet, tcp
from ryu.ofproto import ofproto_v1_3

IDLE_TIMEOUT = 10  # s


class Reactive(app_manager.RyuApp):
    """Ryu's example of a learning switch, with exact-match rules."""

    OFP_VERSIONS: ClassVar[list[int]] = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.mac_to_port: dict[int, dict[str, int]] = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_features(self, event: Any) -> None:
        """A bridge has connected: install the table-miss rule that sends packets here."""
        datapath = event.msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        actions = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)]
        self.add_flow(datapath, 0, parser.OFPMatch(), actions)

    def add_flow(
        self, datapath: Any, priority: int, match: Any, actions: list[Any], idle_timeout: int = 0
    ) -> None:
        """Install a rule."""
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        instructions = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]
        datapath.send_msg(
            parser.OFPFlowMod(
                datapath=datapath,
                priority=priority,
                match=match,
                instructions=instructions,
                idle_timeout=idle_timeout,
            )
        )

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet_in(self, event: Any) -> None:
        """A packet that no rule matched."""
        msg = event.msg
        datapath = msg.datapath
        ofproto, parser = datapath.ofproto, datapath.ofproto_parser
        in_port = msg.match["in_port"]
        pkt = packet.Packet(msg.data)
        eth = pkt.get_protocols(ethernet.ethernet)[0]
        ports = self.mac_to_port.setdefault(datapath.id, {})
        ports[eth.src] = in_port
        out_port = ports.get(eth.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        ip, segment = pkt.get_protocol(ipv4.ipv4), pkt.get_protocol(tcp.tcp)
        if out_port != ofproto.OFPP_FLOOD and ip is not None and segment is not None:
            match = parser.OFPMatch(
                in_port=in_port,
                eth_type=ether_types.ETH_TYPE_IP,
                ip_proto=ip.proto,
                ipv4_src=ip.src,
                ipv4_dst=ip.dst,
                tcp_src=segment.src_port,
                tcp_dst=segment.dst_port,
            )
            self.add_flow(datapath, 1, match, actions, IDLE_TIMEOUT)
        out = parser.OFPPacketOut(
            datapath=datapath,
            buffer_id=ofproto.OFP_NO_BUFFER,
            in_port=in_port,
            actions=actions,
            data=msg.data,
        )
        datapath.send_msg(out)
