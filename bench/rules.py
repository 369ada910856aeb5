"""Rules per second through the window channel, beside Open vSwitch's own flow table."""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.channel.flow_match import match_fields
from fairq_ryu.model import FlowKey
from tests.support.lab import FAIRQ, Process, output
from tests.support.ofp import StubController

BRIDGE = "fqbench"
RULES = 3000


def main() -> None:
    """Print the figures."""
    with contextlib.ExitStack() as stack:
        output("ovs-vsctl", "add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev",
               "fail_mode=secure", "protocols=OpenFlow13")  # fmt: skip
        stack.callback(output, "ovs-vsctl", "del-br", BRIDGE)
        ovs, agent = StubController(), StubController()
        stack.callback(ovs.shut)
        stack.callback(agent.shut)
        output("ovs-vsctl", "set-controller", BRIDGE, ovs.target)
        ovs.accept()
        log = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "agent.log"
        process = Process(log, FAIRQ, "agent", "--bridge", BRIDGE, "--controller", agent.target)
        stack.callback(process.end)
        process.wait_for("ready")
        agent.accept()
        output_action = parser.OFPActionOutput(ofp.OFPP_IN_PORT)
        window_action = parser.OFPActionSetField(tcp_window=5120)
        for action in ("add", "renew"):
            own = _rate(agent, window_action)
            base = _rate(ovs, output_action)
            both = f"agent {own:7.0f}   Open vSwitch {base:7.0f}   ratio {own / base:.2f}"
            print(f"rules a second, {action:5}  {both}")


def _rate(stub: StubController, action: Any) -> float:
    """Rules per second, from the first byte sent to the barrier reply. Messages are encoded beforehand."""
    wire = bytearray()
    for n in range(RULES):
        flow = FlowKey(f"10.1.{n >> 8}.{n & 255}", "10.0.0.1", 80, 40000)
        message = parser.OFPFlowMod(
            stub.datapath,
            match=parser.OFPMatch(**match_fields(flow)),
            hard_timeout=60,
            instructions=[parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, [action])],
        )
        message.set_xid(n)
        message.serialize()
        wire += message.buf
    began = time.monotonic()
    stub.sock.settimeout(60)
    stub.send_raw(bytes(wire))
    answer = stub.ask(parser.OFPBarrierRequest(stub.datapath))
    took = time.monotonic() - began
    if not isinstance(answer, parser.OFPBarrierReply):
        raise SystemExit(f"bench: the switch answered {answer}")
    return RULES / took
