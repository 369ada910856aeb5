"""The TCP of the hosts of one network: loads what their congestion controls need, sets and checks it."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from itertools import cycle
from typing import Any

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.errors import UserError
from fairq_ryu.experiments.hostcc.controls import HostControls
from fairq_ryu.experiments.hostcc.coupling import PRIORITY, Membership
from fairq_ryu.experiments.profiles import PERIOD
from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.traffic import congestion
from fairq_ryu.experiments.traffic.namespaces import entered
from fairq_ryu.experiments.traffic.workers import RunError

_MEMORY_OF_A_BYTE = 4
"""A socket's buffer must be larger than its window: a segment of 1,448 bytes takes up to 2,304 of it, and TCP
keeps a part of a receive buffer free.
"""
_MOST_MEMORY = 1 << 30
"""Bytes to which the limits of one socket on each host add up at most, receive and send buffers by
themselves: hosts share the machine's memory, and the kernel refuses a limit of 2^31 bytes or more.
"""


class HostTcp:
    """`load` before the network is built, `configure` before it is started, `close` after its end."""

    def __init__(self, scenario: Scenario) -> None:
        """Load nothing yet."""
        self._scenario = scenario
        self._controls = HostControls()

    def load(self) -> None:
        """Load the congestion controls that the kernel lacks. `RunError` when it refuses one."""
        try:
            self._controls.provide(self._scenario.controls)
        except (BpfError, OSError, UserError) as error:
            raise RunError(f"no congestion control for the hosts: {error}") from error

    @property
    def cc(self) -> str:
        """The control of receivers, and of senders without their own, by its name in the kernel."""
        return self._controls.name_of(self._scenario.cc)

    def name_of(self, name: str) -> str:
        """The name in the kernel of a control that the scenario names."""
        return self._controls.name_of(name)

    def wanted(self) -> dict[str, str]:
        """The control of each sender that has its own, by its name in the kernel."""
        senders = self._scenario.plan.senders(self._scenario.senders)
        own = [self._controls.name_of(name) for name in self._scenario.sender_cc]
        return dict(zip(senders, cycle(own), strict=False))

    def configure(self, hosts: Sequence[Any]) -> None:
        """Set TCP of Mininet's hosts, before any server listens. ``HostError`` if the kernel refuses a
        setting, `RunError` if the sockets of a host use another congestion control.
        """
        wanted = self.wanted()
        buffers = buffer_limit(self._scenario.window_bytes, len(hosts))
        for host in hosts:
            host.setTcp(sack=self._scenario.sack, timestamps=self._scenario.timestamps)
            if self._scenario.hosts == PERIOD:
                host.setQuickAcks(True)
                host.setTailLossProbe(False)
            host.setEcn(self._scenario.ecn)
            host.setInitialWindow(self._scenario.initcwnd)
            host.setRtoMin(self._scenario.rto_min_ms)
            host.setBuffers(buffers)
            host.setReceiveBuffer(self._scenario.receive_buffer)
            cc = wanted.get(host.name, self.cc)
            if cc != self.cc:
                host.setCongestionControl(cc)
            found = in_use(host.pid)
            if found != cc:
                raise RunError(f"sockets of {host.name} use the congestion control {found} and not {cc}")
        self._couple(hosts)

    def _couple(self, hosts: Sequence[Any]) -> None:
        """The scenario says whose each host is, with what priority: else it is a tenant by itself. All flows
        of a tenant share the bottleneck of the scenario.
        """
        owners = {host: tenant for tenant, those in self._scenario.tenants.items() for host in those}
        try:
            for host in hosts:
                priority = self._scenario.priorities.get(host.name, PRIORITY)
                owner = Membership(owners.get(host.name, host.name), priority, shared=True)
                self._controls.join(host.pid, owner)
        except BpfError as error:
            raise RunError(f"congestion controls of the hosts cannot be told of tenants: {error}") from error

    def described(self) -> dict[str, str]:
        """For each name of the scenario, the control that hosts had: for the result."""
        return self._controls.described()

    def left_out(self) -> dict[str, int]:
        """See `HostControls.left_out`: for the result, before `close`. `RunError` when it cannot be read."""
        try:
            return self._controls.left_out()
        except BpfError as error:
            raise RunError(f"congestion controls of the hosts cannot be read: {error}") from error

    def announce(self, src: str, dst: str, sport: int, dport: int, size: int, deadline_ns: int) -> None:
        """Tell D2TCP, if it is loaded, of a flow: see `HostControls.announce`. `RunError` when it fails."""
        try:
            self._controls.announce(src, dst, sport, dport, size, deadline_ns)
        except BpfError as error:
            raise RunError(f"D2TCP cannot be told of a flow: {error}") from error

    def close(self) -> None:
        """Unload what was loaded. A second call does nothing."""
        self._controls.close()


def buffer_limit(window_bytes: float, hosts: int) -> int:
    """Bytes to which the buffers of a socket may grow, so that a flow can have ``window_bytes`` under way;
    less where ``hosts`` hosts would need too much memory.
    """
    return int(min(_MEMORY_OF_A_BYTE * window_bytes, _MOST_MEMORY / hosts))


def in_use(pid: int) -> str:
    """The congestion control that a new socket gets in the network namespace of process ``pid``."""
    with entered(pid), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        return congestion.of(sock)
