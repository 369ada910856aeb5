"""The one place that sends the controller's messages to bridges, and barriers to all switches.

Functions that decide return pairs of a datapath and a message, and :meth:`Sender.send` sends them in their
order. OpenFlow keeps the order of messages to one switch; between switches only barriers make an order. All
others to agents, which have connections of their own, are sent by
:class:`~fairq_ryu.control.agents.agent_link.AgentLink` (requests for copies of segments are sent here), and
Ryu sends those of the handshake.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.barriers import Barriers
from fairq_ryu.openflow.pipeline import Datapath, Message

Outgoing = tuple[Datapath, Message]


class Sender:
    """Sends messages. ``timeout``: how long an action waits for barrier replies, seconds; an action may have
    another.
    """

    def __init__(self, timeout: float) -> None:
        self.barriers = Barriers(timeout)

    @staticmethod
    def send(messages: Iterable[Outgoing]) -> None:
        """Send messages in their order. They may be made while they are sent: there can be very many."""
        for datapath, message in messages:
            datapath.send_msg(message)

    @staticmethod
    def send_last(datapath: Datapath, message: Message) -> None:
        """Send a message, and close the connection behind it."""
        datapath.send_msg(message, close_socket=True)

    def after_barriers(
        self, datapaths: Iterable[Datapath], action: Callable[[], None], timeout: float | None = None
    ) -> None:
        """Send barriers and run ``action`` when these switches have processed all messages sent before, or
        have disconnected; or after ``timeout`` seconds (None: the sender's). Without switches it runs at
        once.
        """
        requests = [(datapath, pipeline.barrier(datapath)) for datapath in datapaths]
        for datapath, message in requests:
            datapath.set_xid(message)
        # Registered before they are sent: sending may let another greenlet run, and with it the first
        # replies.
        tickets = [(datapath.id, message.xid) for datapath, message in requests]
        if requests:
            self.barriers.wait(tickets, action, time.monotonic(), timeout)
        self.send(requests)
        if not requests:
            action()


def to_switch(datapath: Datapath, messages: Iterable[Message]) -> list[Outgoing]:
    """Address messages to one switch."""
    return [(datapath, message) for message in messages]
