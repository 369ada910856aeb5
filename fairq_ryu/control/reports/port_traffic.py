"""Traffic through the ports of bridges: standard OpenFlow port counters, polled, and rates computed from
them.

Bridges count every port, also ports without a queue or an agent, and both directions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.sender import Sender
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.pipeline import Datapath

INTERVAL = 0.5
"""Every bridge is polled once in this interval, seconds."""
# A rate over less than this, seconds, would be more noise than rate.
_MIN_TIME = 0.1


class PortTraffic(NamedTuple):
    """One port: byte counters of the switch (they do not start at 0), and bits per second since the previous
    reading (None: there was none). ``tx`` leaves the switch by the port, ``rx`` comes in by it; ``at`` is the
    switch's own time, seconds.
    """

    at: float
    tx_bytes: int
    rx_bytes: int
    tx_bps: int | None = None
    rx_bps: int | None = None


class PortTrafficTable:
    """The ports of all bridges."""

    def __init__(self) -> None:
        self._ports: dict[PortKey, PortTraffic] = {}

    def get(self, port: PortKey) -> PortTraffic | None:
        """The last reading of a port; None: there is none."""
        return self._ports.get(port)

    def counted(self, dpid: int, stats: Iterable[Any]) -> None:
        """A bridge has reported its counters (Ryu's ``OFPPortStats``)."""
        for each in stats:
            port = PortKey(dpid, each.port_no)
            now = PortTraffic(
                each.duration_sec + each.duration_nsec / 1e9, int(each.tx_bytes), int(each.rx_bytes)
            )
            known = _rated(now, self._ports.get(port))
            if known is not None:
                self._ports[port] = known

    def keep_only(self, bridges: Mapping[int, Any]) -> None:
        """Forget bridges that are not connected: their rates are over."""
        for port in [port for port in self._ports if port.dpid not in bridges]:
            del self._ports[port]

    def forget(self, port: PortKey) -> None:
        """A port was removed."""
        self._ports.pop(port, None)


class CounterPolling:
    """Polls the bridges one after the other, so that the replies of many do not come at once. ``interval``:
    until the next request, seconds.
    """

    def __init__(self, bridges: Mapping[int, Datapath], traffic: PortTrafficTable) -> None:
        self._bridges = bridges
        self._traffic = traffic
        self._round: deque[int] = deque()  # bridges to be polled before the next round
        self.interval = INTERVAL

    def request_next(self) -> None:
        """Request the counters of the next bridge. A round starts with the bridges that are connected."""
        if not self._round:
            self._traffic.keep_only(self._bridges)
            self._round.extend(self._bridges)
            self.interval = INTERVAL / max(1, len(self._round))
        datapath = self._bridges.get(self._round.popleft()) if self._round else None
        if datapath is not None:
            Sender.send([(datapath, pipeline.ask_counters(datapath))])

    def reply(self, message: Any) -> None:
        """A bridge has replied (Ryu's ``OFPPortStatsReply``)."""
        dpid = message.datapath.id
        if self._bridges.get(dpid) is message.datapath:
            self._traffic.counted(dpid, [each for each in message.body if each.port_no <= ofp.OFPP_MAX])


def _rated(now: PortTraffic, before: PortTraffic | None) -> PortTraffic | None:
    """A reading with its rates; None if it comes too soon after the previous one."""
    # A port that was created again counts time and bytes from 0.
    if before is None or now.at < before.at:
        return now
    if now.tx_bytes < before.tx_bytes or now.rx_bytes < before.rx_bytes:
        return now
    time = now.at - before.at
    if time < _MIN_TIME:
        return None
    return now._replace(
        tx_bps=round((now.tx_bytes - before.tx_bytes) * 8 / time),
        rx_bps=round((now.rx_bytes - before.rx_bytes) * 8 / time),
    )
