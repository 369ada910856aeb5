"""What the switches' records say of connections, and how far it is to be believed.

Every switch tells about once a second of all flows it has seen. A record stays in a switch when its flow
has taken another way, or has ended where the switch could not see it, and grows old: its idle time is
what tells. Switches tell one after the other, so nothing may depend on who came last.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairq_ryu.fabric.connection import Connection, FlowEvent, FlowState, SeenFlow
from fairq_ryu.fabric.entries import Entries

# Copies may be ahead of the records, and segments behind the rules that move them: for so long after a
# change, records that do not fit it yet are not held against it. Seconds.
GRACE = 2.0
# A record looks younger than it is by the time its message took; no more than this. Seconds.
LAG = 0.5


def reconcile(
    entries: Entries, dpid: int, seen: Iterable[SeenFlow], idle_timeout: float, now: float
) -> list[FlowEvent]:
    """Make the entries agree with what a switch has told; see :meth:`FlowTable.reconcile`."""
    events: list[FlowEvent] = []
    records = [record for record in seen if record.idle <= idle_timeout]
    for record in records:
        if record.key not in entries.by_flow:
            events += _adopt(entries, record, now)
    alive: list[tuple[Connection, SeenFlow]] = []
    for record in records:
        connection = entries.by_flow.get(record.key)
        if connection is None:
            continue
        entries.placement.listed(record.key, dpid, now)
        if connection.directions[record.key].closed:
            revived = _revive(entries, connection, record, now)
            if revived is None:
                continue
            events += revived
        elif record.closed and not connection.directions[record.key].disputed:
            events += _end(entries, connection, record, now)
            continue
        _note(entries, connection, record, now)
        alive.append((connection, record))
    # Both directions are noted by now: what is told of one is what the other has announced.
    for connection, record in alive:
        events += _locate(entries, connection, record, now)
    return events + _leave_unlisted(entries, dpid, now)


def _adopt(entries: Entries, record: SeenFlow, now: float) -> list[FlowEvent]:
    """A record of an unknown connection: it is one only if it moves.

    A switch that has missed the end of a connection lists it, ever more idle, long after the entry is
    gone. While the entry is kept such a record is known for what it is; so one that has moved within that
    time cannot be of a connection that has ended. One that is merely silent is adopted when it moves
    again; until then it counts for nothing anyway.
    """
    if record.closed or record.idle >= entries.closed_timeout - LAG:
        return []
    return entries.add(Connection.new(record.key, FlowState.ESTABLISHED, now, now - record.idle)) or []


def _revive(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> list[FlowEvent] | None:
    """A record of a direction that has ended; None if it may have.

    A forged reset does not end a connection: what moves well after it is alive. The switches' flags do not
    tell, for the reset has set them, too. After a FIN a direction still moves, with the acknowledgements
    of what the other side has left to send.
    """
    direction = connection.directions[record.key]
    if direction.reset_at is None or now - record.idle <= direction.reset_at + LAG:
        return None
    # From now on only copies end it: other switches' flags would do so again at every turn.
    direction.disputed = True
    return entries.revive(connection, record.key, now)


def _end(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> list[FlowEvent]:
    """A switch has seen the end of a direction that goes on as far as copies say.

    Soon after a handshake that may be of the last connection of these ports, and so may a record whose
    last segment is older than that. Before the answer to its SYN, a connection has no records.
    """
    young = now - connection.heard_at <= GRACE or now - record.idle < connection.heard_at - LAG
    if young or connection.state is FlowState.SYN_SEEN:
        return []
    return entries.finish(connection, record.key, now)


def _note(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> None:
    """Note what is told of a direction that is alive."""
    direction, moved_at = connection.directions[record.key], now - record.idle
    connection.listed_at = now
    direction.moved_at = max(direction.moved_at, moved_at)
    if moved_at > connection.heard_at:
        # Each switch counts what has left by it; the one that has seen most has seen all.
        direction.bytes = max(direction.bytes, record.bytes)
    if direction.isn is None:
        direction.wscale, direction.mss = record.wscale, record.mss
    if connection.state is FlowState.SYN_SEEN:
        if record.key == connection.forward or moved_at <= connection.heard_at + LAG:
            return
        # The copy of the SYN-ACK was lost, but the side that should answer has gone on.
        entries.set_state(connection, FlowState.ESTABLISHED)
    connection.last_seen = max(connection.last_seen, moved_at)


def _locate(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> list[FlowEvent]:
    """Whether a direction leaves by the port that a record says.

    A flow that is given another path leaves its record behind in the switches of the old one. So what was
    said of the path holds against every record until one moves that is surely later: ``GRACE`` after it,
    for rules take a moment, and so do messages. And a record is old if another switch has seen the flow
    for ``GRACE`` since, and this one has not: a segment passes all switches on its way at once.
    """
    flow, port = record.key, record.port
    direction, moved_at = connection.directions[flow], now - record.idle
    settled_at = connection.path_since + GRACE
    if moved_at < direction.moved_at - GRACE and direction.moved_at > settled_at:
        here = [other for other in direction.ports if other.dpid == port.dpid]
        return entries.placement.leave(connection, flow, here)
    if port not in direction.hops and (moved_at <= settled_at or moved_at < connection.heard_at - LAG):
        return []
    return entries.placement.enter(connection, flow, port, now)


def _leave_unlisted(entries: Entries, dpid: int, now: float) -> list[FlowEvent]:
    """Directions that a switch does not list leave its ports, unless copies are ahead of its records."""
    events: list[FlowEvent] = []
    for flow in entries.placement.not_listed_since(dpid, now - GRACE):
        connection = entries.by_flow.get(flow)
        if connection is None or now - connection.heard_at <= GRACE:
            continue
        if connection.state is FlowState.SYN_SEEN:
            continue  # a switch lists what was answered
        ports = connection.directions[flow].ports
        events += entries.placement.leave(connection, flow, [port for port in ports if port.dpid == dpid])
        if not connection.counted:
            events += entries.remove(connection)
    return events
