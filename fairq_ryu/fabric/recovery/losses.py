"""The stored losses, bounded in bytes per port and in time.

Pure bookkeeping for :mod:`~fairq_ryu.fabric.recovery.recovery`, which decides on the actions. A loss is
identified by its direction and sequence number. A full port removes the least recently used losses first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from fairq_ryu.fabric.flows.connection import is_after
from fairq_ryu.model import FlowKey, PortKey

# The size of a stored loss without its frame, bytes.
ENTRY_BYTES = 256
# One flow may use at most 1/FLOW_PART of the bytes of a port.
FLOW_PART = 4


@dataclass(slots=True)
class Loss:
    """A segment that ``port`` has dropped. ``frame``: empty if it is not to be reinjected (any more);
    ``touched``: when it was last reported or acted on, seconds; ``duplicates_due``: duplicate ACKs are to be
    sent when the receiver's acknowledgement number reaches it; ``times_back``: the number of its
    reinjections; ``stamped``: it has a timestamp (RFC 7323); ``length``: the sequence numbers that it
    occupies; ``cleared``: since when there is room in the queue and only the receiver's state is missing,
    seconds (None: it waits for room); ``check``: when the receiver is to have acknowledged the copy that was
    sent, seconds (None: none was sent, or nothing is expected); ``unanswered``: how often it had not.
    """

    flow: FlowKey
    seq: int
    port: PortKey
    touched: float
    frame: bytes = b""
    duplicates_due: bool = False
    times_back: int = 0
    stamped: bool = False
    length: int = 1
    cleared: float | None = None
    check: float | None = None
    unanswered: int = 0

    @property
    def cost(self) -> int:
        """The bytes that it uses in the store."""
        return ENTRY_BYTES + len(self.frame)

    @property
    def open(self) -> bool:
        """Whether an action for it is outstanding, or may become necessary."""
        return self.duplicates_due or bool(self.frame)

    def is_overdue(self, now: float) -> bool:
        """Whether its receiver had to acknowledge a copy before now."""
        return self.check is not None and self.check <= now

    def is_acked(self, ack: int) -> bool:
        """Whether this acknowledgement number covers all of it."""
        return not is_after(self.seq + self.length, ack)


@dataclass(slots=True)
class _Port:
    """The losses of one port, least recently used first. ``turns``: flows with frames that wait for room, in
    their order; ``cleared``: losses that wait for their receivers' state only, oldest first; ``in_flight``:
    losses of which a copy was sent that their receivers have to acknowledge, in the order of sending.
    """

    losses: dict[tuple[FlowKey, int], Loss] = field(default_factory=dict)
    turns: dict[FlowKey, None] = field(default_factory=dict)
    cleared: dict[tuple[FlowKey, int], Loss] = field(default_factory=dict)
    in_flight: dict[tuple[FlowKey, int], Loss] = field(default_factory=dict)
    used: int = 0
    used_by: dict[FlowKey, int] = field(default_factory=dict)


class Losses:
    """The losses of all ports: at most ``bytes_per_port`` bytes each, and none older than ``age_s``
    seconds.
    """

    def __init__(self, bytes_per_port: int, age_s: float) -> None:
        self.bytes_per_port = bytes_per_port
        self.age_s = age_s
        self._flows: dict[FlowKey, dict[int, Loss]] = {}
        self._ports: dict[PortKey, _Port] = {}

    def __len__(self) -> int:
        return sum(len(port.losses) for port in self._ports.values())

    def __iter__(self) -> Iterator[Loss]:
        return (loss for port in self._ports.values() for loss in port.losses.values())

    @property
    def ports(self) -> list[PortKey]:
        """The ports with losses."""
        return list(self._ports)

    @property
    def flows(self) -> Collection[FlowKey]:
        """The directions with losses."""
        return self._flows

    def used(self, port: PortKey) -> int:
        """The bytes that the losses of a port use."""
        known = self._ports.get(port)
        return known.used if known else 0

    def get(self, flow: FlowKey, seq: int) -> Loss | None:
        """The loss of a segment; None if it is not stored."""
        return self._flows.get(flow, {}).get(seq)

    def of_flow(self, flow: FlowKey) -> list[Loss]:
        """The losses of a direction, in the order in which they were stored."""
        return list(self._flows.get(flow, {}).values())

    def of_port(self, port: PortKey) -> list[Loss]:
        """The losses of a port, least recently used first."""
        known = self._ports.get(port)
        return list(known.losses.values()) if known else []

    # Changes

    def add(self, loss: Loss) -> int:
        """Store a new loss. Returns the number of losses that were removed, or refused: a loss larger than
        the limit of a port is not stored.

        If the flow exceeds its part, its own oldest losses are removed first, then the oldest of the port.
        Before any of them, the frames go of which a copy was sent.
        """
        if loss.cost > self.bytes_per_port:
            return 1
        removed = 0
        allowed = max(self.bytes_per_port // FLOW_PART, loss.cost)
        while (known := self._ports.get(loss.port)) and known.used_by.get(loss.flow, 0) + loss.cost > allowed:
            own = [each for each in self.of_flow(loss.flow) if each.port == loss.port]
            removed += self._make_room([each for each in own if each.check is not None], own)
        while (known := self._ports.get(loss.port)) and known.used + loss.cost > self.bytes_per_port:
            removed += self._make_room(known.in_flight.values(), known.losses.values())
        port = self._ports.setdefault(loss.port, _Port())
        self._flows.setdefault(loss.flow, {})[loss.seq] = loss
        port.losses[loss.flow, loss.seq] = loss
        if loss.frame:
            port.turns.setdefault(loss.flow)
        _charge(port, loss.flow, loss.cost)
        return removed

    def _make_room(self, in_flight: Iterable[Loss], all_of_them: Iterable[Loss]) -> int:
        """Let the first frame in flight go; without any, remove the first loss. Returns the number of losses
        that were removed.
        """
        copied = next(iter(in_flight), None)
        if copied is not None:
            self.settle(copied)
            return 0
        self.drop(next(iter(all_of_them)))
        return 1

    def drop(self, loss: Loss) -> None:
        """Remove a stored loss."""
        port, flow = self._ports[loss.port], self._flows[loss.flow]
        del flow[loss.seq], port.losses[loss.flow, loss.seq]
        port.cleared.pop((loss.flow, loss.seq), None)
        port.in_flight.pop((loss.flow, loss.seq), None)
        _charge(port, loss.flow, -loss.cost)
        if self._waiting(loss.flow, loss.port) is None:
            port.turns.pop(loss.flow, None)
        if not flow:
            del self._flows[loss.flow]
        if not port.losses:
            del self._ports[loss.port]

    def touch(self, loss: Loss, now: float) -> None:
        """A loss was reported or acted on: it becomes the most recently used of its port."""
        loss.touched = now
        losses = self._ports[loss.port].losses
        losses[loss.flow, loss.seq] = losses.pop((loss.flow, loss.seq))

    def expire(self, port: PortKey, now: float) -> int:
        """Remove losses that are too old; returns their number."""
        count = 0
        while (known := self._ports.get(port)) is not None:
            oldest = next(iter(known.losses.values()))
            if not self.is_old(oldest, now):
                break
            self.drop(oldest)
            count += 1
        return count

    def is_old(self, loss: Loss, now: float) -> bool:
        """Whether it was not reported or acted on for longer than the limit."""
        return now - loss.touched > self.age_s

    # Reinjection

    def next_frame(self, port: PortKey) -> Loss | None:
        """The loss whose frame is next when there is room: of the flow whose turn it is, the one with the
        lowest sequence number.
        """
        known = self._ports.get(port)
        if known is None or not known.turns:
            return None
        return self._waiting(next(iter(known.turns)), port)

    def clear(self, loss: Loss, now: float) -> None:
        """There is room for its frame in the queue; now it waits for the state of its receiver."""
        port = self._ports[loss.port]
        loss.cleared = now
        port.cleared[loss.flow, loss.seq] = loss
        self._next_turn(port, loss)

    def cleared(self, port: PortKey) -> list[Loss]:
        """The losses of a port that wait for their receivers' state only, oldest first."""
        known = self._ports.get(port)
        return list(known.cleared.values()) if known else []

    def reinjected(self, loss: Loss, now: float, check: float | None = None) -> None:
        """Its frame was sent. Its receiver has to acknowledge it until ``check``, and the frame is kept until
        then. None: nothing is expected, and only the loss stays stored, in case the frame is dropped again.
        """
        port = self._ports[loss.port]
        loss.times_back += 1
        self.touch(loss, now)
        waited_for_room = loss.cleared is None
        loss.cleared = None
        port.cleared.pop((loss.flow, loss.seq), None)
        loss.check = check
        if check is None:
            self.settle(loss)
        else:
            port.in_flight[loss.flow, loss.seq] = loss
        if waited_for_room:
            self._next_turn(port, loss)

    def overdue(self, now: float) -> Iterator[Loss]:
        """The losses whose receivers had to acknowledge a copy before now."""
        for port in self._ports.values():
            yield from (loss for loss in port.in_flight.values() if loss.is_overdue(now))

    def requeue(self, loss: Loss) -> None:
        """The copy in flight is taken for lost: its frame waits for room again."""
        port = self._ports[loss.port]
        del port.in_flight[loss.flow, loss.seq]
        loss.check = None
        port.turns.setdefault(loss.flow)

    def settle(self, loss: Loss) -> None:
        """Its frame is not kept any longer."""
        port = self._ports[loss.port]
        port.in_flight.pop((loss.flow, loss.seq), None)
        loss.check = None
        _charge(port, loss.flow, -len(loss.frame))
        loss.frame = b""

    def _next_turn(self, port: _Port, loss: Loss) -> None:
        del port.turns[loss.flow]
        if self._waiting(loss.flow, loss.port) is not None:
            port.turns[loss.flow] = None  # after all others

    def _waiting(self, flow: FlowKey, port: PortKey) -> Loss | None:
        first: Loss | None = None
        for loss in self._flows.get(flow, {}).values():
            waits = loss.frame and loss.port == port and loss.cleared is None and loss.check is None
            if waits and (first is None or is_after(first.seq, loss.seq)):
                first = loss
        return first


def _charge(port: _Port, flow: FlowKey, change: int) -> None:
    port.used += change
    left = port.used_by.get(flow, 0) + change
    if left:
        port.used_by[flow] = left
    else:
        port.used_by.pop(flow, None)
