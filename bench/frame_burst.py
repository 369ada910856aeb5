"""Sends copies of one frame out of an interface with one system call, sendmmsg(2)."""

from __future__ import annotations

import ctypes
import os
import socket

_SO_SNDBUFFORCE = 32
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
    """A packet socket of an interface, and at most ``number`` copies of a frame. Close it."""

    def __init__(self, interface: str, frame: bytes, number: int) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _BUFFER)
        self._socket.bind((interface, 0))
        self._frame = ctypes.create_string_buffer(frame, len(frame))
        self._piece = _Piece(ctypes.addressof(self._frame), len(frame))
        header = _Header(pieces=ctypes.addressof(self._piece), number=1)
        self._messages = (_Message * number)(*(_Message(header) for _ in range(number)))

    def send(self, number: int) -> None:
        """Send so many copies. Raises ``OSError`` if the queue refuses one."""
        sent = _libc.sendmmsg(self._socket.fileno(), self._messages, number, 0)
        if sent != number:
            code = ctypes.get_errno() if sent < 0 else 0
            raise OSError(code, f"{max(sent, 0)} of {number} frames sent: {os.strerror(code)}")

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
