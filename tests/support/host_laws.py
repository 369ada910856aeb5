"""The window laws as the switch runs them, compiled for the host: for tests, and models of a network."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from enum import IntEnum, IntFlag
from functools import cache
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any

from fairq_ryu.agent import law_header, layout
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.law_spec import LawSpec, Mode

NO_WINDOW: int = layout.CONSTANTS["FQ_NO_WINDOW"]
LIMIT, RATE, TARGET = 125_000, 25_000_000, 31_250
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
"""A hook of a law need not use all that it is given."""
_CHECKS = ["-fsanitize=undefined,unsigned-shift-base", "-fsanitize-trap=all"]
_U32 = (
    "fq_host_window",
    "fq_host_opening",
    "fq_host_acked",
    "fq_host_released",
    "fq_host_first_window",
    "fq_host_floor",
    "fq_host_expected",
    "fq_host_half_open",
    "fq_host_tenant_window",
    "fq_host_tenants_pool",
    "fq_host_whole_segments",
    "fq_host_tenant_time",
    "fq_host_tenant_weighs",
    "fq_host_least_index",
)


_MAPPED = IPv6Address("::ffff:0.0.0.0")
"""The beginning of IPv4 addresses in keys of flows."""


class Opening(IntEnum):
    """The steps of a handshake at which a law may count a direction (``FQ_OPENING_...``): its SYN leaves, and
    once more; it is answered; the answer is acknowledged.
    """

    SYN = 1
    AGAIN = 2
    SYN_ACK = 3
    PROVEN = 4


class LimitedBy(IntEnum):
    """What limits the pool (``FQ_LIMITED_BY_...``): the queue; its flows, which do not use their windows; the
    capacity of the port; or the flows' minimum windows.
    """

    QUEUE = 0
    FLOWS = 1
    CAP = 2
    FLOOR = 3


class OpeningFlags(IntFlag):
    """Of a direction: a law has counted it as one that begins, before its handshake was complete."""

    BEGUN = 4096
    UNPROVEN = 8192


NUMBERS = {
    "FQ_MODE_": (Mode,),
    "FQ_LIMITED_BY_": (LimitedBy,),
    "FQ_OPENING_": (Opening,),
}
"""The prefixes of the constants of ``layout.h``, and the numbers that are the same in Python."""


def build(sources: Path, into: Path, checked: bool = True) -> ctypes.CDLL:
    """The laws of a folder (``laws/host.c`` and what it includes) as a library. ``checked``: undefined
    behaviour ends the process, because clang's checks are compiled in.
    """
    found = into / "laws.so"
    flags = ["-O1", *WARNINGS, *_CHECKS] if checked else ["-O2"]
    flags += ["-shared", "-fPIC", f"-I{into}"]
    law_header.write(into)
    subprocess.run(["clang", *flags, "-o", str(found), str(sources / "laws/host.c")], check=True)
    library = ctypes.CDLL(str(found))
    for name in _U32:
        getattr(library, name).restype = ctypes.c_uint32
    library.fq_host_hold.restype = library.fq_host_least_excess.restype = ctypes.c_uint64
    library.fq_host_tenant_need.restype = ctypes.c_uint64
    return library


@cache
def library(checked: bool = True) -> ctypes.CDLL:
    """Our laws, compiled once for a process."""
    with tempfile.TemporaryDirectory() as folder:
        return build(layout.BPF_DIR, Path(folder), checked)


def fq_law(law: LawSpec | type[LawSpec], **changes: int) -> Any:
    """The parameters of a law, an ``fq_law``, those of a port of 200 Mbit/s and 125,000 bytes but for
    ``changes``, which may be of its own struct. A pool moves slowly.
    """
    spec = law if isinstance(law, LawSpec) else law()
    made = in_force(spec, changes.get("limit", LIMIT), changes.get("rate", RATE))
    common = {name for name, *_ in made._fields_}
    for name, value in ({"target": TARGET, "gain_q16": 983 if made.gain_q16 else 0} | changes).items():
        setattr(made if name in common else layout.own(f"{spec.name}_law", made), name, value)
    return made


def in_force(spec: LawSpec, limit: int = LIMIT, rate: int = RATE) -> Any:
    """The parameters with which an agent runs a law on a port with this buffer (bytes) and rate (bytes/s)."""
    return parameters(spec, QueueLimits("model", limit, rate))


class HostLaw:
    """One law on one port. ``parameters``: an ``fq_law``; ``state``: its ``fq_law_state``. Units: bytes, ns;
    ``pool`` is bytes << 8.
    """

    def __init__(self, parameters: Any, compiled: ctypes.CDLL | None = None) -> None:
        self.library = compiled or library()
        self.parameters = parameters
        self.state = layout.fq_law_state()
        self._input = layout.fq_law_input()
        self.driven_ns = 0
        """the time to which a trace has come"""
        self.refs = ctypes.byref(self.parameters), ctypes.byref(self.state)

    def own(self, struct: str) -> Any:
        """The part of the state that is the law's own, as this struct."""
        return layout.own(struct, self.state)

    @property
    def pool(self) -> int:
        """The pool in whole bytes."""
        return int(self.state.pool) >> 8

    @property
    def limits(self) -> bool:
        """Whether it limits every flow because of an incast or congestion."""
        return bool(self.state.mode & Mode.LIMITING)

    def is_due(self, now_ns: int) -> bool:
        """Whether a tick is due."""
        return bool(now_ns - self.state.last_ns >= self.parameters.interval_ns)

    def tick(self, now_ns: int, byte_ns: int, backlog: int, flows: int, young: int = 0) -> bool:
        """Run the law if it is due; returns whether it did. ``byte_ns``: the integral of the queue."""
        seen = self._input
        seen.now_ns, seen.byte_ns, seen.backlog, seen.flows, seen.young = (
            now_ns,
            byte_ns,
            backlog,
            flows,
            young,
        )
        return bool(self.library.fq_host_tick(*self.refs, ctypes.byref(seen)))

    def arrived(self, arrivals: Any, size: int) -> None:
        """Bytes arrive for a virtual queue; ``arrivals`` is its ``fq_arrivals``."""
        self.library.fq_host_arrivals_count(ctypes.byref(arrivals), ctypes.c_uint64(size))

    def load(self, arrivals: Any, backlog: int, now_ns: int, rate: int = 0) -> None:
        """A tick is due: work out the integral of the queue that the law is told of, ``length_ns``. ``rate``
        of the virtual queue, bytes/s; 0: that of the law.
        """
        rate = rate or self.parameters.rate
        self.library.fq_host_arrivals_tick(
            self.refs[0], ctypes.byref(arrivals), ctypes.c_uint64(rate), backlog, ctypes.c_uint64(now_ns)
        )

    def saw_segment(self, one: int, other: int, now_ns: int) -> None:
        """A flow has been seen whose ends announce these MSS (0: none)."""
        self.library.fq_host_segment(self.refs[1], one, other, ctypes.c_uint64(now_ns))

    def flow_began(self, backlog: int, now_ns: int) -> None:
        """A flow begins whose data leaves by the port."""
        self.library.fq_host_flow_began(*self.refs, backlog, ctypes.c_uint64(now_ns))

    def opening(self, step: int, flags: int, backlog: int, now_ns: int) -> int:
        """A handshake has come to a step (:class:`Opening`); ``flags`` (:class:`OpeningFlags`) of its
        direction. Returns the new flags.
        """
        return int(self.library.fq_host_opening(*self.refs, step, flags, backlog, ctypes.c_uint64(now_ns)))

    def flow_ended(self) -> None:
        """A flow has ended."""
        self.library.fq_host_flow_ended(*self.refs)

    def limited(self, flight: int, granted: int, rtt_ns: int, now_ns: int) -> None:
        """An ACK shows that a flow had ``flight`` of its ``granted`` bytes under way. Its handshake took
        ``rtt_ns``; 0: not known.
        """
        times = ctypes.c_uint64(rtt_ns), ctypes.c_uint64(now_ns)
        self.library.fq_host_limited(self.refs[1], flight, granted, *times)

    def released(self, measured: Any, acked: int, rtt_ns: int, now_ns: int) -> int:
        """Bytes that ACKs have released in a round trip between switch and sender; ``measured`` is the flow's
        ``fq_round``.
        """
        times = rtt_ns, ctypes.c_uint64(now_ns)
        return int(self.library.fq_host_released(ctypes.byref(measured), ctypes.c_uint64(acked), *times))

    def window(self, flows: int, young: int = 0, sent: int = 10**9, mss: int = 1460) -> int:
        """The window of a flow, which has sent so much in segments of ``mss``; `NO_WINDOW`: its own."""
        return int(self.library.fq_host_window(*self.refs, flows, young, ctypes.c_uint64(sent), mss))


