"""Hosts for measurements: a given congestion control, no TCP metrics kept between runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mininet.log import warn
from mininet.node import Host

from mininet_topos.controls import remedy
from mininet_topos.qdiscs import WIRE, shaper
from mininet_topos.shells import ShieldedShell

# The congestion controls that namespaces may choose; only the initial network namespace can change the list.
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
SEND_QUEUE = 1000
"""Packets that an interface with a rate holds, as many as Linux gives a network card."""
OFFLOADS = ("tso", "gso", "gro", "tx")
# These messages of IPv6 neighbour and router discovery would disturb the switch's queue; IPv6 itself works.
_QUIET_IPV6 = {"accept_ra": 0, "router_solicitations": 0, "autoconf": 0, "accept_dad": 0, "dad_transmits": 0}


class HostError(Exception):
    """A host cannot be configured."""


class FairQHost(ShieldedShell, Host):
    """A Mininet host for TCP measurements. ``cc`` names its congestion control (``cubic``). ``offloads``:
    whether the host leaves segmentation and checksums to others, as real hosts do; None: unless a switch of
    it has the userspace datapath, which does not finish checksums, so that TCP hangs.
    """

    def config(self, cc: str = "cubic", offloads: bool | None = None, **params: Any) -> dict[str, Any]:
        """Configure the host as Mininet does, then offloads, IPv6 and TCP. ``HostError`` if the kernel
        refuses a setting.
        """
        result: dict[str, Any] = super().config(**params)
        at_userspace = self._is_at_userspace()
        if at_userspace if offloads is None else not offloads:
            self.setParam(result, "setOffloads", offloads=False)
        if not at_userspace:
            self.setParam(result, "setWire", wire=True)
        self.setParam(result, "setQuiet", quiet=True)
        self.setParam(result, "setCongestionControl", cc=cc)
        return result

    def _is_at_userspace(self) -> bool:
        """Whether a switch to which this host is connected has the userspace datapath."""
        links = [intf.link for intf in self.intfList() if intf.link]
        ends = [end.node for link in links for end in (link.intf1, link.intf2)]
        return any(getattr(each, "datapath", "") == "user" for each in ends)

    def setOffloads(self, offloads: bool) -> None:
        """Switch segmentation and checksum offloads of every interface on or off. ``HostError`` if one
        refuses.
        """
        state = "on" if offloads else "off"
        wanted = " ".join(f"{name} {state}" for name in OFFLOADS)
        names = [intf.name for intf in self.intfList() if intf.name != "lo"]
        commands = [f"ethtool -K {name} {wanted} >/dev/null || echo {name}" for name in names]
        trouble = self.cmd("; ".join(commands))
        if trouble.strip():
            raise HostError(f"{self.name}: cannot switch offloads {state}: {trouble.strip().splitlines()[0]}")

    def setWire(self, _wire: bool) -> None:
        """Let packets leave the host when they are sent, as a network card does.

        The kernel's datapath passes on the sender's own packets. They count as unsent until the far host has
        them, and TCP holds back more than a few (TCP Small Queues): each sender would know the queue of every
        switch. Open vSwitch in user space copies packets. A warning if the kernel has no netem.
        """
        names = [intf.name for intf in self.intfList() if intf.name != "lo"]
        commands = [f"tc qdisc replace dev {name} root {WIRE}" for name in names]
        trouble = self.cmd("; ".join(commands)).strip()
        if trouble:
            said = trouble.splitlines()[0]
            warn(f"*** {self.name}: TCP will feel the queues of switches, as on no real network: {said}\n")

    def setQuiet(self, _quiet: bool) -> None:
        """Switch IPv6 discovery off on every interface; do not keep TCP metrics between connections."""
        names = [intf.name for intf in self.intfList() if intf.name != "lo"]
        # A switch in user space sends on one processor, and by default the kernel runs the receiving host's
        # whole TCP stack for each packet on the same one. Here it may use all processors, as a real host
        # would.
        commands = [
            f"for f in /sys/class/net/{name}/queues/rx-*/rps_cpus; do"
            f" if [ -e $f ]; then echo {_all_processors()} >$f; fi; done"
            for name in names
        ]
        for scope in ["all", "default", *names]:
            for key, value in _QUIET_IPV6.items():
                path = f"/proc/sys/net/ipv6/conf/{scope}/{key}"
                commands.append(f"if [ -e {path} ]; then echo {value} >{path}; fi")
        for name in names:
            # The existing link-local address began its duplicate detection before; a new one skips it.
            path = f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6"
            commands.append(f"if [ -e {path} ]; then echo 1 >{path}; echo 0 >{path}; fi")
        commands.append("echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save")
        trouble = self.cmd("; ".join(commands)).strip()
        if trouble:
            raise HostError(f"{self.name}: cannot set up: {trouble.splitlines()[0]}")

    def setTcp(self, sack: bool, timestamps: bool) -> None:
        """Set whether connections use selective ACKs and timestamps. ``HostError`` if the kernel refuses."""
        for name, wanted in (("tcp_sack", sack), ("tcp_timestamps", timestamps)):
            self._set(name, str(int(wanted)))

    def setQuickAcks(self, quick: bool) -> None:
        """Set whether every segment is acknowledged at once, by all routes that there are. ``HostError`` if
        the kernel refuses.
        """
        self._set_routes("quickack", 1 if quick else 0, "quick ACKs")

    def setInitialWindow(self, segments: int) -> None:
        """Set the congestion window with which connections begin, by all routes that there are; 0 leaves the
        kernel's, which is 10. ``HostError`` if the kernel refuses.
        """
        if segments:
            self._set_routes("initcwnd", segments, "the initial congestion window")

    def setReceiveBuffer(self, size: int) -> None:
        """Give every connection a receive buffer of ``size`` bytes, which does not grow; 0 changes nothing.
        TCP announces about half of it. ``HostError`` if the kernel refuses.

        The route's attribute ``window`` does not hold: since Linux 6.6 a connection forgets it when it has
        seen how much memory its segments take.
        """
        if size:
            self._set("tcp_rmem", f"{size}\t{size}\t{size}")

    def _set_routes(self, attribute: str, value: int | str, what: str) -> None:
        """Set an attribute of all routes that there are; 0: without it. ``HostError`` for ``what``."""
        for route in self.cmd("ip -4 route show").splitlines():
            plain = re.sub(rf" {attribute} \S+", "", route).strip()
            trouble = self.cmd(f"ip route replace {plain}{f' {attribute} {value}' if value else ''}").strip()
            if trouble:
                raise HostError(f"{self.name}: cannot set {what}: {trouble}")

    def setEcn(self, ecn: bool) -> None:
        """Let every connection ask for explicit congestion notification, not only answer those that do.
        ``HostError`` if the kernel refuses.
        """
        if ecn:
            self._set("tcp_ecn", "1")

    def setTailLossProbe(self, probe: bool) -> None:
        """Set whether TCP sends the last segment again before its retransmission timeout. ``HostError`` if
        the kernel refuses.
        """
        self._set("tcp_early_retrans", "3" if probe else "0")

    def _set(self, name: str, value: str) -> None:
        """Set a setting of IPv4 of its network namespace. ``HostError`` if the kernel refuses."""
        path = f"/proc/sys/net/ipv4/{name}"
        trouble = self.cmd(f"echo {value} >{path}").strip()
        if self.cmd(f"cat {path}").strip() != value:
            raise HostError(f"{self.name}: cannot set {name}: {trouble}")

    def setRate(self, rate: float) -> None:
        """Let every interface send at ``rate`` Mbit/s, as a network card of this rate does: packets wait in
        the host, and TCP does not send more than a few ahead. 0 changes nothing. ``HostError`` if the kernel
        refuses.
        """
        if not rate:
            return
        for name in (intf.name for intf in self.intfList() if intf.name != "lo"):
            mtu = int(self.cmd(f"ip -o link show dev {name}").partition(" mtu ")[2].split()[0])
            # At the kernel's datapath, packets leave their sockets before they wait: see `setWire`.
            queue = f"pfifo limit {SEND_QUEUE}" if self._is_at_userspace() else WIRE
            commands = (
                f"tc qdisc replace dev {name} root handle 1: {shaper(rate, mtu, SEND_QUEUE * mtu)}",
                f"tc qdisc replace dev {name} parent 1:1 handle 10: {queue}",
            )
            trouble = self.cmd(" && ".join(commands)).strip()
            if trouble:
                raise HostError(f"{self.name}: cannot send at {rate:g} Mbit/s: {trouble.splitlines()[0]}")

    def setRtoMin(self, milliseconds: float) -> None:
        """Set the minimum retransmission timeout of every connection; 0 leaves the kernel's default. Before
        Linux 6.11 it is a part of the routes, in whole milliseconds, and is rounded up. ``HostError`` if it
        cannot be set, and there below 1 ms.
        """
        if not milliseconds:
            return
        micro = round(milliseconds * 1000)
        path = "/proc/sys/net/ipv4/tcp_rto_min_us"
        if os.path.exists(path):  # since Linux 6.11
            trouble = self.cmd(f"echo {micro} >{path}").strip()
            if self.cmd(f"cat {path}").strip() != str(micro):
                raise HostError(f"{self.name}: cannot set the minimum retransmission timeout: {trouble}")
            return
        if micro < 1000:
            raise HostError(
                f"{self.name}: this kernel has no minimum retransmission timeout of {milliseconds:g} ms:"
                " set 1 or more"
            )
        self._set_routes("rto_min", f"{-(-micro // 1000)}ms", "the minimum retransmission timeout")

    def setBuffers(self, wanted: int) -> None:
        """Let the buffers of a socket grow to ``wanted`` bytes, if the kernel's limit is lower. ``HostError``
        if it refuses.
        """
        for name in ("tcp_rmem", "tcp_wmem"):
            path = f"/proc/sys/net/ipv4/{name}"
            least, first, most = self.cmd(f"cat {path}").split()
            if int(most) >= wanted:
                continue
            trouble = self.cmd(f"echo {least} {first} {wanted} >{path}").strip()
            if self.cmd(f"cat {path}").split()[2:] != [str(wanted)]:
                raise HostError(f"{self.name}: cannot set {name}: {trouble}")

    def setCongestionControl(self, cc: str) -> None:
        """Use congestion control ``cc`` for every connection. ``HostError`` if the kernel does not have
        it.
        """
        here = "/proc/sys/net/ipv4/tcp_congestion_control"
        known = self.cmd("cat /proc/sys/net/ipv4/tcp_available_congestion_control").split()
        if cc not in known:
            raise HostError(
                f"{self.name}: this kernel does not offer the congestion control {cc!r}: {remedy(cc, known)}"
            )
        # A control that allows itself to all (the flag non-restricted) is in the list already; to write the
        # list without it would clear that flag.
        with _allowed(cc):
            trouble = self.cmd(f"echo {cc} >{here}").strip()
        if self.cmd(f"cat {here}").strip() != cc:
            raise HostError(f"{self.name}: cannot set the congestion control {cc!r}: {trouble}")


def _all_processors() -> str:
    """The mask of all processors in the kernel's format: hexadecimal words of 32 bits, the highest first."""
    digits = f"{(1 << (os.cpu_count() or 1)) - 1:x}"
    digits = digits.zfill(-(-len(digits) // 8) * 8)
    return ",".join(digits[i : i + 8] for i in range(0, len(digits), 8))


@contextmanager
def _allowed(cc: str) -> Iterator[None]:
    """Allow network namespaces to choose ``cc`` within this block.

    The default of a namespace must be in the machine's list of allowed congestion controls, which usually
    contains the machine's default only. The kernel checks this when the default is set, not when it is used,
    so the list can be restored immediately.
    """
    before = _ALLOWED.read_text().split() if _ALLOWED.exists() else []
    if not before or cc in before:
        yield
        return
    try:
        _ALLOWED.write_text(" ".join([*before, cc]))
    except (
        PermissionError
    ):  # not the initial namespace, which alone has the list: the caller sees whether the kernel accepts
        yield
        return
    try:
        yield
    finally:
        _ALLOWED.write_text(" ".join(before))
