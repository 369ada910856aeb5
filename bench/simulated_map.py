"""The flow map of a simulated agent: what the window program would have recorded of a bridge's connections.

The agent's own modules read it, find what has changed and encode the records. Its entries are rows of one
array: those of connections that send are brought up to date only when the map is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.simulated_flows import MSS, RTT_US, WSCALE, Connection, Flows
from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.flow_map import KEY_WIDTH

_C = layout.CONSTANTS
_FLAGS = _C["FQ_KNOWN"] | _C["FQ_WS"] | _C["FQ_SEQ"] | _C["FQ_ACK"]
_SEGMENT = 1448

_Places = NDArray[np.int64]


class SimulatedMap:
    """The map of a bridge's :class:`Flows`; an interface has the number of its port."""

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self._places: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._free: list[int] = []
        self._rows: NDArray[Any] = np.zeros(64, dtype=np.dtype(layout.fq_flow))
        self._sides = np.zeros(64, dtype=np.int64)  # of the data
        self._sends = np.zeros(64, dtype=np.bool_)
        self._began = np.zeros(64)  # seconds

    # As an eBPF map

    def parts(self) -> Iterator[tuple[bytes, bytes]]:
        """All entries."""
        places = self._update()
        self._send(places)
        yield b"".join(self._keys[place] for place in places.tolist()), self._rows[places].tobytes()

    def lookup_all(self, keys: bytes) -> tuple[bytes, bytes]:
        """The entries of these keys that exist."""
        wanted = [keys[at : at + KEY_WIDTH] for at in range(0, len(keys), KEY_WIDTH)]
        found = [key for key in wanted if key in self._places]
        places = np.array([self._places[key] for key in found], dtype=np.int64)
        self._send(places)
        return b"".join(found), self._rows[places].tobytes()

    def delete_all(self, keys: bytes) -> int:
        """Remove the entries of these keys. Returns how many there were."""
        wanted = (keys[at : at + KEY_WIDTH] for at in range(0, len(keys), KEY_WIDTH))
        return sum(self._remove(key) for key in wanted)

    def _remove(self, key: bytes) -> bool:
        place = self._places.pop(key, None)
        if place is None:
            return False
        self._keys[place], self._sends[place] = b"", False
        self._free.append(place)
        return True

    def set(self, key: Any, value: Any) -> None:
        """Nothing is kept of a connection that has been silent for long."""

    # The connections

    def _update(self) -> _Places:
        """Enter what has begun and ended. Returns the places of all entries."""
        for connection, ended in self._flows.take_news():
            key = flow_key(connection.key, directed=True)
            side, key.dir = key.dir, 0
            if not ended:
                self._enter(bytes(key), side, connection)
            elif (place := self._places.get(bytes(key))) is not None:
                self._send(np.array([place]))
                self._sends[place] = False
                self._rows[place]["dir"]["flags"] |= np.uint32(_C["FQ_FIN"])
        return np.array(list(self._places.values()), dtype=np.int64)

    def _enter(self, key: bytes, side: int, connection: Connection) -> None:
        place = self._places.get(key)
        if place is None:
            place = self._free.pop() if self._free else len(self._keys)
            if place == len(self._keys):
                self._keys.append(b"")
            if place == len(self._rows):
                self._rows, self._sides, self._sends, self._began = (
                    np.concatenate((each, np.zeros_like(each)))
                    for each in (self._rows, self._sides, self._sends, self._began)
                )
            self._places[key], self._keys[place] = place, key
        row = self._rows[place]["dir"]
        for each, port in ((side, connection.server), (1 - side, connection.client)):
            row[each]["out"]["ifindex"], row[each]["flags"], row[each]["mss"] = port, _FLAGS, MSS
            row[each]["wscale"], row[each]["rtt_ns"] = WSCALE, RTT_US * 500
            row[each]["last_ns"] = int(connection.began * 1e9)
            row[each]["bytes"] = row[each]["packets"] = row[each]["acked"] = 0
        self._sides[place], self._began[place] = side, connection.began
        self._sends[place] = connection.sends

    def _send(self, places: _Places) -> None:
        """Bring these connections up to date: those that send have just sent."""
        places = places[self._sends[places]]
        now = time.monotonic()
        size = ((now - self._began[places]) * self._flows.flow_rate).astype(np.uint64)
        ends, sides = self._rows["dir"], self._sides[places]
        ends["last_ns"][places] = int(now * 1e9)
        ends["bytes"][places, sides] = size
        ends["packets"][places, sides] = size // _SEGMENT
        ends["rewritten"][places, 1 - sides] = size // (2 * _SEGMENT)
        ends["acked"][places, 1 - sides] = size
