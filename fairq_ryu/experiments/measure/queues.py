"""Queues of the switch: readings of the agent and of tc, and the differences between two readings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.kernel_qdiscs import KernelQdisc, QdiscCounts
from fairq_ryu.experiments.measure import stats
from fairq_ryu.experiments.traffic.workers import RunError
from mininet_topos.commands import CommandError, run
from mininet_topos.patience import patient


class JudgedPackets(NamedTuple):
    """What the queue laws of a port have done, in packets."""

    judged: int
    dropped: int
    marked: int

    def since(self, before: JudgedPackets | None) -> JudgedPackets:
        """What they have done between two readings; None: the port had no law yet."""
        if before is None:
            return self
        return JudgedPackets(*(now - then for now, then in zip(self, before, strict=True)))


class QueueReading(NamedTuple):
    """Counters of one port since its agent started; only differences of two readings are meaningful."""

    limit: int
    """buffer, bytes"""
    byte_ns: int
    """backlog added up over time, bytes times ns"""
    clock_ns: int
    """when this was read"""
    drops: int
    packets: int
    rewritten: int
    """ACKs whose window was lowered on this port"""
    histogram: list[tuple[float, float, float]]
    """time in ns at each depth, see `stats.Histogram`"""
    law: str = ""
    """the queue law in force, with its variant if it has several; "": none"""
    judged: JudgedPackets | None = None
    """what that law and those before it have done; None: no law"""
    agent_drops: bool = False
    """the agent has dropped what would not fit, to recover or report it"""


def agent_socket(bridge: str) -> str:
    """The socket at which the agent of ``bridge`` tells its status."""
    from fairq_ryu.agent.status import socket_path

    return str(socket_path(bridge))


def read_status(bridge: str) -> dict[str, Any]:
    """The status of the agent of ``bridge``. ``RunError`` when it cannot be read."""
    # Not with `fairq status`, which takes a second to start, for each of up to 20 switches. Imported here:
    # only a run needs it, and it takes half a second to load.
    from fairq_ryu.agent.status import ANSWER_S, ask

    try:
        return ask(bridge, patient(ANSWER_S))
    except UserError as error:
        raise RunError(f"cannot read the status of the agent of {bridge}: {error.message}") from None


def queue_of(status: Mapping[str, Any], port: str) -> QueueReading:
    """The counters of the port with interface name ``port``. ``RunError`` when the agent shows none."""
    for each in status.get("ports", []):
        if each["name"] == port:
            queue = each.get("queue")
            if queue is None:
                raise RunError(f"the agent shows no queue for port {port}: it has not seen a packet there")
            return QueueReading(
                limit=queue["limit"],
                byte_ns=queue["byte_ns"],
                clock_ns=queue["clock_ns"],
                drops=queue["drops"],
                packets=queue["packets"],
                rewritten=each["rewritten"],
                histogram=[(low, high, ns) for low, high, ns in queue["histogram"]],
                law=_law(each.get("queue_law")),
                judged=_judged(each.get("queue_law")),
                agent_drops=_has_dropped(status),
            )
    raise RunError(f"the agent does not show port {port}")


def _has_dropped(status: Mapping[str, Any]) -> bool:
    """Whether the agent has taken packets before a queue could refuse them."""
    recovered = (status.get("recovery") or {}).get("losses") or {}
    return any(recovered.values()) or bool((status.get("drop_reports") or {}).get("told"))


def _law(state: Mapping[str, Any] | None) -> str:
    """The name of the queue law in a port's status."""
    if state is None:
        return ""
    return f"{state['kind']} {state['variant']}".strip()


def _judged(state: Mapping[str, Any] | None) -> JudgedPackets | None:
    return None if state is None else JudgedPackets(state["judged"], state["dropped"], state["marked"])


