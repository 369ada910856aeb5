"""The ports and devices of one bridge, and the eBPF programs that run on each of them.

A further program is one source in ../bpf, one class beside these, and one entry in the list of
:meth:`BridgePorts.load`, with a setting of its own if it is optional.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from fairq_ryu.agent.frame_socket import FrameSocket
from fairq_ryu.agent.libbpf import load_library
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.copies import SegmentCopies
from fairq_ryu.agent.programs.drops import DropProgram
from fairq_ryu.agent.programs.port_laws import PortLaws
from fairq_ryu.agent.programs.program import Program, ProgramLimits
from fairq_ryu.agent.programs.queue import QueueProgram
from fairq_ryu.agent.programs.queue_law import QueueLawProgram
from fairq_ryu.agent.programs.turns import TurnProgram
from fairq_ryu.agent.programs.window import WindowProgram
from fairq_ryu.agent.tc import EGRESS, INGRESS
from fairq_ryu.agent.turns import Turns
from fairq_ryu.agent.watched_ports import WindowDevice
from fairq_ryu.errors import UserError

_BTF = "/sys/kernel/btf/vmlinux"


class BridgePorts:
    """The programs and maps of one bridge, and where they run: ports are OpenFlow numbers here, and interface
    indices in the programs. :meth:`close` undoes everything.
    """

    def __init__(self, limits: ProgramLimits) -> None:
        """Raises :class:`UserError` where the machine cannot run eBPF programs."""
        if not os.path.exists(_BTF):
            raise UserError(
                f"the kernel has no type information ({_BTF})",
                "use a kernel built with CONFIG_DEBUG_INFO_BTF=y",
            )
        self.limits = limits
        self._lib = load_library()
        self._ports: dict[int, BridgePort] = {}
        self._devices: dict[int, WindowDevice] = {}
        self._observed: set[int] = set()  # OpenFlow numbers, also of ports that have gone
        self._programs: list[Program] = []
        self._frames = FrameSocket()
        self._untagged: dict[int, int] = {}

    def load(self, first_ports: list[BridgePort], kept: Mapping[str, int] | None = None) -> int:
        """Load the programs. The flows that a dead agent's program on one of ``first_ports`` still knows are
        taken over; returns their number. ``kept``: as for :class:`WindowProgram`.

        Raises :class:`UserError` or :class:`BpfError`; then nothing is left.
        """
        self.window = WindowProgram(self._lib, self.limits, [port.ifindex for port in first_ports], kept)
        self.copies = SegmentCopies(self._lib, self.window, self.limits)
        self.queues = QueueProgram(self._lib, self.limits.ports, self.window)
        self.drops = DropProgram(self._lib, self.queues)
        self.laws = PortLaws(self.window, self.queues)
        self.queue_laws = QueueLawProgram(self._lib, self.window, self.queues, self.drops, self.limits.ports)
        self.turn_program = TurnProgram(self._lib, self.window, self.limits.ports)
        self.turns = Turns(self.turn_program)
        try:
            # In the order in which they need each other.
            programs = (self.window, self.copies, self.queues, self.drops, self.queue_laws, self.turn_program)
            for program in programs:
                self._programs.append(program)
                program.load()
        except BaseException:
            self.close()
            raise
        return self.window.inherited

    def close(self) -> None:
        """Detach from every port and free programs and maps. A second call does nothing."""
        for ofport in list(self._ports):
            self.remove_port(ofport)
        for ifindex in list(self._devices):
            self.remove_device(ifindex)
        for program in reversed(self._programs):
            program.close()
        self._programs.clear()
        self._frames.close()

    # Where they run

    @property
    def ports(self) -> dict[int, BridgePort]:
        """The ports that the programs run on, by OpenFlow number."""
        return self._ports

    def has_port(self, port: int) -> bool:
        """Whether the programs run on this port."""
        return port in self._ports

    def add_port(self, port: BridgePort) -> None:
        """Start on a port. Raises :class:`BpfError`; then nothing is left on the port."""
        started: list[Program] = []
        self.window.observe(port.ifindex, port.ofport in self._observed)
        self.queue_laws.observe(port.ifindex, port.ofport in self._observed)
        try:
            for program in self._programs:
                program.add_port(port.ifindex)
                started.append(program)
        except BaseException:
            for program in reversed(started):
                program.remove_port(port.ifindex)
            raise
        self._ports[port.ofport] = port

    def update_port(self, port: BridgePort) -> None:
        """Store a port whose link state, speed or name has changed."""
        self._ports[port.ofport] = port

    def set_vlans(self, untagged: Mapping[int, int]) -> None:
        """The VLANs of frames that have no tag at a port, by OpenFlow number; of all other ports 0."""
        self._untagged = dict(untagged)
        for ofport, port in self._ports.items():
            self.window.set_vlan(port.ifindex, self._untagged.get(ofport, 0))
        for device in self._devices.values():
            vlans = {self._untagged.get(ofport, 0) for ofport in device.ofports}
            self.window.set_vlan(device.ifindex, vlans.pop() if len(vlans) == 1 else 0)

    def untagged_vlan(self, port: int) -> int:
        """The VLAN of frames that have no tag at a port; 0: none."""
        return self._untagged.get(port, 0)

    def remove_port(self, ofport: int) -> None:
        """Stop on a port, which may have been deleted already."""
        port = self._ports.pop(ofport)
        for program in reversed(self._programs):
            program.remove_port(port.ifindex)
        self.laws.remove(port.ifindex)

    @property
    def devices(self) -> dict[int, WindowDevice]:
        """The devices on which only the window program runs, by interface index."""
        return self._devices

    def add_device(self, device: WindowDevice) -> None:
        """Lower the windows of ACKs that leave by a device. Raises :class:`BpfError`; then nothing is left on
        the device.
        """
        self.window.add_port(device.ifindex, INGRESS if device.delivers else EGRESS)
        self._devices[device.ifindex] = device

    def update_device(self, device: WindowDevice) -> None:
        """Store a device that other ports have now."""
        self._devices[device.ifindex] = device

    def remove_device(self, ifindex: int) -> None:
        """Stop on a device, which may have been deleted already."""
        del self._devices[ifindex]
        self.window.remove_port(ifindex)

    def _ofports(self) -> dict[int, int]:
        """OpenFlow numbers, by interface index and by the ids of transmit queues."""
        return {
            known: ofport
            for ofport, port in self._ports.items()
            for known in {port.ifindex, *self.window.ids(port.ifindex)}
        }
