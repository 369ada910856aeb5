"""Meters on packets that go to the controller. They limit the copies, not the traffic.

Functions return Ryu messages for a datapath; nothing is sent here.
"""

from __future__ import annotations

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from fairq_ryu.openflow.pipeline import Datapath, Message

OF_CONTROLLER = ofp.OFPM_CONTROLLER
"""The meter on all packets that go to the controller without a meter of their own."""


def add(
    datapath: Datapath, packets_per_second: int, meter: int = OF_CONTROLLER, burst: int | None = None
) -> Message:
    """Add a meter; ``burst``: the packets that it permits at once (None: those of a second)."""
    return parser.OFPMeterMod(
        datapath,
        command=ofp.OFPMC_ADD,
        flags=ofp.OFPMF_PKTPS | ofp.OFPMF_BURST,
        meter_id=meter,
        bands=[
            parser.OFPMeterBandDrop(
                rate=packets_per_second, burst_size=packets_per_second if burst is None else burst
            )
        ],
    )


def remove(datapath: Datapath, meter: int = OF_CONTROLLER) -> Message:
    """Remove a meter, whether it is there or not, and the rules that use it."""
    return parser.OFPMeterMod(datapath, command=ofp.OFPMC_DELETE, flags=0, meter_id=meter, bands=[])


def ask(datapath: Datapath) -> Message:
    """The request for the counters of all meters of a bridge."""
    return parser.OFPMeterStatsRequest(datapath, 0, ofp.OFPM_ALL)
