"""The floods: how each is made, and what is bounded under it.

One entry is all that a new flood needs. The table of docs/operating.md is made of it (`make docs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tests.floods import makers

if TYPE_CHECKING:
    from tests.floods.site import FloodSite, Running

Bounds: TypeAlias = "Callable[[FloodSite], Mapping[str, tuple[float, float]]]"
"""What has grown under a flood: each quantity, and the most that it may be."""


@dataclass(frozen=True)
class Flood:
    """``what`` and ``bounded`` are for the document: how the flood is made, and what of it is kept."""

    name: str
    what: str
    bounded: str
    make: Callable[[FloodSite, float], Running]
    """Begin it, for so many seconds."""
    bounds: Bounds
    config: str = ""
    """of the agent"""
    evicts: bool = False
    """Entries of the agent's map are removed under it."""
    to_receiver: bool = False
    """It passes the port of the flows, and takes a part of its rate."""
    of_frames: bool = True
    """It is made of frames, and so there can be one without a controller."""


FLOODS = [
    Flood(
        "SYN",
        "20,000 SYN a second from forged addresses, through a port beside the flows",
        "256 connections with an unanswered SYN of one port, 4,096 more SYNs in short form",
        makers.syns_to_target,
        makers.syns_are_bounded,
    ),
    Flood(
        "SYN-receiver",
        "the same to the receiver of the flows, through their port",
        "the same; turns: 4,096 packets that wait at a port, none while 256 handshakes are incomplete",
        makers.syns_to_receiver,
        makers.syns_are_bounded,
        to_receiver=True,
    ),
    Flood(
        "RST-FIN",
        "20,000 RST and 20,000 FIN a second of connections that do not exist, and 500 of each a second with "
        "the addresses and ports of the flows",
        "nothing is kept of them",
        makers.resets,
        makers.nothing_is_added,
    ),
    Flood(
        "flows",
        "100,000 connections in 10 s, with handshake and data, and a map of flows for 10,000",
        "10,000 connections of the agent; those that were silent longest are forgotten",
        makers.many_flows,
        makers.flows_are_bounded,
        config=f"[agent]\nflows = {makers.FEW_FLOWS}\n",
        evicts=True,
    ),
    Flood(
        "packet-in",
        "10,000 frames a second, each from another MAC and IP address that does not exist, and 2,000 ARP "
        "requests of such hosts",
        "16,384 hosts, of one port 1,000 new ones and 100 more a second; one port has a share of the packets "
        "to the controller for each class",
        makers.packet_ins,
        makers.hosts_are_bounded,
    ),
    Flood(
        "REST",
        "512 connections to the REST interface that ask for the longest lists again and again, and never "
        "read; 32 event streams likewise",
        "256 connections, 16 MiB of replies, 16 streams of 1 MiB",
        makers.silent_readers,
        makers.readers_are_bounded,
        of_frames=False,
    ),
]
