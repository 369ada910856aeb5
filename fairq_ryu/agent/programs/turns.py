"""The turns program: hands SYNs and SYN-ACKs to the agent while a port has no room for more flows, and sends
them when their turn has come.

Ports are interface indices here, or the ids of far queues (:mod:`fairq_ryu.agent.far_ports`), and times are
CLOCK_MONOTONIC nanoseconds, as the program counts them. The key of a packet has the direction of the data
that waits with it: with a far queue, that is the other one.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import socket
from collections.abc import Callable
from ctypes import c_uint32
from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.far_ports import port_index
from fairq_ryu.agent.frame_socket import FrameSocket
from fairq_ryu.agent.libbpf import BpfError, BpfObject, in_short
from fairq_ryu.agent.programs import backlog
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.program import TURN_PRIORITY, FilterProgram, on_the_wire
from fairq_ryu.agent.programs.window import WindowProgram
from fairq_ryu.agent.ringbuf import RingBuffer
from fairq_ryu.agent.tc import TcFilter
from fairq_ryu.agent.turn_queue import HeldPacket
from fairq_ryu.agent.turn_room import Room, frame_of, half_open, still_expected
from fairq_ryu.agent.turns import Closing, Opening
from fairq_ryu.errors import UserError
from fairq_ryu.packet.checksum import completed
from fairq_ryu.packet.parse import parse
from fairq_ryu.packet.tcp_build import Addressing, addressing

log = logging.getLogger(__name__)
ALIVE_NS = 200_000_000
"""For this long after :meth:`TurnProgram.renew` the program holds packets."""
_ZERO = c_uint32(0)
_MARK = layout.CONSTANTS["FQ_TURN_MARK"]
_CLOSED_MARK = layout.CONSTANTS["FQ_TURN_CLOSED"]
_SHIFT = layout.CONSTANTS["FQ_TURN_SHIFT"]
_DEFAULT_SEGMENT = 1460
_FLOOR = layout.CONSTANTS["FQ_LAW_FLOOR"]


def mark_of(waited_ns: int, closed: bool = False) -> int:
    """The mark of a packet that has waited: it leaves, and its wait is not part of a round-trip time.
    ``closed``: no first window of its sender is expected.
    """
    return (_CLOSED_MARK if closed else _MARK) << _SHIFT | min(max(waited_ns // 1000, 0), (1 << _SHIFT) - 1)


def _of_acks(key: bytes) -> Any:
    """The key of the other direction."""
    acks = layout.fq_flow_key.from_buffer_copy(key)
    acks.dir ^= 1
    return acks


def _acks_of(key: bytes, frame: bytes) -> Addressing | None:
    """The ACKs of the data that waits with a packet; None: it cannot be read."""
    data = layout.fq_flow_key.from_buffer_copy(key)
    read = parse(frame, data.vlan)
    known = None if read is None else addressing(read)
    if known is None:
        return None
    return known.reversed if flow_key(known.key, directed=True).dir == data.dir else known


class TurnProgram(FilterProgram):
    """``turns.bpf.o`` at tc egress of the ports whose law has turns. It is loaded when the first of them
    asks: agents whose ports have no turns neither need it nor have its costs.

    Implements :class:`fairq_ryu.agent.turns.TurnSink`. Bounded: as many ports as the window program has.
    """

    def __init__(self, lib: Any, window: WindowProgram, max_ports: int) -> None:
        """``window``: the loaded program whose maps this one reads."""
        super().__init__(lib)
        self._window, self._max_ports = window, max_ports
        self.filter = TcFilter(lib, TURN_PRIORITY)
        self._frames = FrameSocket()
        self._packets: list[HeldPacket] = []
        self.reason = ""
        """Why this kernel does not run the program; "" if it does, or was not asked."""
        self._refused: set[int] = set()
        self._ids: set[int] = set()  # on which there are turns; several may be of one interface
        self.unsent = 0
        """Packets that could not be sent: their senders retransmit them."""
        self.on_load: Callable[[int], None] | None = None
        """Called when the program is loaded, with a file descriptor: readable when packets wait for
        :meth:`take`.
        """
        self.wake: Callable[[Addressing], Opening] | None = None
        """Sends the window update that starts the sender of a connection; the key is the direction of its
        ACKs. None: no window is closed.
        """

    def load(self) -> None:
        """Nothing: :meth:`start` loads the program."""

    def add_port(self, ifindex: int) -> None:
        """Remove what a dead agent may have left on the port."""
        self.filter.detach(ifindex)

    def remove_port(self, ifindex: int) -> None:
        """Stop on a port, which may have been deleted already."""
        self._refused.discard(ifindex)
        if ifindex not in self._ids:
            return
        self._ids.discard(ifindex)
        if all(port_index(each) != port_index(ifindex) for each in self._ids):
            self._ports.discard(port_index(ifindex))
            self.filter.detach(port_index(ifindex))
        for table in (self._turn_ports, self._turns):
            table.delete(c_uint32(ifindex))

    def close(self) -> None:
        """Detach and free. A second call does nothing."""
        for known in list(self._ids):
            self.remove_port(known)
        super().close()
        self._frames.close()

    def start(self, ifindex: int) -> bool:
        """Start on a port. Returns whether it has turns now; if not, the log says why."""
        if ifindex in self._ids or self.reason:
            return not self.reason
        try:
            if self._object is None:
                self._load()
        except (BpfError, UserError) as error:
            self.reason = str(error)  # it is not loaded again at every renewal of a lease
            log.warning(
                "new connections do not take turns, the kernel does not run the program: %s", in_short(error)
            )
            return False
        try:
            self._attach(ifindex)
        except BpfError as error:
            if ifindex not in self._refused:
                log.warning("new connections do not take turns on interface %d: %s", ifindex, error)
            self._refused.add(ifindex)  # it is tried again at every renewal of a lease
            return False
        self._refused.discard(ifindex)
        return True

    def _load(self) -> None:
        sizes = {"turns": self._max_ports, "turn_ports": self._max_ports}
        shared = self._window.shared_maps | self._window.connection_maps
        loaded = BpfObject(self._lib, layout.BPF_DIR / "turns.bpf.o", sizes, shared)
        try:
            self._turns = loaded.map("turns", c_uint32, layout.fq_turns)
            self._turn_ports = loaded.map("turn_ports", c_uint32, layout.fq_turn_port)
            self._agent = loaded.map("turn_agent", c_uint32, layout.fq_turn_agent)
            self._program = loaded.program_fd("fq_take_turns")
            self._ring = RingBuffer(self._lib, loaded.map("held", c_uint32, layout.fq_held), self._on_held)
        except BaseException:
            loaded.close()
            raise
        self._object = loaded
        self._frames.open()
        if self.on_load is not None:
            self.on_load(self._ring.fd)

    def _attach(self, ifindex: int) -> None:
        key = c_uint32(ifindex)
        try:
            self._turns.set(key, layout.fq_turns())
            self._turn_ports.set(key, layout.fq_turn_port())
            if port_index(ifindex) not in self._ports:
                self.filter.attach(port_index(ifindex), self._program)
        except BaseException:
            for table in (self._turn_ports, self._turns):
                table.delete(key)
            raise
        self._ports.add(port_index(ifindex))
        self._ids.add(ifindex)

    @property
    def ports(self) -> frozenset[int]:
        """The ports on which it runs."""
        return frozenset(self._ids)

    # Packets

    def renew(self, now_ns: int) -> None:
        """The agent lives: the program may hold packets for a while."""
        if self._ports:
            self._agent.set(_ZERO, layout.fq_turn_agent(until_ns=now_ns + ALIVE_NS))

    def pause(self) -> None:
        """The agent ends: the program holds no more packets."""
        if self._ports:
            self._agent.set(_ZERO, layout.fq_turn_agent(until_ns=0))

    def take(self, limit: int) -> list[HeldPacket]:
        """Packets that the program has handed over, at most ``limit``."""
        if self._ring is None:
            return []
        self._ring.read(limit)
        packets, self._packets = self._packets, []
        return packets

    def _on_held(self, address: int, size: int) -> None:
        if size < ctypes.sizeof(layout.fq_held):
            return
        held = layout.fq_held.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(layout.fq_held)))
        frame = on_the_wire(bytes(held.data[: held.captured]), held.vlan_proto, held.vlan_tci)
        key, sender = held.key, bytes(held.key.hi_addr if held.key.dir else held.key.lo_addr)
        own = bytes(key)
        key.dir = 0
        tenant, weight = self._window.tenant_of(held.ifindex, key.family, sender)
        self._packets.append(
            HeldPacket(held.ifindex, own, bytes(key), sender, completed(frame), held.ns, tenant, weight)
        )

    def send(self, port: int, frame: bytes, waited_ns: int, closed: bool = False) -> None:
        try:
            name = socket.if_indextoname(port_index(port))
        except OSError:  # the interface is gone
            self.unsent += 1
            return
        self.unsent += not self._frames.send(name, frame, mark_of(waited_ns, closed))

    def set_waiting(self, port: int, waiting: int) -> None:
        if port in self._ids:
            with contextlib.suppress(BpfError):
                self._turn_ports.set(c_uint32(port), layout.fq_turn_port(waiting=waiting))

    def close_window(self, key: bytes, frame: bytes, until_ns: int) -> Closing:
        """Close the window of the sender of a packet until then, if it is the first one of its direction."""
        own, read = layout.fq_flow_key.from_buffer_copy(key), parse(frame)
        if self.wake is None or read is None or read.tcp is None:
            return Closing.NEVER
        own.dir = flow_key(read.tcp.key, directed=True).dir
        if self._window.has_begun(own, read.tcp.ack_number if read.tcp.ack else None):
            return Closing.NEVER
        return self._window.flow_rules.close(_of_acks(key), until_ns)

    def keep_closed(self, key: bytes, until_ns: int) -> bool:
        return self._window.flow_rules.keep_closed(_of_acks(key), until_ns)

    def open_window(self, key: bytes, frame: bytes) -> Opening:
        with contextlib.suppress(BpfError):
            self._window.flow_rules.open(_of_acks(key))
        known = _acks_of(key, frame)
        return Opening.GONE if known is None or self.wake is None else self.wake(known)

    def is_open(self, key: bytes) -> bool:
        return self._window.is_decided(_of_acks(key))

    def whole_floor(self, port: int) -> int:
        slot = c_uint32(self._window.slots[port]) if port in self._window.slots else None
        with contextlib.suppress(BpfError):
            law = None if slot is None else self._window.port_laws.get(slot)
            state = None if slot is None else self._window.law_states.get(slot)
            if law is not None and state is not None and law.law.flags & _FLOOR:
                return int(law.law.floor_segments) * frame_of(state.segment or _DEFAULT_SEGMENT)
        return 0

    def hold_ns(self, port: int) -> int:
        with contextlib.suppress(BpfError):
            turns = self._turns.get(c_uint32(port))
            return 0 if turns is None else int(turns.hold_ns)
        return 0

    def room(self, port: int, now_ns: int) -> Room | None:
        with contextlib.suppress(BpfError):
            return self._room(port, now_ns)
        return None

    def _room(self, port: int, now_ns: int) -> Room | None:
        window, key = self._window, c_uint32(port)
        if port not in window.slots:
            return None
        slot = c_uint32(window.slots[port])
        law, state = window.port_laws.get(slot), window.law_states.get(slot)
        queue, check = window.queues.get(key), window.queue_checks.get(key)
        turns = self._turns.get(key)
        if law is None or state is None or queue is None or check is None or turns is None:
            return None
        if law.expires_ns <= now_ns:
            return None
        counts = window.port_state(port)
        length = backlog.believed(queue, check, now_ns)[0]
        if port != port_index(port):
            length = min(length, state.queue)  # as has_room() of the program
        return Room(
            limit=law.law.limit,
            backlog=length,
            flows=layout.counted_flows(counts.sharing, now_ns, window.bucket_ns),
            frame=frame_of(state.segment or _DEFAULT_SEGMENT),
            floor=turns.floor,
            first=turns.first,
            expected=still_expected(
                turns.expected, turns.earlier, law.law.limit, now_ns - turns.expected_ns, turns.hold_ns
            ),
            half_open=half_open(turns.begun, turns.begun_ns, state.proven - turns.proven, now_ns),
            allowance=law.law.syn_allowance,
        )

    def handed_over(self, ifindex: int) -> tuple[int, int]:
        """Packets of a port that the program has handed to the agent, and those that left because the ring
        buffer had no room for them, or too many handshakes were incomplete.
        """
        found = self._turns.get(c_uint32(ifindex)) if ifindex in self._ids else None
        return (found.held, found.full) if found is not None else (0, 0)
