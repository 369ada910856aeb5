"""Meters that limit the copies that a bridge sends to the controller, and their counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairq_ryu.control.sender import Outgoing
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.pipeline import Datapath

INTERVAL = 2.0
"""Bridges are asked for the counters of their meters this often, seconds."""


class CopyMeters:
    """``rate``: copies per second and bridge; 0: not limited. ``dropped`` has the copies that each bridge has
    dropped, by the bridge's own count.
    """

    def __init__(self, bridges: Mapping[int, Datapath], rate: int) -> None:
        self._bridges = bridges
        self._rate = rate
        self._unsupported: set[int] = set()
        self.dropped: dict[int, int] = {}

    def install(self, datapath: Datapath) -> list[Outgoing]:
        """The meter of a bridge that has connected; one of an earlier controller is removed first."""
        self._unsupported.discard(datapath.id)
        messages = [(datapath, pipeline.no_copy_limit(datapath))]
        if self._rate:
            messages.append((datapath, pipeline.copy_limit(datapath, self._rate)))
        return messages

    def bridge_disconnected(self, dpid: int) -> None:
        """A bridge has disconnected."""
        self.dropped.pop(dpid, None)
        self._unsupported.discard(dpid)

    def refused(self, dpid: int) -> None:
        """A bridge has no meters: its copies are not limited."""
        if dpid in self._bridges:
            self._unsupported.add(dpid)

    def requests(self) -> Iterator[Outgoing]:
        """Requests for the counters of all meters."""
        if self._rate:
            for datapath in [each for dpid, each in self._bridges.items() if dpid not in self._unsupported]:
                yield datapath, pipeline.ask_copy_limit(datapath)

    def counted(self, datapath: Any, stats: Iterable[Any]) -> None:
        """A bridge has answered (Ryu's ``OFPMeterStats``)."""
        dpid = datapath.id
        if self._bridges.get(dpid) is datapath:
            self.dropped[dpid] = sum(band.packet_band_count for s in stats for band in s.band_stats)
