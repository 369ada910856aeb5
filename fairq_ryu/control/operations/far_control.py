"""Adding, changing and removing far queues of a running controller, by request.

A change counts when the agent has acknowledged it. It lasts until the next request about the port, and the
agent is told again whenever it connects. One that the agent refuses late, when the request has been answered
already, is taken back.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ryu.lib import hub

from fairq_ryu.channel.far_queues import MOST_TOLD, FarQueueState, Told
from fairq_ryu.config.far_queues import is_interface, written
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.operations.named_ports import NamedPorts
from fairq_ryu.control.operations.requests import WRONG, Key, Requests, Unstored
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FAR, FarQueue, is_far
from fairq_ryu.model import PortKey, dpid_text

_FAR_QUEUE = "far_queue"
_DPID = re.compile("[0-9a-f]{16}")
# So long is waited for an agent, seconds. It answers in milliseconds.
_ANSWER_S = 2.0
INTERVAL = 1.0
"""Late refusals are looked for this often, seconds."""


class Unacknowledged(UserError):
    """The agent has not answered; it may have the change."""


@dataclass(eq=False)
class FarControl:
    """Carries out such requests, one after the other. ``answer_s``: how long is waited for an agent,
    seconds.
    """

    windows: WindowController
    named: NamedPorts
    requests: Requests
    report: Callable[[Occurrence], object]
    log: logging.Logger
    answer_s: float = _ANSWER_S

    def __post_init__(self) -> None:
        """Nothing is under way."""
        self._turn = hub.Semaphore(1)
        self.requests.follow(_FAR_QUEUE, self._requested)

    def listed(self) -> Iterator[dict[str, Any]]:
        """The far queues of all connected agents:
        :class:`~fairq_ryu.rest.schema.rows.FarQueueRow`.
        """
        for _, link in sorted(self.windows.links.items()):
            for state in link.far_queues.states:
                yield self._row(link, state)

    def add(self, bridge: str, port: str, read: Callable[[str], FarQueue]) -> dict[str, Any]:
        """Let a port have a far queue, in place of the one that it has; ``read`` makes it from the name of
        the interface. Returns its row. Raises :class:`UserError` if there is no such port, for a wrong value,
        or if the agent refuses it; then nothing is changed. Raises :class:`Unacknowledged`.
        """
        with self._turn:
            link, key = self._find(bridge, port)
            queue = read(link.name(key.port))
            self._change(link, key, queue, f"far queue {written(queue)}")
            row = self._row_of(link, key)
        if row is None:
            raise UserError(f"the agent of bridge {bridge} has just lost port {queue.port}", "ask again")
        return row

    def remove(self, bridge: str, port: str) -> dict[str, Any]:
        """Let a port have no far queue, also if its configuration has one. Returns the row of that which it
        had. Raises likewise.
        """
        with self._turn:
            link, key = self._find(bridge, port)
            row = self._row_of(link, key)
            if row is None:
                raise UserError(
                    f"{link.name(key.port)} has no far queue", "fairq far lists those that there are"
                )
            self._change(link, key, None, "no far queue any more")
        return row

    def _find(self, bridge: str, port: str) -> tuple[AgentLink, PortKey]:
        """The agent and the port of a bridge."""
        dpid = self.named.bridge(bridge)
        link = self.windows.links.get(dpid)
        if link is None:
            raise UserError(f"the agent of bridge {bridge} is not connected", "start it, and ask again")
        key = self.named.port(port, dpid)
        if is_far(key.port):
            key = PortKey(dpid, key.port - FAR)
        name = link.name(key.port)
        if not name:
            raise UserError(
                f"the agent does not watch port {port}", "fairq doctor --bridge on its machine says why"
            )
        uplink = self.windows.uplinks.uplink_of(link, name)
        if uplink is not None:
            raise UserError(
                f"{name} is behind uplink {uplink}, whose rate is divided",
                f"change [uplink.{uplink}] of the configuration",
            )
        return link, key

    def _change(self, link: AgentLink, key: PortKey, queue: FarQueue | None, words: str) -> None:
        orders, name = self.windows.far_orders, link.name(key.port)
        before = orders.of(link.dpid)
        value: dict[str, Any] | None = _value(queue)
        try:
            if queue is None and name in before and self._told(link, orders.forget(link, name), before):
                # The configuration of the agent has none for this port: nothing must be remembered.
                answered, value = True, None if self._row_of(link, key) is None else value
            if value is not None:
                answered = self._told(link, orders.change(link, name, queue), before)
        except ValueError:
            raise UserError(
                f"{MOST_TOLD} far queues of this bridge were changed by request already",
                "write them into the configuration",
            ) from None
        # Without an answer, too: what is not stored ends with the next change.
        self.requests.store({_key(link, name): value})
        if not answered:
            raise Unacknowledged(
                f"the agent of bridge {link.modes.bridge} has not answered within {self.answer_s:g} s",
                "it is told again when it connects; GET /v1/far-queues has what it says",
            )
        text = f"{name} ({key.short}): {words}"
        self.log.info("%s", text)
        self.report(Occurrence(Kind.FAR, text, key))

    def _told(self, link: AgentLink, number: int, before: Told) -> bool:
        """Whether the agent has answered. Raises :class:`UserError` if it refuses, and undoes the change."""
        answered = link.far_queues.acknowledged(number, self.answer_s)
        reason = link.far_queues.refusal(number) if answered else None
        if reason is not None:
            self.windows.far_orders.undo(link.dpid, before)
            raise UserError(f"the agent refuses it: {reason}", "correct that, and ask again")
        return answered

    def take_back(self) -> None:
        """Let what is stored be what agents have, where they have refused a change after its request was
        answered.
        """
        for link in list(self.windows.links.values()):
            if self._instead(link) is not None:
                with self._turn, contextlib.suppress(Unstored):  # then at the next look
                    self._take_back(link)

    def _instead(self, link: AgentLink) -> tuple[Told, str] | None:
        return link.far_queues.instead(self.windows.far_orders.of(link.dpid))

    def _take_back(self, link: AgentLink) -> None:
        instead = self._instead(link)
        if instead is None:
            return  # another request came first
        (has, reason), told = instead, self.windows.far_orders.of(link.dpid)
        wrong = sorted({name for name, _ in has.items() ^ told.items()})
        self.requests.store({_key(link, name): _value(has[name]) if name in has else None for name in wrong})
        # The agent may have been restarted: then it has its configuration only.
        self.windows.far_orders.replace(link.dpid, has)
        for name in wrong:
            text = f"{name}: the request is taken back, because the agent refuses it: {reason}"
            self.log.warning("agent of bridge %s: %s", dpid_text(link.dpid), text)
            self.report(Occurrence(Kind.FAR, text, link.dpid))

    def _requested(self, names: Iterable[str]) -> None:
        """Far queues are others than before: remember it for bridges that may become ours, and tell the
        agents that have not been told.
        """
        changed = set(names)
        told: dict[str, dict[str, FarQueue | None]] = {name.partition(" ")[0]: {} for name in changed}
        for name, value in sorted(self.requests.of(_FAR_QUEUE).items()):
            dpid, _, port = name.partition(" ")
            if dpid not in told:
                continue
            try:
                if len(told[dpid]) == MOST_TOLD:
                    raise ValueError(f"the bridge has {MOST_TOLD} others already")
                queue = _queue(port, value)
            except WRONG as error:
                if name in changed:
                    self.log.error("the far queue of %r cannot be as it was requested: %s", name, error)
                continue
            told[dpid][port] = queue
        for dpid, queues in sorted(told.items()):
            if _DPID.fullmatch(dpid):
                self.windows.far_orders.replace(int(dpid, 16), queues)
            else:
                self.log.error("far queues were requested of %r, which is no bridge", dpid)

    def _row_of(self, link: AgentLink, key: PortKey) -> dict[str, Any] | None:
        found = (self._row(link, state) for state in link.far_queues.states if state.ofport == key.port)
        return next(found, None)

    def _row(self, link: AgentLink, state: FarQueueState) -> dict[str, Any]:
        queue = state.queue
        uplink = self.windows.uplinks.uplink_of(link, queue.port)
        leased = self.windows.uplinks.leased(link.dpid, queue.port)
        return {
            "dpid": dpid_text(link.dpid),
            "bridge": link.modes.bridge,
            "port": state.ofport,
            "far_port": FAR + state.ofport,
            "name": queue.port,
            "rate_bps": 8 * queue.rate or None,
            "buffer_bytes": queue.buffer or None,
            "share": queue.share,
            "origin": "request" if state.told else "configuration",
            "uplink": None if state.told else uplink,
            "leased_bps": None if leased is None else 8 * leased,
        }


def _key(link: AgentLink, name: str) -> Key:
    return Key(_FAR_QUEUE, f"{dpid_text(link.dpid)} {name}")


def _value(queue: FarQueue | None) -> dict[str, Any]:
    """A far queue as a request has it; empty: the port has none, whatever its configuration says."""
    return {} if queue is None else {"rate": queue.rate, "buffer": queue.buffer, "share": queue.share}


def _queue(port: str, value: Mapping[str, Any]) -> FarQueue | None:
    """Raises ValueError and others for one that no controller accepts."""
    if not is_interface(port):
        raise ValueError("it is no interface of a bridge")
    if value == {}:
        return None
    queue = FarQueue(port, int(value["rate"]), int(value["buffer"]), float(value["share"]))
    wrong = queue.wrong()
    if wrong is not None:
        raise ValueError(wrong)
    return queue
