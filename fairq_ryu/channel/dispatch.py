"""Dispatch tables for the messages with the project's experimenter id: message number -> decoder and handler.

A message's module declares each direction that it can decode as an :class:`Incoming`. Each end of the channel
has tables of its own, which add a handler to the messages that this end receives: ``agent/window_channel.py``
for the agent, ``control/arrivals/agent_messages.py`` for the controller. A new message is one module here,
one handler and one line of the table in the end that receives it. Window rules and dropped packets are
standard OpenFlow messages (FLOW_MOD, PACKET_IN), and are not dispatched here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

Body = TypeVar("Body")
Context = TypeVar("Context")
Result = TypeVar("Result")


class ExperimenterMessage(NamedTuple):
    """An experimenter message, or a part of a multipart reply: ``more`` follow. ``number``: its ``exp_type``;
    ``xid``: its transaction id; ``data``: its body.
    """

    experimenter: int
    number: int
    xid: int
    more: bool
    data: bytes


@dataclass(frozen=True)
class Incoming(Generic[Body]):
    """One direction of a message: its number (``exp_type``), its name in log lines, and the decoder of its
    body. ``decode`` raises ValueError if the body is malformed.
    """

    number: int
    name: str
    decode: Callable[[bytes], Body]


class MalformedBody(ValueError):
    """The body of a message cannot be decoded; the text says why."""


class TooMuch(Exception):
    """A peer sends more of one thing than any of ours has: its connection is to be ended."""


class Route(Generic[Context, Result]):
    """A message that one end handles."""

    def __init__(self, incoming: Incoming[Any], handler: Callable[[Context, Any], Result]) -> None:
        self.incoming, self._handler = incoming, handler

    def __call__(self, context: Context, body: bytes) -> Result:
        """Decode the body and call the handler with it. Raises :class:`MalformedBody`; other exceptions are
        the handler's.
        """
        try:
            decoded = self.incoming.decode(body)
        except ValueError as error:
            raise MalformedBody(str(error)) from None
        return self._handler(context, decoded)


class DispatchTable(Generic[Context, Result]):
    """The messages that one end handles, by number."""

    def __init__(self) -> None:
        self._routes: dict[int, Route[Context, Result]] = {}

    def add(self, incoming: Incoming[Body], handler: Callable[[Context, Body], Result]) -> None:
        """Handle a message. Raises ValueError if the number has a handler already."""
        if incoming.number in self._routes:
            raise ValueError(f"message {incoming.number} has two handlers")
        self._routes[incoming.number] = Route(incoming, handler)

    def get(self, number: int) -> Route[Context, Result] | None:
        """The route of a message; None if this end does not handle it."""
        return self._routes.get(number)
