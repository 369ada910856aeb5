"""Window laws that run in the switch: what a controller asks of an agent.

A law is an object of the window channel, as a meter is in OpenFlow: it has a kind and parameters, and does
nothing until a rule of a port refers to it. Its parameters are relative to the port's buffer, so that they
stay right when the port changes; the agent works out bytes from the buffer and the rate of the port.

Each kind is a class in its folder, ``fairq_ryu/laws/NAME``, found by :mod:`fairq_ryu.laws.registry`: nothing
else knows it by name.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntFlag
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

PPM = 1_000_000
FRAME = 1514
"""A full Ethernet frame, bytes: the packet in which laws count."""


class Mode(IntFlag):
    """What a law is doing (``FQ_MODE_...``). ``LIMITING``: it limits every flow because of an incast (IQM) or
    congestion (SED); ``FLOORED``: the flows' minimum windows are more than the pool.
    """

    LIMITING = 1
    FLOORED = 2


FIRST_WINDOW = 10
"""Segments that hosts send at once (RFC 6928)."""

FLOOR_SEGMENTS = 2
"""Linux sends segments of at most half of the largest window it has seen: with windows of one segment, it
sends twice as many packets. Where the buffer does not hold two of each flow, the laws go down to one."""

SYN_ALLOWANCE = 256
"""More connections than an aggregator opens in one volley; so few that a flood of SYNs limits windows for
0.1 s in 10 s."""

LOOP_GAIN = 0.4
"""Of a pool. It is an integrator that answers after a round trip: from 0.5 on a step of the queue overshoots;
pi / 2 would not settle."""

TICK_US = 200
"""T of the laws with a pool. A fifth of the round trip that they assume, so that a pool follows its queue in
small steps; a packet of 1514 bytes takes as long at 60 Mbit/s, and slower ports tick at every packet."""


class Parameter(NamedTuple):
    """A parameter of a law on the wire: ``code`` as in :mod:`struct`, inclusive bounds, and its meaning with
    the unit.
    """

    name: str
    code: str
    least: int
    most: int
    text: str


def parameter(default: int, code: str, least: int, most: int, text: str) -> Any:
    """A field of a law that is a :class:`Parameter`."""
    return field(default=default, metadata={"parameter": (code, least, most, text)})


class Parameters:
    """A kind of law with its parameters, in the order of the wire: the common ones, and its own after them.

    ``kind``: its number on the wire and in the eBPF maps; ``name``: that of its folder.
    """

    __slots__ = ()
    kind: ClassVar[int]
    name: ClassVar[str]

    @classmethod
    @cache
    def parameters(cls) -> tuple[Parameter, ...]:
        """All parameters of the kind."""
        return tuple(
            Parameter(each.name, *each.metadata["parameter"])
            for each in fields(cls)  # type: ignore[arg-type]
        )

    @classmethod
    def usual(cls, name: str) -> int:
        """The default of a parameter. Settings that stand for one take it from here."""
        (found,) = (each for each in fields(cls) if each.name == name)  # type: ignore[arg-type]
        return int(found.default)  # type: ignore[arg-type]

    @classmethod
    @cache
    def layout(cls) -> struct.Struct:
        """The parameters on the wire."""
        return struct.Struct("!" + "".join(each.code for each in cls.parameters()))

    def pack(self) -> bytes:
        """The parameters as bytes."""
        return self.layout().pack(*(getattr(self, each.name) for each in self.parameters()))

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """A law with these parameters; bounds are not checked. Raises ValueError on a wrong length."""
        if len(data) != cls.layout().size:
            size = cls.layout().size
            raise ValueError(f"the parameters of a law of kind {cls.name} are {size} bytes, not {len(data)}")
        return cls(*cls.layout().unpack(data))

    def wrong(self) -> str | None:
        """The first parameter that is out of its bounds, or why they contradict each other; None: neither."""
        for name, _, least, most, _ in self.parameters():
            value = getattr(self, name)
            if not least <= value <= most:
                return f"{name} {value} is not between {least} and {most}"
        return self.contradiction()

    def contradiction(self) -> str | None:
        """Why parameters that are within their bounds contradict each other, in words; None: they do not."""
        return None

    def own(self, limit: int, rate: int) -> Mapping[str, int | Mapping[str, int]]:
        """What the kind has of its own in the maps on a port with this buffer (bytes) and rate (bytes/s): the
        values of ``struct NAME_law`` of its ``law.h``, of a struct within it by its names.
        """
        return {}


@dataclass(frozen=True, slots=True)
class LawSpec(Parameters):
    """The common part of all window laws. Times in microseconds, ``..._ppm`` in millionths of the buffer.

    A kind says by its class what it needs: ``has_pool``, its flows share a pool; ``shows_incast``, its limit
    means an incast; ``counts_syns``, a flow begins with its SYN, not only with the answer to it;
    ``keeps_flows``, it has a state of each flow (its ``law.h`` has the hooks ``sent`` and ``acked``);
    ``whole_floor``, the floor of each flow in turns is ``floor_segments``, not one; ``by_tenant``, the window
    of a flow follows from the pool, so that it can be shared out among tenants first; ``loop_gain``, the part
    of the distance to the target that a pool moves in a round trip (0: no pool follows the queue).
    """

    has_pool: ClassVar[bool] = False
    shows_incast: ClassVar[bool] = False
    counts_syns: ClassVar[bool] = False
    keeps_flows: ClassVar[bool] = False
    whole_floor: ClassVar[bool] = False
    by_tenant: ClassVar[bool] = False
    loop_gain: ClassVar[float] = 0.0

    interval_us: int = parameter(TICK_US, "I", 50, 10_000, "T, minimum time between two ticks, microseconds")
    base_rtt_us: int = parameter(1000, "I", 0, 1_000_000, "round-trip time with empty queues, microseconds")
    target_ppm: int = parameter(
        250_000, "I", 10_000, PPM, "the queue length that the law aims at, millionths of the buffer"
    )
    syn_allowance: int = parameter(
        SYN_ALLOWANCE,
        "I",
        1,
        1_000_000,
        "limit against floods of SYNs: flows that count as new before their handshakes are complete; with "
        "turns, that many incomplete handshakes, and as many as the buffer holds segments, end the turns",
    )
    first_window: int = parameter(FIRST_WINDOW, "H", 1, 1000, "x, segments that a new flow sends at once")
    floor_segments: int = parameter(
        FLOOR_SEGMENTS, "B", 1, 10, "minimum window while the buffer holds that of all flows, segments"
    )
    turns: int = parameter(
        0, "B", 0, 1, "1: new connections take [turns](how-it-works.md#more-flows-than-segments)"
    )
    tenants: int = parameter(
        0, "B", 0, 1, "1: the pool is shared out among [tenants](policies/tenants.md) first"
    )

    def wrong(self) -> str | None:
        """As :meth:`Parameters.wrong`; a law that cannot share out a pool has no tenants."""
        if self.tenants == 1 and not self.by_tenant:
            return f"the law {self.name} has no pool that could be shared out among tenants"
        return Parameters.wrong(self)

    @property
    def young_below(self) -> int:
        """A flow that has sent fewer bytes counts as young; 0: the law counts no young flows."""
        return 0

    def target(self, limit: int) -> int:
        """The queue length that the law aims at on a port with this buffer, bytes."""
        return max(1, limit * self.target_ppm // PPM)

    def shares_pool(self, window: int) -> bool:
        """Whether the flows of a port share a pool now; ``window`` of every flow that the law limits, bytes
        (0: it does not).
        """
        return self.has_pool
