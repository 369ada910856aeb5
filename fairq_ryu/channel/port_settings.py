"""PORT_SETTINGS: the settings of the bridge's ports in Open vSwitch's database, as the agent follows them.

A controller asks for them with a message without body. The agent answers with all of them, and sends all of
them again whenever one has changed: one record for each port of the bridge, of at least 16 bytes, in network
byte order. What does not fit in one message is sent in several; the first of them has the flag FIRST, all but
the last MORE.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from fairq_ryu.channel import framing
from fairq_ryu.channel.dispatch import Incoming, TooMuch
from fairq_ryu.port_settings import LAST_VLAN, PortSettings, VlanMode

EXP_TYPE_PORT_SETTINGS = 14
FIRST, MORE = 1, 2  # flags of a message
MIRROR, STANDBY = 1, 2  # flags of a record

_HEAD = struct.Struct("!I4x")
_RECORD = struct.Struct("!IHBBHBxH2x")
_RANGE = struct.Struct("!HH")
HEAD_SIZE = _HEAD.size
RECORD_SIZE = _RECORD.size
_MODES = tuple(VlanMode)
# Of the records in one message, bytes: the largest has 2,048 ranges and a name, so it fits.
_MAX_BODY = 60000
MOST_PORTS = 1 << 16


class PortSettingsPart(NamedTuple):
    """The body of a message: ``first`` and ``more`` say where it is among those of one list."""

    first: bool
    more: bool
    ports: dict[int, PortSettings]


class Assembly:
    """Puts the parts of a list together, which come in their order."""

    def __init__(self) -> None:
        self._ports: dict[int, PortSettings] = {}

    def add(self, part: PortSettingsPart) -> dict[int, PortSettings] | None:
        """A part has come. Returns the whole list with its last part. Raises :class:`TooMuch`."""
        if part.first:
            self._ports.clear()
        self._ports |= part.ports
        if len(self._ports) > MOST_PORTS:
            raise TooMuch(f"settings of more than {MOST_PORTS:,} ports")
        return None if part.more else dict(self._ports)


def request(datapath: Any) -> Any:
    """The request for the settings of all ports."""
    return framing.command(datapath, EXP_TYPE_PORT_SETTINGS, b"")


def decode_request(data: bytes) -> None:
    """Check a request. Raises ValueError if it has a body."""
    if data:
        raise ValueError(f"a request for port settings has no body, not {len(data)} bytes")


def encode(ports: Mapping[int, PortSettings]) -> list[bytes]:
    """The bodies of the messages with the settings of all ports: at least one."""
    bodies: list[list[bytes]] = [[]]
    size = 0
    for record in (_record(port, settings) for port, settings in sorted(ports.items())):
        if size + len(record) > _MAX_BODY:
            bodies.append([])
            size = 0
        bodies[-1].append(record)
        size += len(record)
    last = len(bodies) - 1
    return [
        _HEAD.pack(FIRST * (number == 0) | MORE * (number < last)) + b"".join(body)
        for number, body in enumerate(bodies)
    ]


def messages(ports: Mapping[int, PortSettings]) -> list[bytes]:
    """The whole messages that an agent sends."""
    return [framing.notification(EXP_TYPE_PORT_SETTINGS, body) for body in encode(ports)]


def _record(port: int, settings: PortSettings) -> bytes:
    name = settings.bond.encode("utf-8")[:255]
    flags = MIRROR * settings.mirror | STANDBY * settings.standby
    body = b"".join(_RANGE.pack(*each) for each in settings.trunks) + name
    length = (_RECORD.size + len(body) + 7) & ~7
    mode = _MODES.index(settings.mode)
    head = _RECORD.pack(port, length, mode, flags, settings.tag, len(name), len(settings.trunks))
    return (head + body).ljust(length, b"\0")


def decode(data: bytes) -> PortSettingsPart:
    """The content of a body. Raises ValueError on a wrong length, mode or VLAN."""
    if len(data) < _HEAD.size:
        raise ValueError(f"a list of port settings is at least {_HEAD.size} bytes, not {len(data)}")
    (flags,) = _HEAD.unpack_from(data)
    ports: dict[int, PortSettings] = {}
    at = _HEAD.size
    while at < len(data):
        if at + _RECORD.size > len(data):
            raise ValueError(f"the settings of a port at byte {at} are cut off")
        port, length, mode, bits, tag, name, ranges = _RECORD.unpack_from(data, at)
        used = _RECORD.size + ranges * _RANGE.size + name
        if length != (used + 7) & ~7 or at + length > len(data):
            raise ValueError(f"the settings of port {port} have length {length} for {used} bytes")
        if mode >= len(_MODES) or tag > LAST_VLAN:
            raise ValueError(f"VLAN mode {mode} and tag {tag} of port {port}")
        start = at + _RECORD.size
        trunks = tuple(_RANGE.unpack_from(data, start + each * _RANGE.size) for each in range(ranges))
        if any(not low <= high <= LAST_VLAN for low, high in trunks):
            raise ValueError(f"VLANs {trunks} of port {port}")
        start += ranges * _RANGE.size
        bond = data[start : start + name].decode("utf-8", "replace")
        ports[port] = PortSettings(_MODES[mode], tag, trunks, bond, bool(bits & STANDBY), bool(bits & MIRROR))
        at += length
    return PortSettingsPart(bool(flags & FIRST), bool(flags & MORE), ports)


REQUEST = Incoming(EXP_TYPE_PORT_SETTINGS, "request for port settings", decode_request)
SETTINGS = Incoming(EXP_TYPE_PORT_SETTINGS, "list of port settings", decode)
