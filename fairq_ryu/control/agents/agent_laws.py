"""What one agent knows of laws of one kind: those that it was sent, and the states that it reports.

The numbers of the laws are those of their ports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from fairq_ryu.channel.quoted_law import ALL_LAWS
from fairq_ryu.channel.window_law import LawCommand


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
    """``states``: the last report of each port. Bounded by the ports of the agent. Times in seconds."""

    def __init__(self, datapath: Any) -> None:
        self._datapath = datapath
        self.states: dict[int, State] = {}
        self._laws: dict[int, Spec] = {}
        self._requested_at = float("-inf")
        self._conflicts: set[int] = set()  # laws that another controller has changed

    def __len__(self) -> int:
        return len(self._laws)

    @abstractmethod
    def _set(self, command: LawCommand, port: int, spec: Spec | None = None) -> Any:
        """The message that adds, changes or deletes a law."""

    @abstractmethod
    def _request(self) -> Any:
        """The request for the states of all laws."""

    def begin(self) -> None:
        """The agent has connected: laws of an earlier connection are removed, with their rules."""
        for port in list(self._laws):
            self._forget(port)
        self._send(self._set(LawCommand.DELETE, ALL_LAWS))

    def _ensure_law(self, port: int, wanted: Spec) -> None:
        """Send the law of a port, unless the agent has it."""
        if self._laws.get(port) == wanted:
            return
        command = LawCommand.MODIFY if port in self._laws else LawCommand.ADD
        if command is LawCommand.ADD and port in self._conflicts:
            self._send(self._set(LawCommand.DELETE, port))
        self._laws[port] = wanted
        self._send(self._set(command, port, wanted))

    def end(self, port: int) -> None:
        """A port has no law any more. A rule that refers to the law goes with it."""
        self.states.pop(port, None)
        if self._forget(port):
            self._send(self._set(LawCommand.DELETE, port))

    def _forget(self, port: int) -> bool:
        """Forget that the agent has the law of a port. Returns whether it had one."""
        return self._laws.pop(port, None) is not None

    def request(self, interval: float, now: float) -> None:
        """Request the states of all laws, unless there are none or that was done within the ``interval``."""
        if self._laws and now - self._requested_at >= interval:
            self._requested_at = now
            self._send(self._request())

    def reported(self, states: Iterable[State]) -> None:
        """The agent has reported the states of laws. One without a port does nothing any more."""
        for state in states:
            if self._is_in_force(state):
                self.states[state.port] = state
            else:
                self.states.pop(state.law, None)

    def _is_in_force(self, state: State) -> bool:
        return bool(state.port)

    def conflict(self, port: int) -> bool:
        """Another controller has added or deleted the law of a port. Returns whether it is sent again: once
        in a connection, because that controller may do the same.
        """
        if port in self._conflicts:
            return port not in self._laws  # not yet sent again: another error about the same change
        self._conflicts.add(port)
        self._forget(port)
        return True

    def _forget_all(self) -> None:
        """The agent has no laws of this kind."""
        self._laws.clear()
        self.states.clear()

    def _send(self, message: Any) -> None:
        self._datapath.send_msg(message)
