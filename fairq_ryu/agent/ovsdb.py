"""The bridge as Open vSwitch's database describes it, followed as it changes (OVSDB, RFC 7047)."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ovs.db.idl
import ovs.dirs
import ovs.poller
import ovs.vlog

from fairq_ryu.agent import port_settings
from fairq_ryu.agent.watched_ports import (
    DeviceShares,
    WindowDevice,
    device_of,
    first,
    is_connected,
    joined_bridges,
    why_unwatched,
    window_device,
)
from fairq_ryu.errors import UserError, quoted
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.port_settings import PortSettings

_COLUMNS = {
    "Bridge": ["name", "ports", "datapath_id", "datapath_type", "mirrors"],
    "Port": port_settings.PORT_COLUMNS,
    "Mirror": ["output_port"],
    "Interface": [
        "name",
        "type",
        "ofport",
        "ifindex",
        "mac_in_use",
        "link_state",
        "admin_state",
        "link_speed",
        "options",
        "status",
        "ingress_policing_rate",
        "ingress_policing_kpkts_rate",
        *port_settings.INTERFACE_COLUMNS,
    ],
}
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BridgePort:
    """A port of the bridge: OpenFlow number, interface, and what OVS reports of the link.

    ``speed`` is in bits per second (0: not known), ``driver`` that of the kernel ("": not known). ``far``: it
    is no port of the bridge, but the far queue of the one with the same interface.
    """

    ofport: int
    name: str
    ifindex: int
    mac: str
    link_up: bool
    admin_up: bool
    speed: int
    driver: str = ""
    far: FarQueue | None = None


@dataclass(frozen=True, slots=True)
class BridgeView:
    """A bridge at one time. ``devices`` are watched for windows only; ``unwatched`` names the ports on which
    eBPF programs cannot run, with the reason; ``settings`` are those of all ports, by OpenFlow number;
    ``joined`` names the other bridges to which patch ports lead, also by way of others; ``policed``
    are the interface indices of those that Open vSwitch is to police.
    """

    name: str
    dpid: int
    datapath_type: str
    ports: tuple[BridgePort, ...]
    devices: tuple[WindowDevice, ...]
    unwatched: tuple[tuple[str, str], ...]
    settings: Mapping[int, PortSettings] = field(default_factory=dict)
    joined: frozenset[str] = frozenset()
    policed: frozenset[int] = frozenset()


def default_socket() -> str:
    """The database's socket: ``$OVS_RUNDIR/db.sock``, or where the distribution puts it."""
    rundir = os.environ.get("OVS_RUNDIR")
    candidates = [rundir] if rundir else ["/var/run/openvswitch", "/usr/local/var/run/openvswitch"]
    for directory in candidates:
        if Path(directory, "db.sock").exists():
            return f"unix:{directory}/db.sock"
    return f"unix:{candidates[0]}/db.sock"


def _connect(remote: str) -> Any:
    schema = Path(ovs.dirs.PKGDATADIR, "vswitch.ovsschema")
    if not schema.exists():
        schema = Path("/usr/share/openvswitch/vswitch.ovsschema")
    helper = ovs.db.idl.SchemaHelper(str(schema))
    for table, columns in _COLUMNS.items():
        helper.register_columns(table, columns)
    # Its own log handlers would repeat every line that we log.
    for facility in ("console", "syslog", "file"):
        ovs.vlog.Vlog.set_level("any", facility, "off")
    return ovs.db.idl.Idl(remote, helper, probe_interval=0)