def between(before: QueueReading, after: QueueReading) -> dict[str, Any]:
    """Mean and p99 of the depth (bytes), drops, packets, ACKs rewritten, and what the queue law has done
    (None without one) between two readings.
    """
    elapsed = after.clock_ns - before.clock_ns
    if elapsed <= 0:
        raise RunError("two readings of the queue at the same time, or the agent restarted between them")
    depths = stats.histogram_difference(before.histogram, after.histogram)
    return {
        "seconds": elapsed / 1e9,
        "mean_bytes": (after.byte_ns - before.byte_ns) / elapsed,
        "p99_bytes": stats.time_percentile(depths, 0.99),
        "drops": after.drops - before.drops,
        "packets": after.packets - before.packets,
        "acks_rewritten": after.rewritten - before.rewritten,
        "law": None if after.judged is None else after.judged.since(before.judged)._asdict(),
        "histogram": [[low, high, ns] for low, high, ns in depths if ns > 0],
    }


class PortLosses(NamedTuple):
    """Packets that a port has lost since its queue was created, as the kernel counts them."""

    refused: int
    """by the queue itself; Open vSwitch's userspace datapath may have lost more packets of the same batch"""
    taken: int
    """single packets dropped at tc egress before the queue could refuse them. Only differences of two
    readings are meaningful, and during traffic a reading may be wrong by the packets that pass between two
    counters.
    """

    @property
    def all(self) -> int:
        """The number of packets lost at the port by the kernel's counters."""
        return self.refused + self.taken

    def since(self, before: PortLosses) -> PortLosses:
        """The losses between two readings."""
        return PortLosses(self.refused - before.refused, max(0, self.taken - before.taken))


def sent_bytes(interface: str) -> int:
    """Bytes, with Ethernet headers, that have left by ``interface`` since it was created. `RunError` when
    they cannot be read.
    """
    try:
        return int(Path(f"/sys/class/net/{interface}/statistics/tx_bytes").read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read what has left by {interface}: {error}") from None


def qdiscs(interface: str) -> list[dict[str, Any]]:
    """The qdiscs of ``interface`` with their counters, as tc's JSON has them. `RunError` when they cannot be
    read.
    """
    try:
        listed: list[dict[str, Any]] = json.loads(run(["tc", "-s", "-j", "qdisc", "show", "dev", interface]))
    except (CommandError, json.JSONDecodeError) as error:
        raise RunError(f"cannot read the queue of {interface}: {error}") from None
    return listed


def losses(interface: str, qdisc: KernelQdisc | None = None) -> PortLosses:
    """The losses of the queue of ``interface`` for want of room, as tc counts them; ``qdisc``: what it has in
    place of a FIFO. `RunError` when it cannot be read.

    tc has no counter for packets that a filter at egress drops: it is the difference between the counters of
    clsact and of the root qdisc.
    """
    with _own_queue(interface):
        return read_losses(qdiscs(interface), qdisc)


def qdisc_counts(interface: str, qdisc: KernelQdisc) -> QdiscCounts:
    """What the qdisc of ``interface`` has counted. `RunError` when it cannot be read."""
    with _own_queue(interface):
        return qdisc.counts(qdiscs(interface))


@contextmanager
def _own_queue(interface: str) -> Iterator[None]:
    try:
        yield
    except LookupError:
        raise RunError(
            f"interface {interface} has lost its queue: something else changed its qdisc"
        ) from None


def read_losses(listed: Sequence[Mapping[str, Any]], qdisc: KernelQdisc | None = None) -> PortLosses:
    """The losses of one interface, from tc's JSON of its qdiscs; of a ``qdisc`` of the kernel not those by
    its law. ``LookupError`` without root or without its queue.
    """
    # The root also counts what its leaf dropped, so only the leaf is read.
    kind = "bfifo" if qdisc is None else qdisc.kind
    dropped = next((int(each["drops"]) for each in listed if each["kind"] == kind), None)
    root = next((each for each in listed if each.get("root")), None)
    if dropped is None or root is None:
        raise LookupError(kind)
    refused = dropped if qdisc is None else qdisc.counts(listed).full
    seen = next((int(each["packets"]) for each in listed if each["kind"] == "clsact"), None)
    if seen is None:
        return PortLosses(refused, 0)
    return PortLosses(refused, seen - int(root["packets"]) - int(root["qlen"]) - dropped)
