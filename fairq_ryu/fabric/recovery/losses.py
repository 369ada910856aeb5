"""Segments that were lost and are not forgotten: bounded in bytes per port and in time.

Pure bookkeeping for :mod:`~fairq_ryu.fabric.recovery.recovery`, which decides what is done about them. A
loss is known by its direction and sequence number; the least lately touched of a port is thrown out first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fairq_ryu.model import FlowKey, PortKey

# What remembering a loss costs besides its frame, bytes.
ENTRY_BYTES = 256
# One flow gets at most this part of what a port may remember.
FLOW_PART = 4


@dataclass(slots=True)
class Loss:
    """A segment that ``port`` has dropped. ``frame`` is empty when it is not to be put back (any more),
    ``touched`` when it was last reported or acted on, in seconds; ``tell``: duplicates are due when the
    receiver's acknowledgement gets here; ``times_back``: so often it was put back; ``stamped``: it carries a
    timestamp (RFC 7323); ``cleared`` since when there is room for it, and only its receiver's answer is
    waited for (None: it has to wait for room).
    """

    flow: FlowKey
    seq: int
    port: PortKey
    touched: float
    frame: bytes = b""
    tell: bool = False
    times_back: int = 0
    stamped: bool = False
    cleared: float | None = None

    @property
    def cost(self) -> int:
        """Bytes that remembering it takes."""
        return ENTRY_BYTES + len(self.frame)

    @property
    def open(self) -> bool:
        """Is anything left to do about it?"""
        return self.tell or bool(self.frame)


@dataclass(slots=True)
class _Port:
    """What one port has lost, least lately touched first. ``turns``: flows with frames that wait for room;
    ``cleared``: losses that wait for their receivers' answers only, the first one first.
    """

    losses: dict[tuple[FlowKey, int], Loss] = field(default_factory=dict)
    turns: dict[FlowKey, None] = field(default_factory=dict)
    cleared: dict[tuple[FlowKey, int], Loss] = field(default_factory=dict)
    used: int = 0
    used_by: dict[FlowKey, int] = field(default_factory=dict)


class Losses:
    """The losses of all ports: ``bytes_per_port`` at most, and none older than ``age_s`` seconds."""

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
        """The ports that have lost something."""
        return list(self._ports)

    @property
    def flows(self) -> Iterable[FlowKey]:
        """The directions that have lost something."""
        return self._flows

    def used(self, port: PortKey) -> int:
        """Bytes that a port takes."""
        known = self._ports.get(port)
        return known.used if known else 0

    def get(self, flow: FlowKey, seq: int) -> Loss | None:
        """The loss of that segment, if it is known."""
        return self._flows.get(flow, {}).get(seq)

    def of_flow(self, flow: FlowKey) -> list[Loss]:
        """The losses of a direction, longest known first."""
        return list(self._flows.get(flow, {}).values())

    def of_port(self, port: PortKey) -> list[Loss]:
        """The losses of a port, least lately touched first."""
        known = self._ports.get(port)
        return list(known.losses.values()) if known else []

    # Changes

    def add(self, loss: Loss) -> int:
        """Remember a loss that is not known. Returns how many were thrown out; the new one may be among
        them, if it is larger than all that a port may take.

        The oldest of the same flow go first if the flow has its part, then the oldest of the port.
        """
        if loss.cost > self.bytes_per_port:
            return 1
        thrown = 0
        most = max(self.bytes_per_port // FLOW_PART, loss.cost)
        while (known := self._ports.get(loss.port)) and known.used_by.get(loss.flow, 0) + loss.cost > most:
            self.drop(next(each for each in self.of_flow(loss.flow) if each.port == loss.port))
            thrown += 1
        while (known := self._ports.get(loss.port)) and known.used + loss.cost > self.bytes_per_port:
            self.drop(next(iter(known.losses.values())))
            thrown += 1
        port = self._ports.setdefault(loss.port, _Port())
        self._flows.setdefault(loss.flow, {})[loss.seq] = loss
        port.losses[loss.flow, loss.seq] = loss
        if loss.frame:
            port.turns.setdefault(loss.flow)
        _charge(port, loss.flow, loss.cost)
        return thrown

    def drop(self, loss: Loss) -> None:
        """Forget a loss that is known."""
        port, flow = self._ports[loss.port], self._flows[loss.flow]
        del flow[loss.seq], port.losses[loss.flow, loss.seq]
        port.cleared.pop((loss.flow, loss.seq), None)
        _charge(port, loss.flow, -loss.cost)
        if self._waiting(loss.flow, loss.port) is None:
            port.turns.pop(loss.flow, None)
        if not flow:
            del self._flows[loss.flow]
        if not port.losses:
            del self._ports[loss.port]

    def touch(self, loss: Loss, now: float) -> None:
        """Something was done about it: it is the newest of its port."""
        loss.touched = now
        losses = self._ports[loss.port].losses
        losses[loss.flow, loss.seq] = losses.pop((loss.flow, loss.seq))

    def expire(self, port: PortKey, now: float) -> int:
        """Forget what is too old; returns how many."""
        count = 0
        while (known := self._ports.get(port)) is not None:
            oldest = next(iter(known.losses.values()))
            if not self.is_old(oldest, now):
                break
            self.drop(oldest)
            count += 1
        return count

    def is_old(self, loss: Loss, now: float) -> bool:
        """Has nothing been heard of it for too long?"""
        return now - loss.touched > self.age_s

    # Putting back

    def next_frame(self, port: PortKey) -> Loss | None:
        """The loss whose frame is next when there is room: flows take turns, of one flow it is the oldest."""
        known = self._ports.get(port)
        if known is None or not known.turns:
            return None
        return self._waiting(next(iter(known.turns)), port)

    def clear(self, loss: Loss, now: float) -> None:
        """There is room for its frame; whether it is to be sent is for its receiver to say."""
        port = self._ports[loss.port]
        loss.cleared = now
        port.cleared[loss.flow, loss.seq] = loss
        self._next_turn(port, loss)

    def cleared(self, port: PortKey) -> list[Loss]:
        """The losses of a port that wait for their receivers only, the first one first."""
        known = self._ports.get(port)
        return list(known.cleared.values()) if known else []

    def put_back(self, loss: Loss, now: float) -> None:
        """Its frame has been sent. The loss stays known, for the case that the frame is dropped again."""
        port = self._ports[loss.port]
        _charge(port, loss.flow, -len(loss.frame))
        loss.frame = b""
        loss.times_back += 1
        self.touch(loss, now)
        if loss.cleared is None:
            self._next_turn(port, loss)
        else:
            loss.cleared = None
            del port.cleared[loss.flow, loss.seq]

    def _next_turn(self, port: _Port, loss: Loss) -> None:
        del port.turns[loss.flow]
        if self._waiting(loss.flow, loss.port) is not None:
            port.turns[loss.flow] = None  # after all others

    def _waiting(self, flow: FlowKey, port: PortKey) -> Loss | None:
        for loss in self._flows.get(flow, {}).values():
            if loss.frame and loss.port == port and loss.cleared is None:
                return loss
        return None


def _charge(port: _Port, flow: FlowKey, change: int) -> None:
    port.used += change
    left = port.used_by.get(flow, 0) + change
    if left:
        port.used_by[flow] = left
    else:
        port.used_by.pop(flow, None)
