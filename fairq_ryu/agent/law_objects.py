"""Laws as objects of the channel, as meters are: added, changed and deleted by number.

A law outlives the connection of the controller that added it; without a rule whose lease lives it does
nothing. It is in force on at most one port, because its state is that of one queue. When the buffer or the
rate of that port changes, its parameters are worked out anew and its state stays.

Bounded: at most ``capacity`` laws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, Protocol, TypeVar

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.channel import window_law
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.channel.window_law import LawCommand

Spec = TypeVar("Spec")
_SpecOf = TypeVar("_SpecOf", covariant=True)


class WantedLaw(Protocol[_SpecOf]):
    """A message that adds, changes or deletes a law. ``spec``: None in a deletion, or if it is not known."""

    @property
    def command(self) -> int:
        """A :class:`~fairq_ryu.channel.window_law.LawCommand`, if it is valid."""

    @property
    def law(self) -> int:
        """The number of the law."""

    @property
    def spec(self) -> _SpecOf | None:
        """The law."""


class LawObjects(ABC, Generic[Spec]):
    """The laws of one kind of object, and the ports on which they are in force."""

    noun: ClassVar[str]
    """how errors call a law"""
    parts: ClassVar[str]
    """what a message names by number, which may be unknown"""

    def __init__(self, bridge: BridgePrograms, capacity: int) -> None:
        self._bridge = bridge
        self.capacity = capacity
        self._laws: dict[int, Spec] = {}
        self._ports: dict[int, tuple[int, int]] = {}  # law and end of its lease (ns), by port
        self._port_of: dict[int, int] = {}  # the port on which a law is in force
        self._limits: dict[int, QueueLimits] = {}  # that the parameters in force were worked out with

    def __len__(self) -> int:
        return len(self._laws)

    @abstractmethod
    def _wrong(self, spec: Spec) -> str | None:
        """The parameter that is out of its bounds; None: all are within."""

    @abstractmethod
    def _put(self, port: int, law: int, spec: Spec, limits: QueueLimits, expires_ns: int) -> None:
        """Put a law in force on a port with this buffer and rate; :class:`OpenFlowError` if it cannot be."""

    @abstractmethod
    def _take_away(self, port: int) -> None:
        """End the law of a port."""

    def set(self, wanted: WantedLaw[Spec]) -> list[int]:
        """Add, change or delete a law. Returns the ports whose rules refer to a law that is deleted: these
        rules are to be removed.

        Raises :class:`OpenFlowError` for a message that is refused, and changes nothing then.
        """
        number, spec = wanted.law, wanted.spec
        if wanted.command == LawCommand.DELETE:
            return self._delete(number)
        if wanted.command not in (LawCommand.ADD, LawCommand.MODIFY):
            raise refused(window_law.ERROR_LAW_COMMAND, f"command {wanted.command}")
        if spec is None:
            raise refused(window_law.ERROR_LAW_KIND, f"unknown {self.parts}")
        wrong = self._wrong(spec)
        if wrong is not None or not 0 < number <= window_law.MAX_LAW_ID:
            raise refused(window_law.ERROR_LAW_PARAMETER, wrong or f"{self.noun} {number}")
        known = number in self._laws
        if wanted.command == LawCommand.ADD and known:
            raise refused(window_law.ERROR_LAW_EXISTS, f"{self.noun} {number} is there")
        if wanted.command == LawCommand.MODIFY and not known:
            raise refused(window_law.ERROR_LAW_UNKNOWN, f"no {self.noun} {number}")
        if not known and len(self._laws) >= self.capacity:
            raise refused(window_law.ERROR_LAW_TABLE_FULL, f"{self.capacity} {self.noun}s are there already")
        port = self._port_of.get(number)
        if port is not None:
            self._install(port, number, spec, self._ports[port][1])
        self._laws[number] = spec
        return []

    def _delete(self, law: int) -> list[int]:
        gone = list(self._laws) if law == window_law.ALL_LAWS else [law]
        ports = [self._port_of[each] for each in gone if each in self._port_of]
        for each in gone:
            self._laws.pop(each, None)  # as a meter's deletion
        return ports

    def _asked(self, law: int) -> list[int]:
        """The laws whose states are asked for. Raises :class:`OpenFlowError` if there is none."""
        if law == window_law.ALL_LAWS:
            return list(self._laws)
        self._spec(law)
        return [law]

    def _spec(self, law: int) -> Spec:
        spec = self._laws.get(law)
        if spec is None:
            raise refused(window_law.ERROR_LAW_UNKNOWN, f"no {self.noun} {law}")
        return spec

    # Ports

    def has_port(self, port: int) -> bool:
        """Whether this is a port of the bridge on which a rule can be installed."""
        return self._bridge.has_port(port)

    def _put_in_force(self, port: int, law: int, expires_ns: int) -> None:
        """Put the law in force that a rule of a port refers to. Raises :class:`OpenFlowError` if that cannot
        be.
        """
        spec = self._spec(law)
        if self._port_of.get(law) not in (None, port):
            raise refused(window_law.ERROR_LAW_IN_USE, f"{self.noun} {law} is in force on another port")
        self._install(port, law, spec, expires_ns)

    def _install(self, port: int, law: int, spec: Spec, expires_ns: int) -> None:
        limits = self._bridge.limits_of(port)
        if not limits.limit or not limits.rate:
            why = f": {limits.reason}" if limits.reason else ""
            text = f"port {port} has no queue of known size and rate{why}"
            raise refused(window_law.ERROR_LAW_NO_QUEUE, text)
        self._put(port, law, spec, limits, expires_ns)
        self._unlink(port)
        self._ports[port], self._limits[port] = (law, expires_ns), limits
        self._port_of[law] = port

    def _unlink(self, port: int) -> bool:
        """Forget that a port has a law. Returns whether it had one."""
        former = self._ports.pop(port, None)
        if former is not None:
            del self._port_of[former[0]]
        return former is not None

    def _release(self, port: int) -> None:
        """A port has no rule any more that refers to a law; the law itself stays."""
        if self._unlink(port):
            self._limits.pop(port, None)
            self._take_away(port)

    def limits_changed(self) -> None:
        """Buffers or rates of ports may have changed: work out the parameters of their laws anew. A law that
        cannot be in force there any more ends on its port.
        """
        for port, (law, expires_ns) in list(self._ports.items()):
            if self._bridge.limits_of(port) != self._limits[port]:
                try:
                    self._install(port, law, self._laws[law], expires_ns)
                except (OpenFlowError, BpfError):
                    self._release(port)


def refused(code: int, text: str) -> OpenFlowError:
    """OpenFlow has no code for it, so it is one of ours."""
    return OpenFlowError(ofp.OFPET_EXPERIMENTER, code, text)
