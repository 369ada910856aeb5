"""The ports and devices of one bridge, on which the eBPF programs of the host run."""

from __future__ import annotations

from collections.abc import Mapping

from fairq_ryu.agent.far_ports import far_limits, known_line, stands_for
from fairq_ryu.agent.found_rate import FoundRate, Seen
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.tc import EGRESS, INGRESS
from fairq_ryu.agent.watched_ports import WindowDevice


class BridgePorts:
    """Where the programs run on one bridge: ports are OpenFlow numbers here, and interface indices in the
    programs. :meth:`close` undoes everything.
    """

    def __init__(self, host: HostPrograms) -> None:
        """``host``: the loaded programs."""
        self.host, self.limits = host, host.limits
        self.window, self.copies, self.queues, self.drops = host.window, host.copies, host.queues, host.drops
        self.laws, self.queue_laws = host.laws, host.queue_laws
        self.turn_program, self.turns = host.turn_program, host.turns
        self.number = len(host.bridges)
        """Of the bridge, among those of the host."""
        self._ports: dict[int, BridgePort] = {}
        self._devices: dict[int, WindowDevice] = {}
        self._observed: set[int] = set()  # OpenFlow numbers, also of ports that have gone
        self._untagged: dict[int, int] = {}
        self._found_rates: dict[
            int, tuple[FoundRate, int]
        ] = {}  # by number; with lost segments at the last look

    def close(self) -> None:
        """Detach from every port. A second call does nothing."""
        for ofport in reversed(list(self._ports)):
            self.remove_port(ofport)
        for ifindex in list(self._devices):
            self.remove_device(ifindex)

    @property
    def ports(self) -> dict[int, BridgePort]:
        """The ports that the programs run on, by OpenFlow number."""
        return self._ports

    def has_port(self, port: int) -> bool:
        """Whether the programs run on this port."""
        return port in self._ports

    def add_port(self, port: BridgePort) -> None:
        """Start on a port. Raises :class:`BpfError`; then nothing is left on the port."""
        observed = port.ofport in self._observed
        if port.far is not None:
            self.host.add_far_queue(port.ifindex, self.number, observed)
            try:
                self._set_far_limits(port)
            except BaseException:
                self.host.remove_far_queue(port.ifindex)
                raise
        else:
            self.window.set_told(port.ifindex, self.host.told.of([port.name]))
            self.host.add_port(port.ifindex, self.number, observed)
        self._ports[port.ofport] = port

    def update_port(self, port: BridgePort) -> None:
        """Store a port whose link state, speed or name has changed."""
        if port.far is not None:
            self._set_far_limits(port)
        self._ports[port.ofport] = port

    def _set_far_limits(self, port: BridgePort) -> None:
        assert port.far is not None
        found = self.line_of(port)
        buffer = stands_for(port, found)
        self.host.far.set_limits(port.ifindex, far_limits(port, found), found, buffer)

    def line_of(self, port: BridgePort) -> int:
        """The rate of the line by which the data of a far queue arrives, bytes per second: as it is said, or
        as it was found; 0: not known.
        """
        found = self._found_rates.get(port.ofport)
        return known_line(port) or (found[0].rate if found else 0)

    def find_rates(self, now: float) -> None:
        """Find the rates of lines that nobody says; to be called about once a second. Raises
        :class:`BpfError`.
        """
        for port in self._ports.values():
            if port.far is None:
                continue
            lost = int(self.window.port_state(port.ifindex).lost_above)
            rate, lost_before = self._found_rates.get(port.ofport, (FoundRate(), lost))
            if known_line(port):
                # What is lost meanwhile says nothing about the time when nobody knows the rate.
                self._found_rates[port.ofport] = rate, lost
                continue
            hidden = self.host.far.hidden(port.ifindex)
            seen = Seen(
                served=int(hidden.served) if hidden.line == rate.rate else 0,
                peak=max(int(hidden.peak), int(hidden.peak_before)),
                lost=lost - lost_before,
                at_most=bool(hidden.line and hidden.rate >= hidden.line - hidden.line // 128),
            )
            self._found_rates[port.ofport] = rate, lost
            if rate.look(seen, now):
                self._set_far_limits(port)

    def set_vlans(self, untagged: Mapping[int, int]) -> None:
        """The VLANs of frames that have no tag at a port, by OpenFlow number; of all other ports 0."""
        self._untagged = dict(untagged)
        for ofport, port in self._ports.items():
            self.window.set_vlan(port.ifindex, self._untagged.get(ofport, 0))
        for device in self._devices.values():
            vlans = {self._untagged.get(ofport, 0) for ofport in device.ofports}
            self.window.set_vlan(device.ifindex, vlans.pop() if len(vlans) == 1 else 0)

    def remove_port(self, ofport: int) -> None:
        """Stop on a port, which may have been deleted already."""
        port = self._ports.pop(ofport)
        self._found_rates.pop(ofport, None)
        if port.far is not None:
            self.host.remove_far_queue(port.ifindex)
        else:
            self.host.remove_port(port.ifindex)

    @property
    def devices(self) -> dict[int, WindowDevice]:
        """The devices on which only the window program runs, by interface index."""
        return self._devices

    def add_device(self, device: WindowDevice) -> None:
        """Lower the windows of ACKs that leave by a device. Raises :class:`BpfError`; then nothing is left on
        the device.
        """
        self.window.set_told(device.ifindex, self.host.told.of(device.names))
        self.host.add_device(device.ifindex, self.number, INGRESS if device.delivers else EGRESS)
        self._devices[device.ifindex] = device

    def update_device(self, device: WindowDevice) -> None:
        """Store a device that other ports have now."""
        self._devices[device.ifindex] = device

    def remove_device(self, ifindex: int) -> None:
        """Stop on a device, which may have been deleted already."""
        del self._devices[ifindex]
        self.host.remove_device(ifindex)

    def filter_place(self, ifindex: int) -> str:
        """As :meth:`HostPrograms.filter_place`."""
        return self.host.filter_place(ifindex)

    def numbers(self) -> dict[int, int]:
        """OpenFlow numbers, by interface index and by the ids of transmit queues."""
        return {
            known: ofport
            for ofport, port in self._ports.items()
            for known in {port.ifindex, *self.window.ids(port.ifindex)}
        }
