"""The connections that an agent knew when it ended in order, for the next agent of its bridge.

Window scales stand in handshakes only, so without this file no connection that is older than the agent could
be governed after an upgrade. The file is beside lock and socket of the bridge. It is read once, by an agent
with the same layout of its maps, after the same boot of the machine, and not long after it was written.

Segments that have passed meanwhile were counted by nobody. So the numbers of a connection may have moved on;
the program then judges its segments as those of a connection that has used another path for a while
(bpf/lib/rivals.h), and takes no scale over for another connection with the same addresses and ports.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from pathlib import Path
from typing import NamedTuple

from fairq_ryu.agent import layout

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# An upgrade takes less.
_MAX_AGE_NS = 300_000_000_000
_KEY, _FLOW = ctypes.sizeof(layout.fq_flow_key), ctypes.sizeof(layout.fq_flow)
# Layout of the maps, sizes of key and flow, number of flows, time of writing, boot of the machine.
_HEAD = struct.Struct("=IIIIQ36s")


def _boot_id() -> bytes:
    return _BOOT_ID.read_bytes().strip()


def _now_ns() -> int:
    """Also while the machine sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def write(path: Path, keys: bytes, flows: bytes) -> None:
    """Write the file; ``keys`` and ``flows`` are ``fq_flow_key`` and ``fq_flow``, concatenated. Raises
    OSError; then there is none.
    """
    head = _HEAD.pack(
        layout.CONSTANTS["FQ_LAYOUT_VERSION"], _KEY, _FLOW, len(keys) // _KEY, _now_ns(), _boot_id()
    )
    path.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines((head, keys, flows))
    except OSError:
        path.unlink(missing_ok=True)
        raise


class Left(NamedTuple):
    """What an agent has left: ``keys`` and ``flows`` as `write` takes them."""

    keys: bytes = b""
    flows: bytes = b""
    dropped: str = ""
    """why the flows of a file are not taken over; "": they are, or there is no file"""


def take(path: Path) -> Left:
    """Read the file and remove it. Nothing is taken over of one that does not fit."""
    try:
        data = path.read_bytes()
        path.unlink()
    except FileNotFoundError:
        return Left()
    except OSError as error:
        return Left(dropped=f"it cannot be read: {error.strerror}")
    if len(data) < _HEAD.size:
        return Left(dropped="it is not whole")
    version, key_size, flow_size, count, written_ns, boot_id = _HEAD.unpack_from(data)
    ours = layout.CONSTANTS["FQ_LAYOUT_VERSION"]
    middle = _HEAD.size + count * _KEY
    if (version, key_size, flow_size) != (ours, _KEY, _FLOW):
        return Left(dropped=f"it has layout {version} of the maps, and this agent has {ours}")
    if len(data) != middle + count * _FLOW:
        return Left(dropped="it is not whole")
    if boot_id != _boot_id():
        return Left(dropped="the machine has booted since")
    if not 0 <= _now_ns() - written_ns <= _MAX_AGE_NS:
        return Left(dropped=f"it is not of the last {_MAX_AGE_NS // 10**9} s")
    return Left(data[_HEAD.size : middle], data[middle:])
