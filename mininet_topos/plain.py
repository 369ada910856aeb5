"""A switch that is not ours: a bridge of the kernel, with neither OpenFlow nor an agent."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from mininet.node import Switch

from mininet_topos.commands import CommandError, has_kernel_datapath, is_alive, process_mark, run
from mininet_topos.hosts import OFFLOADS
from mininet_topos.shells import ShieldedShell
from mininet_topos.switch import SwitchError

_OWNER = "fairq_ryu "


class PlainSwitch(ShieldedShell, Switch):
    """A learning bridge of Linux with the name of the switch. ``datapath``: that of the switches behind it,
    whose userspace datapath wants whole checksums and no super-packets.
    """

    def __init__(self, name: str, **params: Any) -> None:
        self.datapath = "kernel" if has_kernel_datapath() else "user"
        super().__init__(name, **params)
        self._started = False

    def start(self, _controllers: Iterable[Any]) -> None:
        """Make the bridge of all interfaces. ``SwitchError`` if there is another of this name."""
        _refuse_foreign(self.name)
        names = [intf.name for intf in self.intfList() if self.ports[intf] and not intf.IP()]
        run(["ip", "link", "add", self.name, "type", "bridge", "mcast_snooping", "0"])
        self._started = True
        run(["ip", "link", "set", self.name, "alias", f"{_OWNER}{process_mark(os.getpid())}"])
        for name in [self.name, *names]:
            # Otherwise the machine's own IPv6 stack would send discovery messages through every port.
            quiet = Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
            if quiet.exists():
                quiet.write_text("1")
        for name in names:
            if self.datapath == "user":
                run(["ethtool", "-K", name, *(word for each in OFFLOADS for word in (each, "off"))])
            run(["ip", "link", "set", name, "master", self.name])
        run(["ip", "link", "set", self.name, "up"])

    def connected(self) -> bool:
        """There is no controller to wait for."""
        return True

    def stop(self, deleteIntfs: bool = True) -> None:
        """Remove the bridge, if `start` has made it."""
        if self._started:
            self._started = False
            with suppress(CommandError):
                run(["ip", "link", "del", self.name])
        super().stop(deleteIntfs)


def _refuse_foreign(name: str) -> None:
    """``SwitchError`` if an interface ``name`` exists; what an ended process has left behind is removed."""
    try:
        owner = Path(f"/sys/class/net/{name}/ifalias").read_text().strip()
    except OSError:
        return
    with suppress(ValueError):
        if owner.startswith(_OWNER) and not is_alive(owner.removeprefix(_OWNER)):
            run(["ip", "link", "del", name])
            return
    raise SwitchError(
        f"interface {name} exists already: end the program that uses it, or run `ip link del {name}`"
    )
