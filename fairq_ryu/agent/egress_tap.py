"""Counts the TCP packets that leave by an interface, whether the agent's programs see them or not."""

from __future__ import annotations

import ctypes
import socket
import struct

_ETH_P_ALL = 0x0003
_SOL_PACKET, _PACKET_STATISTICS, _SO_ATTACH_FILTER = 263, 6, 26
_LOAD_WORD, _LOAD_HALF, _LOAD_BYTE, _IF_EQUAL, _RETURN = 0x20, 0x28, 0x30, 0x15, 0x06
_PACKET_TYPE = 0xFFFFF004  # SKF_AD_OFF + SKF_AD_PKTTYPE
_OUTGOING, _TCP, _IPV4, _IPV6, _VLAN = 4, 6, 0x0800, 0x86DD, 0x8100
# Classic BPF: operation, instructions to skip if equal and if not, operand. A VLAN tag may be in the frame.
_OUTGOING_TCP = (
    (_LOAD_WORD, 0, 0, _PACKET_TYPE),
    (_IF_EQUAL, 0, 16, _OUTGOING),
    (_LOAD_HALF, 0, 0, 12),
    (_IF_EQUAL, 0, 7, _VLAN),
    (_LOAD_HALF, 0, 0, 16),
    (_IF_EQUAL, 1, 0, _IPV4),
    (_IF_EQUAL, 2, 11, _IPV6),
    (_LOAD_BYTE, 0, 0, 27),
    (_IF_EQUAL, 8, 9, _TCP),
    (_LOAD_BYTE, 0, 0, 24),
    (_IF_EQUAL, 6, 7, _TCP),
    (_IF_EQUAL, 1, 0, _IPV4),
    (_IF_EQUAL, 2, 5, _IPV6),
    (_LOAD_BYTE, 0, 0, 23),
    (_IF_EQUAL, 2, 3, _TCP),
    (_LOAD_BYTE, 0, 0, 20),
    (_IF_EQUAL, 0, 1, _TCP),
    (_RETURN, 0, 0, 1),
    (_RETURN, 0, 0, 0),
)


class EgressTap:
    """A packet socket that counts, and of which nothing is read. It takes time for every packet."""

    def __init__(self, name: str) -> None:
        """Raises OSError, as for an interface that has gone."""
        program = b"".join(struct.pack("=HBBI", *each) for each in _OUTGOING_TCP)
        code = ctypes.create_string_buffer(program, len(program))
        attach = struct.pack("@HP", len(_OUTGOING_TCP), ctypes.addressof(code))
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, attach)
            self._socket.bind((name, _ETH_P_ALL))
        except BaseException:
            self._socket.close()
            raise

    def count(self) -> int:
        """The TCP packets that have left since the last call."""
        # Those for which the socket had no room are included.
        return int(struct.unpack("=II", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))[0])

    def close(self) -> None:
        """Count no longer."""
        self._socket.close()
