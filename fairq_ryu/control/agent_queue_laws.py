"""What one agent knows of queue laws: the laws and rules that it was sent, and the states that it reports.

The numbers of the laws are those of their ports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairq_ryu.channel import flowmod, queue_law
from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.channel.window_law import ALL_LAWS, LawCommand
from fairq_ryu.queue_law_spec import QueueLawSpec


class AgentQueueLaws:
    """``known``: whether the agent has queue laws; False: it is of an earlier version. ``states``: the last
    report of each port. Bounded by the ports of the agent. Times in seconds.
    """

    def __init__(self, datapath: Any) -> None:
        self._datapath = datapath
        self.known = True
        self.states: dict[int, QueueLawState] = {}
        self._laws: dict[int, QueueLawSpec] = {}
        self._renewed: dict[int, float] = {}
        self._rules: dict[int, Any] = {}  # packed messages
        self._requested_at = float("-inf")
        self._conflicts: set[int] = set()  # laws that another controller has changed

    def __len__(self) -> int:
        return len(self._laws)

    def begin(self) -> None:
        """The agent has connected: laws of an earlier connection are removed, with their rules."""
        self._send(queue_law.set_queue_law(self._datapath, LawCommand.DELETE, ALL_LAWS))

    def ensure(self, port: int, wanted: QueueLawSpec, lease: int, renew_after: float, now: float) -> None:
        """Let a law judge the packets of a port; sends what the agent does not know, and renews the lease
        when ``renew_after`` seconds of it have passed.
        """
        if not self.known:
            return
        if self._laws.get(port) != wanted:
            command = LawCommand.MODIFY if port in self._laws else LawCommand.ADD
            if command is LawCommand.ADD and port in self._conflicts:
                self._send(queue_law.set_queue_law(self._datapath, LawCommand.DELETE, port))
            self._laws[port] = wanted
            self._send(queue_law.set_queue_law(self._datapath, command, port, wanted))
        if now - self._renewed.get(port, float("-inf")) >= renew_after:
            self._renewed[port] = now
            if port not in self._rules:
                self._rules[port] = flowmod.queue_rule(self._datapath, port, port, lease)
            self._send(self._rules[port])

    def end(self, port: int) -> None:
        """No law judges the packets of a port any more; its rule goes with it."""
        self._renewed.pop(port, None)
        self.states.pop(port, None)
        if self._laws.pop(port, None) is not None and self.known:
            self._send(queue_law.set_queue_law(self._datapath, LawCommand.DELETE, port))

    def port_removed(self, port: int) -> None:
        """The agent does not watch a port any more."""
        self.end(port)
        self._rules.pop(port, None)

    def request(self, interval: float, now: float) -> None:
        """Request the states of all laws, unless there are none or that was done within the ``interval``."""
        if self.known and self._laws and now - self._requested_at >= interval:
            self._requested_at = now
            self._send(queue_law.request(self._datapath))

    def reported(self, states: Sequence[QueueLawState]) -> None:
        """The agent has reported the states of laws. One without a port judges nothing any more."""
        for state in states:
            if state.port in self._laws:
                self.states[state.port] = state
            else:
                self.states.pop(state.law, None)

    def conflict(self, port: int) -> bool:
        """Another controller has added or deleted the law of a port. Returns whether it is sent again: once
        in a connection, because that controller may do the same.
        """
        if port in self._conflicts:
            return port not in self._laws  # not yet sent again: another error about the same change
        self._conflicts.add(port)
        self._laws.pop(port, None)
        self._renewed.pop(port, None)
        return True

    def unsupported(self) -> bool:
        """The agent has no queue laws. Returns whether that is new."""
        new, self.known = self.known, False
        self._laws.clear()
        self.states.clear()
        self._renewed.clear()
        return new

    def _send(self, message: Any) -> None:
        self._datapath.send_msg(message)
