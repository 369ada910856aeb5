"""Far queues as ports: an agent shows the queue in the switch above beside the port that it belongs to.

To controllers it is a port like others, which the bridge does not have: its number is that of the port with
a flag, and its interface index is an id by which the programs know it (``FQ_FAR`` in ``bpf/layout.h``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fairq_ryu.agent import layout
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.qdisc import FAR_KIND, QueueLimits
from fairq_ryu.far_queue import FAR, FarQueue, far_name

_MARK = layout.CONSTANTS["FQ_FAR"]
_LAST_NUMBER = FAR - 1
# Drivers whose links name a speed that they do not have.
_WITHOUT_RATE = ("veth", "tun")


def far_id(ifindex: int) -> int:
    """By what the programs know the far queue of a port."""
    return _MARK | ifindex


def port_index(known: int) -> int:
    """The interface index of the port, by that id."""
    return known & ~_MARK


def with_far_queues(ports: Iterable[BridgePort], queues: Mapping[str, FarQueue]) -> list[BridgePort]:
    """The ports, each followed by its far queue if it has one; ``queues`` by name of the interface."""
    found = []
    for port in ports:
        found.append(port)
        queue = queues.get(port.name)
        if queue is not None and port.ofport <= _LAST_NUMBER:
            number, known = FAR | port.ofport, far_id(port.ifindex)
            found.append(replace(port, ofport=number, name=far_name(port.name), ifindex=known, far=queue))
    return found


def without_port(queues: Iterable[FarQueue], ports: Iterable[BridgePort]) -> list[str]:
    """The interfaces with a far queue that are no ports here."""
    names = {port.name for port in ports}
    return [queue.port for queue in queues if queue.port not in names]


def known_line(port: BridgePort) -> int:
    """The rate of the line by which the data of a far queue arrives, bytes per second, as a lease, the
    configuration or the link says; 0: none does.
    """
    assert port.far is not None
    return port.far.line(_link(port))


def _link(port: BridgePort) -> int:
    return 0 if port.driver in _WITHOUT_RATE else port.speed // 8


def stands_for(port: BridgePort, found: int = 0) -> int:
    """Bytes of the queue that a far queue stands for (:meth:`FarQueue.stands_for`); 0: not known. ``found``:
    the rate of the line, bytes per second, where neither the configuration nor the link says it.
    """
    assert port.far is not None
    return port.far.stands_for(_link(port) or found)


def far_limits(port: BridgePort, found: int = 0) -> QueueLimits:
    """The limits of the virtual queue of a far queue; ``found`` as in :func:`stands_for`."""
    assert port.far is not None
    limit, rate = port.far.limits(known_line(port) or found)
    if not rate:
        reason = (
            f"neither the link of {port.far.port} nor [far_queues] says a rate; it is found when the queue "
            "in the switch above fills"
        )
        return QueueLimits(FAR_KIND, 0, 0, reason)
    return QueueLimits(FAR_KIND, limit, rate)
