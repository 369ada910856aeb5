"""What one agent knows of far queues: what it was told to change, and which there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ryu.lib import hub

from fairq_ryu.channel import far_queues
from fairq_ryu.channel.dispatch import TooMuch
from fairq_ryu.channel.far_queues import FarQueueState, Told
from fairq_ryu.control.agents.agent_port import MOST_PORTS
from fairq_ryu.openflow.pipeline import Message


class AgentFarQueues:
    """Each change is followed by a request for what there is. The agent carries out one after the other, so
    its n-th answer acknowledges the n-th change, unless an error about it came before. Returns messages and
    sends nothing.
    """

    def __init__(self, datapath: Any) -> None:
        self._datapath = datapath
        self.states: list[FarQueueState] = []
        """the far queues that there are, by the last answer"""
        self._part: list[FarQueueState] = []
        self._asked = self._answered = 0
        self._unanswered: dict[int, Told] = {}
        self._refused: dict[int, str] = {}
        self.accepted: Told | None = None
        """the last changes that the agent has not refused; None: it has answered to none"""
        self._answer = hub.Event()

    def tell(self, told: Told) -> list[Message]:
        """Change this, and nothing else any more. :meth:`acknowledged` with :attr:`asked` says whether it
        worked.
        """
        messages = [far_queues.set_far_queues(self._datapath, told), *self.request()]
        self._unanswered[self._asked] = told
        return messages

    def request(self) -> list[Message]:
        """Ask for the far queues."""
        self._asked += 1
        return [far_queues.request(self._datapath)]

    @property
    def asked(self) -> int:
        """The number of the last request."""
        return self._asked

    def reported(self, part: Sequence[FarQueueState], more: bool) -> None:
        """The agent has answered; ``more`` parts follow. Raises :class:`TooMuch`."""
        self._part += part
        if len(self._part) > MOST_PORTS:
            raise TooMuch(f"more than {MOST_PORTS:,} far queues")
        if not more:
            self.states, self._part = self._part, []
            self._done()

    def refused(self, reason: str) -> None:
        """The agent has refused the change before the next request that it answers."""
        self._refused = {self._answered + 1: reason}

    def unlisted(self) -> None:
        """The agent has refused a request: no answer to it will come."""
        self._refused.setdefault(self._answered + 1, "the agent does not list far queues")
        self._done()

    def _done(self) -> None:
        self._answered += 1
        told = self._unanswered.pop(self._answered, None)
        if told is not None and self._answered not in self._refused:
            self.accepted = told
        self._answer.set()

    def acknowledged(self, number: int, seconds: float) -> bool:
        """Wait for the answer to a request, for so long at most. False: there is none yet. Other greenlets
        run meanwhile.
        """
        while self._answered < number:
            self._answer.clear()
            if not self._answer.wait(seconds):
                return False
        return True

    def refusal(self, number: int) -> str | None:
        """Why the change before a request was refused; None: it was not."""
        return self._refused.get(number)

    def instead(self, told: Told) -> tuple[Told, str] | None:
        """What the agent has accepted in place of these changes, the last ones, and why it has refused them.
        None: it has not refused them, or has accepted nothing before.
        """
        if self._unanswered or self.accepted is None or self.accepted == told:
            return None
        return self.accepted, next(iter(self._refused.values()), "")
