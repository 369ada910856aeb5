"""What the switches' records say of connections, and how far it is to be believed.

Every switch tells about once a second of all flows it has seen. A record stays in a switch when its flow
has taken another way, or has ended where the switch could not see it, and grows old: its idle time is
what tells. Switches tell one after the other, so nothing may depend on who came last.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairq_ryu.fabric.flows.connection import Connection, Direction, FlowEvent, FlowState, SeenFlow
from fairq_ryu.fabric.flows.entries import Entries

# Copies may be ahead of the records, and segments behind the rules that move them: for so long after a
# change, records that do not fit it yet are not held against it. Seconds.
GRACE = 2.0
# A record looks younger than it is by the time its message took; no more than this. Seconds.
LAG = 0.5


def reconcile(
    entries: Entries, dpid: int, seen: Iterable[SeenFlow], idle_timeout: float, now: float
) -> list[FlowEvent]:
    """Make the entries agree with what a switch has told; see :meth:`FlowTable.reconcile`."""
    entries.telling.add(dpid)
    events: list[FlowEvent] = []
    records = [record for record in seen if record.idle <= idle_timeout]
    for record in records:
        connection = entries.by_flow.get(record.key)
        if connection is None or connection.directions[record.key].closed:
            events += _adopt(entries, connection, record, now)
    moving: list[tuple[Connection, SeenFlow, bool]] = []
    for record in records:
        connection = entries.by_flow.get(record.key)
        if connection is None:
            continue
        direction = connection.directions[record.key]
        direction.moved_at = max(direction.moved_at, now - record.idle)
        if direction.closed:
            events += _revive(entries, connection, record, now)
        ended = _says_ended(direction, record, now)
        if ended and not direction.closed:
            events += _end(entries, connection, record, now)
        if direction.closed:
            continue
        if not ended:
            _note(entries, connection, record, now)
        moving.append((connection, record, ended))
    # Both directions are noted by now: what is told of one is what the other has announced.
    for connection, record, ended in moving:
        # Of what has ended here and goes on elsewhere, this switch only says by where it leaves.
        if not ended or connection.directions[record.key].ports:
            events += _locate(entries, connection, record, now)
    return events + _leave_unlisted(entries, dpid, now)


def _adopt(entries: Entries, connection: Connection | None, record: SeenFlow, now: float) -> list[FlowEvent]:
    """A record of no connection that is known, or of one whose direction has ended. It is one if it moves.

    A switch that has missed the end of a connection lists it, ever more idle, long after the entry is
    gone. While the entry is kept such a record is known for what it is; so one that has moved within that
    time cannot be of a connection that has ended. One that is merely silent is adopted when it moves
    again; until then it counts for nothing anyway.
    """
    if record.closed or record.idle >= entries.closed_timeout - LAG:
        return []
    if connection is not None and not _is_another(connection, record, now):
        return []
    events = [] if connection is None else entries.remove(connection)
    new = Connection.new(record.key, FlowState.ESTABLISHED, now, now - record.idle)
    return events + (entries.add(new) or [])


def _is_another(connection: Connection, record: SeenFlow, now: float) -> bool:
    """Is it a record of a connection that took the ports of one that is listed here as ended?

    What FIN has ended, and moves without being flagged, has seen another handshake. That is certain when
    both directions had ended, or at the receiver's switch, which no segment misses; where that is not
    known, no switch on the way must say otherwise. ``GRACE``, because a FIN may be lost on its way, too.
    """
    direction = connection.directions[record.key]
    if direction.reset:
        return False  # it may be alive itself
    since = max(each.closed_at for each in connection.directions.values())
    if connection.state is FlowState.CLOSED:
        return now - record.idle > since + LAG
    certain = direction.edge == record.port.dpid if direction.hops else not direction.ended_by
    return certain and now - record.idle > direction.closed_at + GRACE


def _revive(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> list[FlowEvent]:
    """A record of a direction that has ended.

    A forged reset does not end a connection: what moves well after it is alive. The switches' flags do not
    tell, for the reset has set them, too. After a FIN a direction still moves, with the acknowledgements
    of what the other side has left to send.
    """
    direction = connection.directions[record.key]
    if not direction.reset or now - record.idle <= direction.closed_at + LAG:
        return []
    direction.revived_at, direction.cleared = now, frozenset()
    return entries.revive(connection, record.key, now)


def _says_ended(direction: Direction, record: SeenFlow, now: float) -> bool:
    """Does a switch say that a direction has ended? What it calls closed soon after that turned out not to
    be, it calls so because of the reset, and will for ever.
    """
    dpid, just_revived = record.port.dpid, now - direction.revived_at <= GRACE
    if not record.closed:
        if just_revived:
            direction.cleared |= {dpid}
        if direction.mistaken or direction.ended_by:
            direction.mistaken -= {dpid}
            direction.ended_by -= {dpid}
        return False
    if just_revived and dpid not in direction.cleared:
        direction.mistaken |= {dpid}
    ended = dpid not in direction.mistaken
    # A switch that the direction passes by by now has no say.
    if ended and now - record.idle >= direction.moved_at - GRACE:
        direction.ended_by |= {dpid}
    else:
        direction.ended_by -= {dpid}
    return ended


def _end(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> list[FlowEvent]:
    """A switch has seen the end of a direction that goes on as far as copies say.

    The last word is the receiver's switch's, which neither handshake nor FIN can miss. Elsewhere flags may
    be wrong: nothing but a handshake takes one away, so it stays where the last connection of these ports
    came by, if this one was moved there later; and where a connection was moved to after its FIN, it has
    none. Where that switch is not known or tells nothing, all that count the direction must agree.

    Soon after its handshake, a connection may be told of as its predecessor; before that, it has no
    records.
    """
    direction, dpid = connection.directions[record.key], record.port.dpid
    if now - connection.heard_at <= GRACE or connection.state is FlowState.SYN_SEEN:
        return []
    # One that had ended before the connection was adopted is counted nowhere: then where the other one is.
    ports = direction.ports or connection.directions[record.key.reversed].ports
    counted = {port.dpid for port in ports} & entries.telling
    deciding = {direction.edge} & counted or counted
    if dpid in deciding and deciding <= direction.ended_by:
        return entries.finish(connection, record.key, now, told=True)
    return []


def _note(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> None:
    """Note what is told of a direction that is alive."""
    direction, moved_at = connection.directions[record.key], now - record.idle
    connection.listed_at = now
    if moved_at > connection.heard_at:
        # Each switch counts what has left by it; the one that has seen most has seen all.
        direction.bytes = max(direction.bytes, record.bytes)
        direction.rewritten = max(direction.rewritten or 0, record.rewritten)
        # From the opener's own switch it is longest, which is what the opener knows.
        connection.rtt = max(connection.rtt or 0.0, record.rtt) or None
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
        entries.placement.listed(flow, port.dpid, now)
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
        for direction in connection.directions.values():
            direction.ended_by -= {dpid}
        ports = connection.directions[flow].ports
        events += entries.placement.leave(connection, flow, [port for port in ports if port.dpid == dpid])
        if not connection.counted:
            events += entries.remove(connection)
    return events
