"""Sends frames out of an interface, many with one system call: sendmmsg(2)."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Sequence

_SO_SNDBUFFORCE = 32
_SOL_PACKET, _PACKET_QDISC_BYPASS = 263, 20
_BUFFER = 4 << 20
_libc = ctypes.CDLL(None, use_errno=True)


class _Piece(ctypes.Structure):
    """``struct iovec``."""

    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Header(ctypes.Structure):
    """``struct msghdr``."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("name_size", ctypes.c_uint32),
        ("pieces", ctypes.c_void_p),
        ("number", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


class _Message(ctypes.Structure):
    """``struct mmsghdr``."""

    _fields_ = [("header", _Header), ("sent", ctypes.c_uint)]


class FrameBurst:
    """A packet socket of an interface, and the frames that it sends. Close it.

    ``bypass``: the frames do not wait in the queue of the interface; if the device refuses one, it is lost.
    """

    def __init__(self, interface: str, frames: Sequence[bytes], bypass: bool = False) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
        if bypass:
            self._socket.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        self._socket.bind((interface, 0))
        self._frames = [ctypes.create_string_buffer(frame, len(frame)) for frame in frames]
        pieces = (_Piece(ctypes.addressof(each), len(each)) for each in self._frames)
        self._pieces = (_Piece * len(frames))(*pieces)
        size = ctypes.sizeof(_Piece)
        headers = (
            _Header(pieces=ctypes.addressof(self._pieces) + size * index, number=1)
            for index in range(len(frames))
        )
        self._messages = (_Message * len(frames))(*map(_Message, headers))

    def send(self, number: int, first: int = 0) -> None:
        """Send so many of the frames, from the one with the index ``first`` on. Raises ``OSError`` if the
        queue refuses one.
        """
        sent = self.try_send(number, first)
        if sent != number:
            code = ctypes.get_errno() if sent == 0 else 0
            raise OSError(code, f"{sent} of {number} frames sent: {os.strerror(code)}")

    def try_send(self, number: int, first: int = 0) -> int:
        """The same; returns how many were sent before one was refused."""
        if not 0 <= first <= first + number <= len(self._messages):
            raise ValueError(f"there are {len(self._messages)} frames, not {first} + {number}")
        at = ctypes.byref(self._messages, first * ctypes.sizeof(_Message))
        return max(0, int(_libc.sendmmsg(self._socket.fileno(), at, number, 0)))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