def _view(idl: Any, name: str) -> BridgeView | None:
    for bridge in idl.tables["Bridge"].rows.values():
        if bridge.name == name:
            break
    else:
        return None
    ports: list[BridgePort] = []
    devices: set[WindowDevice] = set()
    unwatched: list[tuple[str, str]] = []
    policed: set[int] = set()
    # OVS sends nothing but copies to such a port. It sends them first, and they would be taken for the flow.
    mirrors = {output.uuid for mirror in bridge.mirrors for output in mirror.output_port}
    own = {interface.uuid for port in bridge.ports for interface in port.interfaces}
    shares = DeviceShares(idl.tables["Interface"].rows.values(), own)
    for port in bridge.ports:
        for interface in port.interfaces:
            if not is_connected(interface):
                continue
            if port.uuid in mirrors:
                unwatched.append((interface.name, "a mirror sends its copies there"))
                continue
            reason = why_unwatched(interface, shares)
            if reason:
                unwatched.append((interface.name, reason))
                continue
            device = window_device(interface, shares)
            if device is not None:
                devices.add(device)
                continue
            if interface.ingress_policing_rate or interface.ingress_policing_kpkts_rate:
                policed.add(device_of(interface))
            ports.append(
                BridgePort(
                    ofport=int(first(interface.ofport)),
                    name=str(interface.name),
                    ifindex=int(first(interface.ifindex)),
                    mac=str(first(interface.mac_in_use) or "00:00:00:00:00:00"),
                    link_up=first(interface.link_state) == "up",
                    admin_up=first(interface.admin_state) == "up",
                    speed=int(first(interface.link_speed) or 0),
                    driver=str(interface.status.get("driver_name", "")),
                )
            )
    dpid = first(bridge.datapath_id)
    if not dpid:
        dpid = "0"  # ovs-vswitchd has not created the bridge yet
    ports.sort(key=lambda p: p.ofport)
    return BridgeView(
        name=name,
        dpid=int(dpid, 16),
        datapath_type=str(bridge.datapath_type),
        ports=tuple(ports),
        devices=tuple(sorted(devices, key=lambda device: device.names)),
        unwatched=tuple(sorted(unwatched)),
        settings=port_settings.read(bridge),
        joined=joined_bridges(idl.tables["Bridge"].rows.values(), name),
        policed=frozenset(policed),
    )


class BridgeWatcher:
    """Follows one bridge in a thread of its own; calls ``on_change`` (in that thread) with each new
    view, and with None when the bridge has gone. OVSDB restarting is not a change.
    """

    def __init__(
        self, bridge: str, on_change: Callable[[BridgeView | None], None], remote: str | None = None
    ) -> None:
        self._bridge = bridge
        self._on_change = on_change
        self._remote = remote or default_socket()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ovsdb", daemon=True)
        self._first_view = threading.Event()
        self._view: BridgeView | None = None

    def start(self, timeout: float = 15.0) -> BridgeView:
        """Connect and return the first view.

        Raises :class:`UserError` if OVS does not answer within ``timeout`` seconds, or has no such bridge.
        """
        path = self._remote.removeprefix("unix:")
        if self._remote.startswith("unix:") and not Path(path).exists():
            raise UserError(
                f"Open vSwitch is not running (no {path})", "start it: service openvswitch-switch start"
            )
        self._thread.start()
        if not self._first_view.wait(timeout):
            self.stop()
            raise UserError(
                f"Open vSwitch's database at {self._remote} does not answer",
                "see whether ovsdb-server runs: ovs-vsctl show",
            )
        if self._view is None:
            self.stop()
            raise UserError(
                f"there is no bridge {self._bridge}",
                f"ovs-vsctl list-br shows those there are; make one: ovs-vsctl add-br {quoted(self._bridge)}",
            )
        if not self._view.dpid:
            self.stop()
            raise UserError(
                f"bridge {self._bridge} is in the database, but ovs-vswitchd has not made it",
                "see whether ovs-vswitchd runs: service openvswitch-switch start",
            )
        return self._view

    def stop(self) -> None:
        """Stop following. Returns at once; the thread ends within a second."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except Exception:
                log.exception("Open vSwitch's database cannot be followed; trying again")
                self._stop.wait(1.0)

    def _follow(self) -> None:
        idl = _connect(self._remote)
        seqno, seen = -1, False
        while not self._stop.is_set():
            idl.run()
            if idl.has_ever_connected() and idl.change_seqno != seqno:
                seqno = idl.change_seqno
                view = _view(idl, self._bridge)
                if not seen or view != self._view:
                    self._view, seen = view, True
                    self._first_view.set()
                    if not self._stop.is_set():
                        self._on_change(view)
            poller = ovs.poller.Poller()
            idl.wait(poller)
            poller.timer_wait(500)
            poller.block()
        idl.close()
