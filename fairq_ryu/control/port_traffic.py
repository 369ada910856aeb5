"""What goes through the ports of bridges: standard OpenFlow port counters, read again and again, and rates.

The bridges count every port, also those without a queue or an agent, and both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fairq_ryu.model import PortKey

INTERVAL = 0.5
"""Every bridge is asked once in so many seconds."""
# A rate over less than this, seconds, would be more noise than rate.
_LEAST = 0.1


class PortTraffic(NamedTuple):
    """One port: bytes by its own count (it does not start at 0), and bits per second since the reading
    before (None: there was none). ``tx`` leaves the switch by the port, ``rx`` comes in by it; ``at`` is the
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
        """What is known of a port."""
        return self._ports.get(port)

    def counted(self, dpid: int, stats: Iterable[Any]) -> None:
        """A bridge has told its counters (Ryu's ``OFPPortStats``)."""
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
        """A port has gone."""
        self._ports.pop(port, None)


def _rated(now: PortTraffic, before: PortTraffic | None) -> PortTraffic | None:
    """A reading with its rates; None if it comes too soon after the one before."""
    # A port that was made anew counts from 0 again, time and bytes.
    if before is None or now.at < before.at:
        return now
    if now.tx_bytes < before.tx_bytes or now.rx_bytes < before.rx_bytes:
        return now
    time = now.at - before.at
    if time < _LEAST:
        return None
    return now._replace(
        tx_bps=round((now.tx_bytes - before.tx_bytes) * 8 / time),
        rx_bps=round((now.rx_bytes - before.rx_bytes) * 8 / time),
    )