class HostFlow:
    """A flow under a law that keeps a state of each; ``own``: the struct of the law, within ``state``."""

    def __init__(self, parameters: Any, struct: str) -> None:
        self.state = layout.fq_law_flow()
        self.own = layout.own(struct, self.state)
        self.parameters = parameters
        self._refs = ctypes.byref(self.parameters), ctypes.byref(self.state)

    def data_sent(self, backlog: int, length: int, payload: int, mss: int, again: bool) -> None:
        """Data leaves in a frame of ``length`` bytes, at this backlog. ``again``: it has left before."""
        library().fq_host_sent(*self._refs, backlog, length, payload, mss, int(again))

    def acknowledged(
        self, ack: int, next_seq: int, total: int, flight: int, mss: int, floor: int, echo: int = 0
    ) -> int:
        """An ACK (``fq_law_ack``). Returns the window of the flow, bytes."""
        seen = layout.fq_law_ack(
            ack=ack, next=next_seq, total=total, flight=flight, mss=mss, floor=floor, echo=echo
        )
        return int(library().fq_host_acked(*self._refs, ctypes.byref(seen)))


def drain(rate: int) -> int:
    """A rate in bytes per second as ``fq_queue.drain`` has it; at least the smallest, unless it is 0."""
    return max(1, ((rate << layout.CONSTANTS["FQ_DRAIN_SHIFT"]) + 10**9 // 2) // 10**9) if rate else 0


def least_index(address: str, slot: int) -> int:
    """Where the least round trip of a host is kept, as the far queue of this number sees it."""
    host = ip_address(address)
    words = (ctypes.c_uint32 * 4).from_buffer_copy(_MAPPED.packed[: 16 - len(host.packed)] + host.packed)
    return int(library().fq_host_least_index(words, slot))


class HostHidden:
    """The queue that a far queue stands for, as the switch infers it; ``state``: an ``fq_hidden``. Units:
    bytes, ns, bytes/s.
    """

    def __init__(self, line: int, buffer: int, share: float = 0.98, checked: bool = True) -> None:
        """``line`` 0: nobody knows the rate. ``lost``: segments that the queue has dropped so far."""
        self.lost = 0
        self.far = layout.fq_far_queue(line=line, base=int(line * share), limit=buffer, is_kept=1)
        self.state = layout.fq_hidden()
        self._library = library(checked)
        self._least: dict[object, Any] = {}

    def round_trip(self, host: object, took_ns: int, now_ns: int) -> int:
        """A round trip to a host took so long. Returns by how much that is more than the least one."""
        least = self._least.setdefault(host, layout.fq_least())
        excess = self._library.fq_host_least_excess(ctypes.byref(least), took_ns, ctypes.c_uint64(now_ns))
        self._library.fq_host_hidden_sample(ctypes.byref(self.state), ctypes.c_uint64(excess))
        return int(excess)

    def is_due(self, now_ns: int) -> bool:
        """Whether an interval would end with bytes that arrive now."""
        due = self._library.fq_host_hidden_is_due(ctypes.byref(self.state), ctypes.c_uint64(now_ns))
        return bool(due)

    def arrive(self, size: int, now_ns: int) -> int:
        """Bytes arrive. Returns the rate of the virtual queue."""
        self._library.fq_host_hidden_arrival(
            *(ctypes.byref(self.far), ctypes.byref(self.state)),
            *(ctypes.c_uint64(size), ctypes.c_uint64(self.lost), ctypes.c_uint64(now_ns)),
        )
        return int(self.state.rate)


class FedPort:
    """A law that ticks at its interval, with the queue that :meth:`feed` names. ``segment``: MSS of flows."""

    def __init__(self, law: HostLaw, segment: int = 1460) -> None:
        self.law = law
        self.now, self.area = 10**12, 0
        law.saw_segment(segment, segment, self.now)

    def feed(self, *queues: int, flows: int = 2, young: int = 0, used: bool = True) -> int:
        """A tick with each of these queues; returns the pool. ``used``: flows use their whole windows."""
        interval = int(self.law.parameters.interval_ns)
        for queue in queues:
            self.now += interval
            self.area += queue * interval
            if used:
                self.law.limited(1, 1, 0, self.now)
            assert self.law.tick(self.now, self.area, queue, flows, young)
        return self.law.pool


class ClosedLoop(FedPort):
    """Flows that always have their windows under way, through a path of ``rtt`` seconds: what exceeds the
    path is queued. A window takes effect a round trip later.
    """

    def __init__(self, law: HostLaw, flows: int, rtt: float, segment: int = 1460) -> None:
        super().__init__(law, segment)
        self.flows, self.rtt = flows, rtt
        self.queues: list[float] = []
        self.lost = 0.0
        self._windows: list[float] = []

    def run(self, seconds: float, young: int = 0) -> None:
        """Go on for so long."""
        interval = self.law.parameters.interval_ns / 1e9
        delay = max(1, round(self.rtt / interval))
        path = self.law.parameters.rate * self.rtt
        for _ in range(round(seconds / interval)):
            self._windows.append(float(self.flows * self.law.window(self.flows, young)))
            excess = max(0.0, self._windows[-delay:][0] - path)
            self.lost += max(0.0, excess - self.law.parameters.limit)
            self.queues.append(min(excess, self.law.parameters.limit))
            self.feed(round(self.queues[-1]), flows=self.flows, young=young)

    def mean_queue(self, seconds: float) -> float:
        """Of the last so many seconds, bytes."""
        last = self.queues[-round(seconds * 1e9 / self.law.parameters.interval_ns) :]
        return sum(last) / len(last)
