"""The eBPF programs and maps of a host. Its bridges share them, so that a flow is governed whose two
directions leave by different bridges.

A further program is one source in ../bpf, one class beside these, and one entry in the list of
:meth:`HostPrograms.load`, with a setting of its own if it is optional.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Protocol

from fairq_ryu.agent import layout, tcx
from fairq_ryu.agent.egress_chain import programs_before
from fairq_ryu.agent.far_ports import port_index
from fairq_ryu.agent.flow_changes import FlowChanges
from fairq_ryu.agent.frame_socket import FrameSocket
from fairq_ryu.agent.libbpf import BpfError, load_library, remember_objects
from fairq_ryu.agent.programs.copies import SegmentCopies
from fairq_ryu.agent.programs.drops import DropProgram
from fairq_ryu.agent.programs.far import FarProgram
from fairq_ryu.agent.programs.flow_sweep import FlowSweep
from fairq_ryu.agent.programs.port_laws import PortLaws
from fairq_ryu.agent.programs.program import Program, ProgramLimits
from fairq_ryu.agent.programs.queue import QueueProgram
from fairq_ryu.agent.programs.queue_law import QueueLawProgram
from fairq_ryu.agent.programs.turns import TurnProgram
from fairq_ryu.agent.programs.window import WindowProgram
from fairq_ryu.agent.tc import EGRESS, NoPlaceError
from fairq_ryu.agent.told_scale import NOT_TOLD, ToldScales
from fairq_ryu.agent.turns import Turns
from fairq_ryu.channel.description import Capability
from fairq_ryu.errors import UserError
from fairq_ryu.packet.tcp_options import MAX_WSCALE

_BTF = "/sys/kernel/btf/vmlinux"


class BridgeOfHost(Protocol):
    """What the programs need of a bridge (:class:`fairq_ryu.agent.programs.bridge.BridgePrograms`)."""

    changes: FlowChanges
    """The changes of the flows that leave by its ports."""

    def numbers(self) -> dict[int, int]:
        """The OpenFlow numbers of its ports, by interface index and by the ids of transmit queues."""

    def stop_all_turns(self) -> None:
        """New connections of its ports take no turns any more."""

    def close(self) -> None:
        """Detach from its ports."""


class HostPrograms:
    """The programs of a host and where they run, by interface index. :meth:`close` undoes everything."""

    def __init__(self, limits: ProgramLimits, told: ToldScales = NOT_TOLD) -> None:
        """``told``: which ports believe the scale that segments tell. Raises :class:`UserError` where the
        machine cannot run eBPF programs.
        """
        if not os.path.exists(_BTF):
            raise UserError(
                f"the kernel has no type information ({_BTF})",
                "use a kernel built with CONFIG_DEBUG_INFO_BTF=y",
            )
        self.limits, self.told = limits, told
        self.bridges: list[BridgeOfHost] = []
        self.frames = FrameSocket()
        self._lib = load_library()
        self._programs: list[Program] = []
        self._taken: set[int] = set()
        self.flows = self.evicted = 0
        """Flows in the map after the last sweep, and those that it has evicted because it was full."""

    def load(self, first_ports: Iterable[int], kept: Mapping[str, int] | None = None) -> int:
        """Load the programs. The flows that a dead agent's program on one of the interfaces ``first_ports``
        still knows are taken over; returns their number. ``kept``: as for :class:`WindowProgram`.

        Raises :class:`UserError` or :class:`BpfError`; then nothing is left.
        """
        limits = self.limits
        remember_objects(layout.BPF_DIR.glob("*.bpf.o"))
        self.window = WindowProgram(self._lib, limits, first_ports, kept)
        self.copies = SegmentCopies(self._lib, self.window)
        self.queues = QueueProgram(self._lib, limits.ports, self.window, limits.bridges)
        self.drops = DropProgram(self._lib, self.queues)
        self.laws = PortLaws(self.window, self.queues)
        self.queue_laws = QueueLawProgram(self._lib, self.window, self.queues, self.drops, limits.ports)
        self.turn_program = TurnProgram(self._lib, self.window, limits.ports)
        self.turns = Turns(self.turn_program)
        self.far = FarProgram(self._lib, self.window, self.queues, limits.ports)
        try:
            # In the order in which they need each other.
            programs: tuple[Program, ...] = (
                *(self.window, self.copies, self.queues, self.drops),
                *(self.queue_laws, self.turn_program, self.far),
            )
            for program in programs:
                self._programs.append(program)
                program.load()
            self.frames.open()
        except BaseException:
            self.close()
            raise
        return self.window.inherited

    def close(self) -> None:
        """Detach from every port and free programs and maps. A second call does nothing."""
        try:
            for bridge in self.bridges:
                # While all ports are there: connections with closed windows get window updates by others.
                bridge.stop_all_turns()
        finally:
            for bridge in self.bridges:
                bridge.close()
            for program in reversed(self._programs):
                program.close()
            self._programs.clear()
            self.frames.close()

    @property
    def capabilities(self) -> Capability:
        """What this kernel can do that others may lack, and whether window scales are unified."""
        found = Capability(0)
        if self.drops.available:
            found |= Capability.DROP_REPORTS
        if tcx.is_available(self._lib):
            found |= Capability.INGRESS_QDISCS
        if self.limits.unify_scale < MAX_WSCALE:
            found |= Capability.UNIFIES_SCALES
        return found

    # Where they run

    def add_port(self, ifindex: int, bridge: int, observed: bool) -> None:
        """Start on a port of the bridge with this number. Raises :class:`BpfError`; then nothing is left on
        the port.
        """
        self._take(ifindex)
        started: list[Program] = []
        self.window.set_bridge(ifindex, bridge)
        self.window.observe(ifindex, observed)
        self.queue_laws.observe(ifindex, observed)
        try:
            for program in self._programs:
                program.add_port(ifindex)
                started.append(program)
        except BaseException:
            for program in reversed(started):
                program.remove_port(ifindex)
            self._taken.discard(ifindex)
            raise

    def remove_port(self, ifindex: int) -> None:
        """Stop on a port, which may have been deleted already."""
        for program in reversed(self._programs):
            program.remove_port(ifindex)
        self.laws.remove(ifindex)
        self._taken.discard(ifindex)

    def add_far_queue(self, known: int, bridge: int, observed: bool) -> None:
        """Keep the far queue with this id, of a port on which the programs run. Raises :class:`BpfError`;
        then there is none.
        """
        port = port_index(known)
        # As with ports: the second step of a move may be seen first.
        if known in self.window.slots:
            raise BpfError("it is still the far queue of another bridge")
        if port not in self._taken:
            raise BpfError("its port is not watched")
        if self.window.bridge_of(port) != bridge:
            raise BpfError("its port is still one of another bridge")
        self.far.start(known, bridge, observed)

    def remove_far_queue(self, known: int) -> None:
        """Keep it no longer. Its port may have been deleted already."""
        self.laws.remove(known)
        self.far.stop(known)

    def add_device(self, ifindex: int, bridge: int, point: int = EGRESS) -> None:
        """Lower the windows of ACKs that leave by a device. Raises :class:`BpfError`; then nothing is left on
        the device.
        """
        self._take(ifindex)
        self.window.set_bridge(ifindex, bridge)
        try:
            self.window.add_port(ifindex, point)
        except BaseException:
            self._taken.discard(ifindex)
            raise

    def remove_device(self, ifindex: int) -> None:
        """Stop on a device, which may have been deleted already."""
        self.window.remove_port(ifindex)
        self._taken.discard(ifindex)

    def _take(self, ifindex: int) -> None:
        """An interface moves from a bridge to another in two steps, and the second may be seen first."""
        if ifindex in self._taken:
            raise BpfError(f"interface {ifindex} is still a port of another bridge")
        self._taken.add(ifindex)

    # Filters of others at the same places

    @property
    def filtered(self) -> set[int]:
        """The interfaces of ports and devices."""
        return self._taken

    def filter_place(self, ifindex: int) -> str:
        """Where the window program is at egress of a port: ``clsact``, or ``tcx``."""
        return "tcx" if self.window.filter.tcx_program(ifindex) else "clsact"

    def at_tcx(self, ifindex: int) -> tuple[int, ...]:
        """The ids of the programs at tcx of the egress of an interface, in the order in which they run."""
        return tuple(tcx.programs(self._lib, ifindex))

    def restore_filters(self, ifindex: int) -> bool:
        """Attach the filters again that somebody has removed from a port or device. Returns whether there
        were any. Raises :class:`BpfError`.
        """
        # It makes the clsact qdisc. Without one, the others are off: they have no other place.
        restored = self.window.filter.restore(ifindex)
        for restore in (self.turn_program.filter.restore, self.queue_laws.filter.restore, self.drops.restore):
            with contextlib.suppress(NoPlaceError):
                restored |= restore(ifindex)
        return restored | self.far.filter.restore(ifindex)

    def programs_before(self, ifindex: int) -> tuple[str, ...]:
        """The programs of others that a packet meets at egress before those of the agent."""
        if not self.window.filter.is_at_egress(ifindex):
            return ()
        return programs_before(self._lib, ifindex, self.window.filter.tcx_program(ifindex))

    def set_suspects(self, count: int) -> None:
        """As :meth:`WindowProgram.set_suspects`."""
        self.window.set_suspects(count)

    def seen_ns(self, ifindex: int) -> int:
        """As :meth:`WindowProgram.seen_ns`."""
        return self.window.seen_ns(ifindex)

    # What concerns all bridges

    def watch_kernel_drops(self) -> None:
        """Attach the tracepoint of drops while a port of any bridge reports them, and detach it otherwise.
        Raises :class:`BpfError`.
        """
        self.drops.watch_kernel(any(each.drops for each in self.queues.thresholds.values()))

    def begin_sweep(self, idle_ns: int, closed_ns: int) -> FlowSweep:
        """Begin to forget flows silent for ``idle_ns``, or closed and silent for ``closed_ns``: its parts are
        to be read and processed, and then :meth:`end_sweep` called.
        """
        logs = [(bridge.changes, bridge.numbers()) for bridge in self.bridges]
        return self.window.begin_sweep(idle_ns, closed_ns, logs)

    def end_sweep(self, sweep: FlowSweep) -> None:
        """All parts were processed."""
        self.flows, self.evicted = self.window.end_sweep(sweep)

    def sweep(self, idle_ns: int, closed_ns: int) -> tuple[int, int]:
        """A whole sweep at once; see :meth:`begin_sweep`. Returns :attr:`flows` and :attr:`evicted`."""
        sweep = self.begin_sweep(idle_ns, closed_ns)
        while (part := sweep.read()) is not None:
            sweep.process(part)
        self.end_sweep(sweep)
        return self.flows, self.evicted
