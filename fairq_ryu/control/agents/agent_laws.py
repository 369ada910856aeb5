"""What one agent knows of laws of one kind: those that it was sent, and the states that it reports.

The numbers of the laws are those of their ports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from fairq_ryu.channel.quoted_law import ALL_LAWS
from fairq_ryu.channel.window_law import LawCommand
from fairq_ryu.control.agents.agent_port import AgentPort, AgentPorts, PortLaw
from fairq_ryu.openflow.pipeline import Message


class LawReport(Protocol):
    """The state of a law, as an agent reports it."""

    @property
    def law(self) -> int:
        """The number of the law."""

    @property
    def port(self) -> int:
        """The port whose rule refers to the law; 0: none."""


Spec = TypeVar("Spec")
State = TypeVar("State", bound=LawReport)


class AgentLaws(ABC, Generic[Spec, State]):
    """The laws of one kind of the ``ports`` of an agent. Returns messages and sends nothing. Times in
    seconds.
    """

    def __init__(self, datapath: Any, ports: AgentPorts) -> None:
        self._datapath, self._ports = datapath, ports
        self._requested_at = float("-inf")

    @abstractmethod
    def _of(self, port: AgentPort) -> PortLaw[Spec, State]:
        """The law of this kind of a port."""

    @abstractmethod
    def _set(self, command: LawCommand, port: int, spec: Spec | None = None) -> Message:
        """The message that adds, changes or deletes a law."""

    @abstractmethod
    def _request(self) -> Message:
        """The request for the states of all laws."""

    def begin(self) -> Message:
        """The agent has connected: laws of an earlier connection are removed, with their rules."""
        return self._set(LawCommand.DELETE, ALL_LAWS)

    def _ensure_law(self, port: int, wanted: Spec) -> list[Message]:
        """The law of a port, unless the agent has it."""
        law = self._of(self._ports[port])
        if law.spec == wanted:
            return []
        command = LawCommand.ADD if law.spec is None else LawCommand.MODIFY
        again = command is LawCommand.ADD and law.contested
        law.spec = wanted
        deletion = [self._set(LawCommand.DELETE, port)] if again else []
        return [*deletion, self._set(command, port, wanted)]

    def end(self, port: int) -> list[Message]:
        """A port has no law any more. A rule that refers to the law goes with it."""
        known = self._ports.get(port)
        if known is None:
            return []
        law = self._of(known)
        law.state = None
        if law.spec is None:
            return []
        self._forget(law)
        return [self._set(LawCommand.DELETE, port)]

    def _forget(self, law: PortLaw[Spec, State]) -> None:
        """The agent does not have the law of a port."""
        law.spec = None

    def request(self, interval: float, now: float) -> list[Message]:
        """Request the states of all laws, unless there are none or that was done within the ``interval``."""
        if now - self._requested_at < interval or all(law.spec is None for law in self._all()):
            return []
        self._requested_at = now
        return [self._request()]

    def reported(self, states: Iterable[State]) -> None:
        """The agent has reported the states of laws. One without a port does nothing any more."""
        for state in states:
            if self._is_in_force(state):
                self._of(self._ports[state.port]).state = state
            elif state.law in self._ports:
                self._of(self._ports[state.law]).state = None

    def _is_in_force(self, state: State) -> bool:
        return bool(state.port)

    def conflict(self, port: int) -> bool:
        """Another controller has added or deleted the law of a port. Returns whether it is sent again: once
        in a connection, because that controller may do the same.
        """
        law = self._of(self._ports[port])
        if law.contested:
            return law.spec is None  # not yet sent again: another error about the same change
        law.contested = True
        self._forget(law)
        return True

    def _all(self) -> Iterator[PortLaw[Spec, State]]:
        return map(self._of, self._ports.values())
