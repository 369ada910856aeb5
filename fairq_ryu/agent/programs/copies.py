"""Copies of SYN, FIN and RST: the rules of the window program for them, and what it has copied.

The window program decides which segments are copied (``lib/segment_copy.h``). Ports are interface indices
here.
"""

from __future__ import annotations

import ctypes
from ctypes import c_uint32
from typing import Any, NamedTuple

from fairq_ryu.agent import layout
from fairq_ryu.agent.programs.program import LoadedProgram, on_the_wire
from fairq_ryu.agent.programs.window import WindowProgram
from fairq_ryu.agent.ringbuf import RingBuffer
from fairq_ryu.channel.segment_copies import ETH_TYPES, SegmentMatch
from fairq_ryu.packet.headers import FIN, RST, SYN

_C = layout.CONSTANTS
_NUMBERS = {SYN: _C["FQ_COPY_SYN"], FIN: _C["FQ_COPY_FIN"], RST: _C["FQ_COPY_RST"]}
RULES = {
    SegmentMatch(eth_type, flag): number + family * _C["FQ_COPY_FLAGS"]
    for family, eth_type in enumerate(ETH_TYPES)
    for flag, number in _NUMBERS.items()
}
"""The number of each rule of a bridge in the maps."""
_MATCHES = {number: match for match, number in RULES.items()}
_NS = 1_000_000_000


class CopyRecord(NamedTuple):
    """A copied segment: the rule that it matched, the port by which it leaves, its beginning, and the length
    of the whole frame in bytes.
    """

    rule: SegmentMatch
    ifindex: int
    frame: bytes
    length: int


BRIDGE_RATE, PORT_RATE = 10_000, 5_000
"""Segments of a bridge and of a port that are copied in a second. A controller applies some thousand; more
would only wait there. A flood of SYNs through one port leaves the other half to the others.
"""


def _index(rule: SegmentMatch, bridge: int) -> c_uint32:
    """The place of a rule of a bridge in the maps."""
    return c_uint32(bridge * _C["FQ_COPY_RULES"] + RULES[rule])


def token_bucket(rate: int) -> Any:
    """An ``fq_copy_limit`` of ``rate`` copies a second (at least 1), and as many at once."""
    return layout.fq_copy_limit(gap_ns=_NS // rate, burst_ns=_NS)


class SegmentCopies(LoadedProgram):
    """The part of the window program that copies segments. Its maps are those of that program; without a rule
    whose lease lives it copies nothing.
    """

    def __init__(self, lib: Any, window: WindowProgram) -> None:
        """``window`` is loaded before this."""
        super().__init__(lib)
        self._window = window
        self.port_limit = token_bucket(PORT_RATE)
        self.bridge_limit = token_bucket(BRIDGE_RATE)
        self._records: list[CopyRecord] = []
        self._installed: set[int] = set()

    def load(self) -> None:
        """Open the ring buffer. Raises :class:`BpfError`."""
        self._ring = RingBuffer(self._lib, self._window.copies, self._on_copy)

    def add_port(self, ifindex: int) -> None:
        """Nothing: the window program runs on the port."""

    def remove_port(self, ifindex: int) -> None:
        """Likewise."""

    # Rules

    def install(self, rule: SegmentMatch, expires_ns: int, bridge: int = 0) -> None:
        """Copy these segments of a bridge until then (CLOCK_MONOTONIC). Raises :class:`BpfError`."""
        entry = layout.fq_copy_rule(expires_ns=expires_ns, port=self.port_limit, bridge=self.bridge_limit)
        self._window.copy_rules.set(_index(rule, bridge), entry)
        self._installed.add(_index(rule, bridge).value)
        self._window.set_copy_rules(len(self._installed))

    def remove(self, rule: SegmentMatch, bridge: int = 0) -> None:
        """Copy these segments no longer."""
        self._window.copy_rules.set(_index(rule, bridge), layout.fq_copy_rule())
        self._installed.discard(_index(rule, bridge).value)
        self._window.set_copy_rules(len(self._installed))

    def counts(self, rule: SegmentMatch, bridge: int = 0) -> tuple[int, int]:
        """The number of segments that the rule matched, and of those it copied."""
        count = self._window.copy_counts.get(_index(rule, bridge))
        return (count.matched, count.copied) if count else (0, 0)

    def reset_counts(self, rule: SegmentMatch, bridge: int = 0) -> None:
        """Start the counts of a rule at 0."""
        self._window.copy_counts.set(_index(rule, bridge), layout.fq_copy_count())

    # Copies

    @property
    def fd(self) -> int:
        """Readable when copies wait: then call :meth:`take`."""
        assert self._ring is not None
        return self._ring.fd

    def take(self, limit: int) -> list[CopyRecord]:
        """Copies that have arrived, at most ``limit``, in the order in which the segments left."""
        if self._ring is None:
            return []
        self._ring.read(limit)
        records, self._records = self._records, []
        return records

    def _on_copy(self, address: int, size: int) -> None:
        if size < ctypes.sizeof(layout.fq_copy):
            return
        head = ctypes.string_at(address, layout.fq_copy.data.offset)
        copy = layout.fq_copy.from_buffer_copy(head.ljust(ctypes.sizeof(layout.fq_copy), b"\0"))
        captured = ctypes.string_at(address + layout.fq_copy.data.offset, copy.captured)
        frame = on_the_wire(captured, copy.vlan_proto, copy.vlan_tci)
        length = copy.len - len(captured) + len(frame)
        self._records.append(CopyRecord(_MATCHES[copy.rule], copy.ifindex, frame, length))

    def not_copied(self, bridge: int = 0) -> tuple[int, int]:
        """Segments of a bridge that were not copied: beyond a rate, and because the ring buffer had no
        room.
        """
        state = self._window.copy_state.get(c_uint32(bridge)) if self._ring is not None else None
        return (state.suppressed, state.lost) if state else (0, 0)
