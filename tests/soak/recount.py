"""Counts the active flows of a port from the packets that leave by it, as the agent's program should."""

from __future__ import annotations

import socket
import struct
import threading
import time

_ALL, _OUTGOING = 3, 4  # ETH_P_ALL, PACKET_OUTGOING
_SOL_PACKET, _STATISTICS, _RECEIVE_BUFFER_FORCED = 263, 6, 33
_BUFFER, _SNAP = 16 << 20, 128
_IP_AT, _TCP = 14, 6
_FORGET = 10.0


class Recount:
    """From now on until :meth:`close`, in a thread of its own; in the network of this thread."""

    def __init__(self, interface: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCED, _BUFFER)
        self._socket.bind((interface, _ALL))
        self._socket.settimeout(0.1)
        self._last: dict[bytes, float] = {}
        self._end = threading.Event()
        self.missed = 0
        """Packets for which there was no room."""
        self._thread = threading.Thread(target=self._run, name="recount", daemon=True)
        self._thread.start()

    def active(self, seconds: float) -> int:
        """The flows whose data has left within so many seconds."""
        since = time.monotonic() - seconds
        return sum(at >= since for at in list(self._last.values()))

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        looked = time.monotonic()
        while not self._end.is_set():
            try:
                packet, about = self._socket.recvfrom(_SNAP)
            except TimeoutError:
                packet = b""
            now = time.monotonic()
            if packet and about[2] == _OUTGOING:
                self._count(packet, now)
            if now - looked > 1:
                looked = now
                self.missed += struct.unpack("II", self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 8))[1]
                for key in [key for key, at in self._last.items() if at < now - _FORGET]:
                    del self._last[key]

    def _count(self, packet: bytes, now: float) -> None:
        if packet[12:14] != b"\x08\x00" or packet[_IP_AT + 9] != _TCP:
            return
        tcp_at = _IP_AT + (packet[_IP_AT] & 15) * 4
        size = (
            int.from_bytes(packet[_IP_AT + 2 : _IP_AT + 4])
            - (tcp_at - _IP_AT)
            - (packet[tcp_at + 12] >> 4) * 4
        )
        key = packet[_IP_AT + 12 : _IP_AT + 16] + packet[tcp_at : tcp_at + 4]
        if packet[tcp_at + 13] & 0x05:  # FIN, RST
            self._last.pop(key, None)
        elif size > 0:
            self._last[key] = now
