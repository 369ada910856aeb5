"""The ports of the bridge as they are added, changed and removed: programs on each, PORT_STATUS to
controllers.

OVSDB -> BridgeView -> BridgePorts.update -> BridgePrograms.add_port ... -> PORT_STATUS
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace

from fairq_ryu.agent.far_ports import far_id, with_far_queues
from fairq_ryu.agent.far_table import FarTable
from fairq_ryu.agent.law_objects import refused
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.openflow_server import OpenFlowServer
from fairq_ryu.agent.ovsdb import BridgePort, BridgeView
from fairq_ryu.agent.peers import Peer, unfinished
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.qdisc import read_backlogs, read_queue_limits
from fairq_ryu.agent.tc import UNPOLICED
from fairq_ryu.agent.watched_ports import WindowDevice, listed
from fairq_ryu.channel.far_queues import ERROR_FAR_QUEUE, FarQueueState, RateLease, Told
from fairq_ryu.channel.oxm import agent_dpid
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FAR
from fairq_ryu.model import dpid_text

log = logging.getLogger(__name__)
# Far ends of ports that leave checksums unfinished are checked again after this time, seconds.
_PEERS_AGAIN = 60.0


class BridgePorts:
    """The ports of one bridge."""

    def __init__(
        self,
        bridge: str,
        view: BridgeView,
        programs: BridgePrograms,
        server: OpenFlowServer,
        reconnect: Callable[[], None],
        far: FarTable | None = None,
    ) -> None:
        """``view`` is the first one; :meth:`update` starts on its ports. ``reconnect`` is called when the
        bridge has a new datapath id. ``far``: the far queues that its ports should have.
        """
        self._bridge, self._view = bridge, view
        self._programs, self._server, self._reconnect = programs, server, reconnect
        self._far = far or FarTable()
        self.deleted = False
        """Whether the bridge does not exist now."""
        self._failed: dict[int, tuple[str, str]] = {}  # name and reason, by interface index
        self._unpoliced: frozenset[int] = frozenset()
        self._known_unwatched: frozenset[tuple[str, str]] = frozenset()
        self._unfinished: dict[int, Peer] = {}
        self._peers_checked: tuple[frozenset[int], float] = frozenset(), 0.0

    def update(self, view: BridgeView) -> bool:
        """Start the programs on new ports, stop them on removed ports. Returns whether there were any."""
        changed = False
        if self.deleted:
            log.info("bridge %s is there again", self._bridge)
            self.deleted = False
        if view.dpid != self._view.dpid:
            self._renumber(view.dpid)
        self._view = view
        wanted = {port.ofport: port for port in with_far_queues(view.ports, self._far.queues)}
        present = {port.ifindex for port in wanted.values()} | {each.ifindex for each in view.devices}
        self._failed = {index: why for index, why in self._failed.items() if index in present}
        # A far queue goes before its port, and comes after it.
        for ofport, port in reversed(list(self._programs.ports.items())):
            if ofport not in wanted or wanted[ofport].ifindex != port.ifindex:
                self._remove(port)
                changed = True
        # Before ports are added: the last port of a device has it for itself.
        self._remove_devices(view)
        for ofport, port in wanted.items():
            known = self._programs.ports.get(ofport)
            if known is None:
                changed |= self._add(port)
            elif known != port:
                self._programs.update_port(port)
                if replace(known, far=port.far) != port:
                    self._server.send_port_status(ofp.OFPPR_MODIFY, port)
        self._add_devices(view)
        untagged = {number: each.untagged for number, each in view.settings.items() if each.untagged}
        self._programs.set_vlans(untagged)
        self._server.set_port_settings(view.settings)
        for entry in sorted(set(view.unwatched) - self._known_unwatched):
            log.warning("port %s is not watched: %s", *entry)
        self._known_unwatched = frozenset(view.unwatched)
        self._name_unpoliced(view)
        return changed

    def remove_all(self) -> None:
        """The bridge has been deleted: stop on all ports, and wait for an :meth:`update` when it is there
        again.
        """
        if self.deleted:
            return
        self.update(replace(self._view, ports=(), devices=(), unwatched=(), settings={}, policed=frozenset()))
        self.deleted = True
        log.warning("bridge %s has been deleted: waiting until it is there again", self._bridge)

    @property
    def _real_ports(self) -> list[BridgePort]:
        return [port for port in self._programs.ports.values() if port.far is None]

    @property
    def unwatched(self) -> list[tuple[str, str]]:
        """Names of ports on which the programs do not run, and why."""
        return sorted([*self._view.unwatched, *self._failed.values()])

    # Far queues

    def tell_far_queues(self, told: Told) -> None:
        """A controller changes this in the far queues. Raises
        :class:`~fairq_ryu.channel.refusal.OpenFlowError`, also if one cannot be started; then all are as
        before.
        """
        before = self._far.told
        self._far.tell(told)
        self._update_far_queues()
        for port in self._view.ports:
            failed = self._failed.get(far_id(port.ifindex))
            if failed is not None and told.get(port.name) != before.get(port.name):
                self._far.tell(before)
                self._update_far_queues()
                raise refused(ERROR_FAR_QUEUE, f"{port.name}: {failed[1]}")

    def lease_far_rates(self, lease: RateLease, now_ns: int) -> None:
        """A controller leases rates to far queues. Raises likewise."""
        if self._far.lease(lease, now_ns):
            self._update_far_queues()

    def expire_far_rates(self, now_ns: int) -> None:
        """End the leases that are over."""
        if self._far.expire(now_ns):
            self._update_far_queues()

    def far_queues(self) -> list[FarQueueState]:
        """The far queues that there are."""
        ports = self._programs.ports
        return self._far.states(
            {ports[each.ofport - FAR].name: each.ofport - FAR for each in ports.values() if each.far}
        )

    def _update_far_queues(self) -> None:
        if not self.deleted:
            self.update(self._view)
            self._server.laws.limits_changed()

    def _name_unpoliced(self, view: BridgeView) -> None:
        """Log which ports Open vSwitch cannot police, because clsact is in the place of its ingress qdisc."""
        names = {port.ifindex: port.name for port in self._programs.ports.values()}
        unpoliced = frozenset(
            index for index in view.policed & names.keys() if self._programs.filter_place(index) == "clsact"
        )
        for index in sorted(unpoliced - self._unpoliced):
            log.warning("port %s: %s", names[index], UNPOLICED)
        self._unpoliced = unpoliced

    def _renumber(self, dpid: int) -> None:
        """The bridge has another datapath id (OVS takes it from its ports unless it is configured)."""
        try:
            self._server.dpid = agent_dpid(dpid)
        except ValueError as error:
            log.error("bridge %s: %s: going on under the old id", self._bridge, error)
            return
        log.warning("bridge %s has a new datapath id, %s: connecting anew", self._bridge, dpid_text(dpid))
        self._reconnect()

    def _add(self, port: BridgePort) -> bool:
        try:
            self._programs.add_port(port)
        except (BpfError, OSError, UserError) as error:
            # The port may have been removed meanwhile; if not, one bad port must not stop the others.
            if port.ifindex not in self._failed:
                log.warning("port %s is not watched: %s", port.name, error)
            self._failed[port.ifindex] = port.name, str(error)
            return False
        self._failed.pop(port.ifindex, None)
        log.info("port %d (%s): watched", port.ofport, port.name)
        self._server.send_port_status(ofp.OFPPR_ADD, port)
        return True

    def _remove(self, port: BridgePort) -> None:
        self._server.forget_port(port.ofport, time.monotonic_ns())
        try:
            self._programs.remove_port(port.ofport)
        finally:  # whatever is left there, it is not removed a second time
            log.info("port %d (%s): gone", port.ofport, port.name)
            self._server.send_port_status(ofp.OFPPR_DELETE, port)

    def _remove_devices(self, view: BridgeView) -> None:
        wanted = {device.ifindex: device.delivers for device in view.devices}
        for ifindex, known in list(self._programs.devices.items()):
            if wanted.get(ifindex) != known.delivers:
                self._programs.remove_device(ifindex)
                log.info("%s: gone", _described(known))

    def _add_devices(self, view: BridgeView) -> None:
        for device in view.devices:
            known = self._programs.devices.get(device.ifindex)
            if known is not None:
                if known != device:
                    self._programs.update_device(device)
                continue
            try:
                self._programs.add_device(device)
            except (BpfError, OSError, UserError) as error:
                if device.ifindex not in self._failed:
                    log.warning("%s: not watched: %s", _described(device), error)
                self._failed[device.ifindex] = listed(device.names), str(error)
                continue
            self._failed.pop(device.ifindex, None)
            log.info("%s: watched for windows only: %s", _described(device), device.reason)

    async def retry_failed(self) -> None:
        """Try again to start on ports that could not be watched."""
        if self._failed and self.update(self._view):
            await self.read_queue_limits()

    async def read_queue_limits(self) -> None:
        """Read buffer and rate of every port."""
        indexes = [port.ifindex for port in self._real_ports]
        # Netlink is slow on big hosts: not in the loop that answers controllers.
        found = await asyncio.get_running_loop().run_in_executor(None, read_queue_limits, indexes)
        self._programs.set_queue_limits(found, indexes)
        self._programs.find_rates(time.monotonic())
        self._server.laws.limits_changed()
        self._server.queue_laws.limits_changed()

    async def read_silent_queues(self) -> list[int]:
        """Read the backlogs of queues that have had no event for too long. Returns the ports whose queues
        have missed events.
        """
        # Before the reading: an event that comes after it is newer than what is read.
        now = time.monotonic_ns()
        silent = self._programs.silent_queues(now)
        if not silent:
            return []
        found = await asyncio.get_running_loop().run_in_executor(None, read_backlogs, silent)
        corrected = self._programs.correct_backlogs(silent, now, found)
        for ofport in corrected:
            log.info("port %d: its queue has missed events; its backlog was read from the qdisc", ofport)
        return corrected

    async def check_peers(self) -> None:
        """Log which hosts leave out checksums that a userspace switch does not fill in: their TCP hangs."""
        if self._view.datapath_type != "netdev":
            return
        names = {port.ifindex: port.name for port in self._real_ports}
        ports, now = frozenset(names), time.monotonic()
        checked, checked_at = self._peers_checked
        if checked == ports and not (self._unfinished and now - checked_at > _PEERS_AGAIN):
            return
        self._peers_checked = ports, now
        found = await asyncio.get_running_loop().run_in_executor(None, unfinished, ports)
        for index, peer in found.items():
            if index not in self._unfinished:
                log.warning(
                    "port %s: the host behind it (%s) sends TCP segments with unfinished checksums, and TCP "
                    "hangs. Run: %s",
                    names[index],
                    peer.name,
                    peer.remedy,
                )
        self._unfinished = found


def _described(device: WindowDevice) -> str:
    return f"port{'s' if len(device.names) > 1 else ''} {listed(device.names)}"
