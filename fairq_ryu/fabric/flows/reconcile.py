"""Updates the flow table from the flow records of the switches, and decides which records are valid.

A record stays in a switch after its flow has taken another path, or has ended where the switch could not see
it; then only its idle time shows that it is old. Switches report one after the other, so the result must not
depend on their order.

A switch reports the changes since its last report; :mod:`~fairq_ryu.fabric.flows.changes` applies them by the
rules here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from fairq_ryu.fabric.flows.connection import Connection, Direction, FlowEvent, FlowState, SeenFlow
from fairq_ryu.fabric.flows.entries import Entries
from fairq_ryu.fabric.flows.listing import LAG

# Copies may arrive before the records, and segments may follow new rules late: for this time after a change,
# records that contradict it are ignored. Seconds.
GRACE = 2.0
# Records or directions in a step: a millisecond.
STEP = 50

_T = TypeVar("_T")


def parts(each: Iterable[_T]) -> Iterator[list[_T]]:
    """The same in lists of :data:`STEP`."""
    rest = iter(each)
    while part := list(islice(rest, STEP)):
        yield part


# The three phases of a record


def _enter(entries: Entries, record: SeenFlow, now: float) -> list[FlowEvent]:
    """Add an entry for a connection that is not known, or is another than the one that has ended."""
    connection = entries.by_flow.get(record.key)
    if connection is None or connection.directions[record.key].closed:
        return _adopt(entries, connection, record, now)
    return []


def _refresh(entries: Entries, record: SeenFlow, now: float) -> list[FlowEvent]:
    """Update the state of a direction."""
    connection = entries.by_flow.get(record.key)
    if connection is None:
        return []
    events: list[FlowEvent] = []
    direction = connection.directions[record.key]
    direction.moved_at = max(direction.moved_at, now - record.idle)
    if direction.closed:
        events += _revive(entries, connection, record, now)
    ended = _reports_end(direction, record, now)
    if ended and not direction.closed:
        events += _end(entries, connection, record, now)
    if not direction.closed and not ended:
        update(entries, connection, record, now)
    return events


def _place(entries: Entries, record: SeenFlow, now: float) -> list[FlowEvent]:
    """Update the port of a direction that is alive."""
    connection = entries.by_flow.get(record.key)
    if connection is None or connection.directions[record.key].closed:
        return []
    direction = connection.directions[record.key]
    # Of a direction that has ended here and continues elsewhere, only the port is valid.
    ended = record.closed and record.port.dpid not in direction.stale_closed
    if ended and not direction.ports:
        return []
    return _locate(entries, connection, record, now)


PHASES = (_enter, _refresh, _place)
"""What is done with records, in this order. The data of one direction contains options of the other, so both
are up to date before either is placed."""


def _adopt(entries: Entries, connection: Connection | None, record: SeenFlow, now: float) -> list[FlowEvent]:
    """Handle a record of an unknown connection, or of a direction that has ended: add an entry if the record
    shows recent segments.

    A switch that has missed the end of a connection keeps its record, with growing idle time, long after the
    entry was removed. Until then the entry identifies such records. So a record with a segment in the last
    ``closed_timeout`` cannot belong to a connection that has ended. A connection that is only idle is added
    when it has sent again (:func:`adopt_alive`); an idle one is not counted anyway.
    """
    if record.closed or record.idle >= entries.closed_timeout - LAG:
        return []
    if connection is not None and not _is_another(connection, record, now):
        return []
    events = [] if connection is None else entries.remove(connection)
    return events + _add(entries, record, now)


def adopt_alive(entries: Entries, record: SeenFlow, now: float) -> list[FlowEvent]:
    """Handle a record of a connection that has sent since the switch reported it last, and had no entry then
    either: it is alive, however long ago its last segment was. One that says a word every few seconds may be
    reported some seconds after it each time.
    """
    known = entries.by_flow.get(record.key) is not None
    return [] if record.closed or known else _add(entries, record, now)


def _add(entries: Entries, record: SeenFlow, now: float) -> list[FlowEvent]:
    new = Connection.new(record.key, FlowState.ESTABLISHED, now, now - record.idle)
    return entries.add(new) or []


def _is_another(connection: Connection, record: SeenFlow, now: float) -> bool:
    """Whether the record belongs to a newer connection with the same ports as an entry that has ended.

    A direction that ended by FIN and sends without the closed flag has had another handshake. This is certain
    if both directions had ended, or if the receiver's switch reports it, because all segments pass that
    switch. If that switch is not known, no switch on the path may report the end. ``GRACE`` is needed because
    a FIN may be lost on its way.
    """
    direction = connection.directions[record.key]
    if direction.reset:
        return False  # the old connection may still be alive
    since = max(each.closed_at for each in connection.directions.values())
    if connection.state is FlowState.CLOSED:
        return now - record.idle > since + LAG
    certain = direction.edge == record.port.dpid if direction.hops else not direction.ended_by
    return certain and now - record.idle > direction.closed_at + GRACE


def _revive(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> list[FlowEvent]:
    """Handle a record of a direction that has ended: revive it if a reset has ended it and it still sends.

    A forged reset does not end a connection: a direction with segments clearly after it is alive. The closed
    flags of the records do not help, because the reset has set them as well. Segments after a FIN prove
    nothing: they acknowledge the remaining data of the other side.
    """
    direction = connection.directions[record.key]
    if not direction.reset or now - record.idle <= direction.closed_at + LAG:
        return []
    direction.revived_at, direction.reported_open = now, frozenset()
    return entries.revive(connection, record.key, now)


def _reports_end(direction: Direction, record: SeenFlow, now: float) -> bool:
    """Whether a record validly reports the end of a direction. A closed flag soon after the direction was
    revived comes from the reset, and that switch may never clear it.
    """
    dpid, just_revived = record.port.dpid, now - direction.revived_at <= GRACE
    if not record.closed:
        if just_revived:
            direction.reported_open |= {dpid}
        if direction.stale_closed or direction.ended_by:
            direction.stale_closed -= {dpid}
            direction.ended_by -= {dpid}
        return False
    if just_revived and dpid not in direction.reported_open:
        direction.stale_closed |= {dpid}
    ended = dpid not in direction.stale_closed
    # A switch that is no longer on the direction's path does not count.
    if ended and now - record.idle >= direction.moved_at - GRACE:
        direction.ended_by |= {dpid}
    else:
        direction.ended_by -= {dpid}
    return ended


def _end(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> list[FlowEvent]:
    """Handle a record that reports the end of a direction that is open by the copies.

    The receiver's switch decides, because every handshake and every FIN passes it. The flags of other
    switches may be wrong: only a handshake, or data behind the end, clears the flag, so the flag of an
    earlier connection with the same ports remains on a path to which this connection was moved later; and a
    switch to which a connection was moved after its FIN has no flag. If the receiver's switch is not known or
    sends no records, all switches that count the direction must agree.

    Shortly after a handshake the records may still be those of the earlier connection; during the handshake
    there are none of the new one.
    """
    direction, dpid = connection.directions[record.key], record.port.dpid
    if now - connection.copied_at <= GRACE or connection.state is FlowState.SYN_SEEN:
        return []
    # A direction that had ended before the entry was added has no ports: use those of the other direction.
    ports = direction.ports or connection.directions[record.key.reversed].ports
    counted = {port.dpid for port in ports} & entries.reporting_switches
    deciding = {direction.edge} & counted or counted
    if dpid in deciding and deciding <= direction.ended_by:
        return entries.finish(connection, record.key, now, by_record=True)
    return []


def update(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> None:
    """Update a direction that is alive from a record."""
    direction, moved_at = connection.directions[record.key], now - record.idle
    connection.listed_at = now
    if moved_at > connection.copied_at:
        # Each switch counts the segments that have passed it; the largest count is the total.
        direction.bytes = max(direction.bytes, record.bytes)
        direction.rewritten = max(direction.rewritten or 0, record.rewritten)
        # The largest value is measured at the opener's switch and is closest to the opener's own RTT.
        connection.rtt = max(connection.rtt or 0.0, record.rtt) or None
    if direction.isn is None:
        direction.wscale, direction.mss = record.wscale, record.mss
    if connection.state is FlowState.SYN_SEEN:
        if record.key == connection.forward or moved_at <= connection.copied_at + LAG:
            return
        # The copy of the SYN-ACK was lost, but the answering side has sent segments after it.
        entries.set_state(connection, FlowState.ESTABLISHED)
    connection.last_seen = max(connection.last_seen, moved_at)


def _locate(entries: Entries, connection: Connection, record: SeenFlow, now: float) -> list[FlowEvent]:
    """Count a direction at the port of a record, unless the record is out of date.

    A flow that gets another path leaves its record in the switches of the old one. So the known path has
    precedence over every record until a record shows a segment more than ``GRACE`` after the change of the
    path, because rules and messages take time. A record is also out of date if another switch has seen a
    segment more than ``GRACE`` later: a segment passes all switches on its path almost at the same time.
    """
    flow, port = record.key, record.port
    direction, moved_at = connection.directions[flow], now - record.idle
    settled_at = connection.path_since + GRACE
    if moved_at < direction.moved_at - GRACE and direction.moved_at > settled_at:
        here = [other for other in direction.ports if other.dpid == port.dpid]
        return entries.flow_ports.leave(connection, flow, here)
    if port not in direction.hops and (moved_at <= settled_at or moved_at < connection.copied_at - LAG):
        entries.flow_ports.confirm(flow, port.dpid, now)
        return []
    return entries.flow_ports.enter(connection, flow, port, now)


def leave_unlisted(entries: Entries, dpid: int, now: float, limit: float) -> Iterator[list[FlowEvent]]:
    """Remove directions that a switch does not list, and that nothing has confirmed since ``limit``, from its
    ports, unless a copy is newer.
    """
    for part in parts(entries.flow_ports.not_confirmed_since(dpid, limit)):
        events: list[FlowEvent] = []
        for flow in part:
            connection = entries.by_flow.get(flow)
            if connection is None or now - connection.copied_at <= GRACE:
                continue
            if connection.state is FlowState.SYN_SEEN:
                continue  # switches record a connection only after its SYN is answered
            for direction in connection.directions.values():
                direction.ended_by -= {dpid}
            ports = connection.directions[flow].ports
            gone = [port for port in ports if port.dpid == dpid]
            events += entries.flow_ports.leave(connection, flow, gone)
            if not connection.counted:
                events += entries.remove(connection)
        yield events
