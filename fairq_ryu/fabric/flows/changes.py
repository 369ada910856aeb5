"""Updates the flow table from the changes that switches report of their flow records.

A switch reports its flows once, and then what changes: records, and directions that it does not list any
more. They come in chunks, as fast as the controller applies them (:func:`apply_changes`); when the switch has
no more, :func:`complete` draws the conclusions that a list of all its flows would allow. Between its reports
a direction stays listed: the rules of :mod:`~fairq_ryu.fabric.flows.reconcile` hold as if the switch repeated
its records, but only those that contradict an entry are looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairq_ryu.fabric.flows.connection import FlowEvent, FlowState, SeenFlow
from fairq_ryu.fabric.flows.entries import Entries
from fairq_ryu.fabric.flows.listing import Listing
from fairq_ryu.fabric.flows.reconcile import GRACE, PHASES, adopt_alive, leave_unlisted, parts, update
from fairq_ryu.model import FlowKey


def apply_changes(
    entries: Entries,
    dpid: int,
    changed: Sequence[SeenFlow],
    removed: Iterable[FlowKey],
    idle_timeout: float,
    now: float,
) -> list[FlowEvent]:
    """Update the entries from a part of the changes of a switch: records, and directions that it does not
    list any more. Both directions of a connection are in one part.
    """
    entries.reporting_switches.add(dpid)
    listing, ports = entries.listings[dpid], entries.flow_ports
    listing.heard_at = now
    for key in removed:
        if listing.remove(key):
            ports.unlisted(key, dpid, now)
    changed = [each for each in changed if not _continues(entries, listing, each, idle_timeout, now)]
    records = [record for record in changed if record.idle <= idle_timeout]
    alive = [record for record in records if listing.has_sent_since(record.key, now - record.idle)]
    for record in changed:
        key = record.key if record.key in listing.flows else _own_key(entries, record.key)
        listing.add(key, record, now)
        ports.confirm(key, dpid, now)
    events = [event for record in alive for event in adopt_alive(entries, record, now)]
    events += [event for phase in PHASES for record in records for event in phase(entries, record, now)]
    for record in changed:
        _note_contradictions(entries, dpid, record.key)
    return events


def _continues(entries: Entries, listing: Listing, record: SeenFlow, idle_timeout: float, now: float) -> bool:
    """Whether a record says no more than that a direction continues as entry and listing have it: nearly all
    records of flows that send. Then its counters are noted here, and no rule needs to look at it.
    """
    key, port, closed, idle, _, wscale, mss, _, _ = record
    connection, listed = entries.by_flow.get(key), listing.flows.get(key)
    if connection is None or listed is None or connection.state is not FlowState.ESTABLISHED:
        return False
    direction, moved_at = connection.directions[key], now - idle
    if closed or listed.closed or idle > idle_timeout or direction.ports != (port,) or listed.port != port:
        return False
    if direction.stale_closed or direction.ended_by or now - direction.revived_at <= GRACE:
        return False
    if moved_at < direction.moved_at - GRACE:
        return False
    listed.moved_at, listed.wscale, listed.mss, listed.reported_at = moved_at, wscale, mss, now
    direction.moved_at = max(direction.moved_at, moved_at)
    update(entries, connection, record, now)
    listing.recheck.pop(key, None)
    return True


def complete(
    entries: Entries, dpid: int, as_of: float, refresh: float, idle_timeout: float, now: float
) -> Iterator[list[FlowEvent]]:
    """The switch has reported all changes up to ``as_of``; a direction that sends is reported every
    ``refresh`` seconds. In steps, between which other inputs may be processed; each returns its events.
    """
    listing = entries.listings[dpid]
    listing.heard_at = now
    for part in parts(list(listing.recheck)):
        events: list[FlowEvent] = []
        for key in part:
            events += _check_again(entries, dpid, key, as_of - refresh, idle_timeout, now)
        yield events
    yield from leave_unlisted(entries, dpid, now, as_of - GRACE)


def _check_again(
    entries: Entries, dpid: int, key: FlowKey, settled: float, idle_timeout: float, now: float
) -> list[FlowEvent]:
    """Handle a listed record that contradicts the entries, as if the switch repeated it; not if the direction
    may have sent since.
    """
    listing = entries.listings[dpid]
    listed = listing.flows.get(key)
    if listed is None:
        listing.recheck.pop(key, None)
        return []
    if listed.reported_at > settled:
        return []
    if now - listed.moved_at > idle_timeout:
        # It is idle: as if the switch did not list it any more.
        listing.remove(key)
        entries.flow_ports.unlisted(key, dpid, now)
        return []
    record = listed.record(key, now)
    events = [event for phase in PHASES for event in phase(entries, record, now)]
    _note_contradictions(entries, dpid, key)
    return events


def _own_key(entries: Entries, key: FlowKey) -> FlowKey:
    """The same key, that of the connection's entry if there is one: tens of thousands are kept."""
    connection = entries.by_flow.get(key)
    if connection is None:
        return key
    forward, backward = connection.directions
    return forward if forward == key else backward


def _note_contradictions(entries: Entries, dpid: int, key: FlowKey) -> None:
    """A switch has reported a direction: note whether this record, or that of another switch, contradicts the
    entry, so that it is checked again.
    """
    listing, connection = entries.listings[dpid], entries.by_flow.get(key)
    listed = listing.flows.get(key)
    if listed is None or connection is None:
        if listed is not None:
            listed.strange = True
        listing.recheck.pop(key, None)
        return
    direction = connection.directions[key]
    old = listed.moved_at < direction.moved_at - GRACE
    if listed.closed != direction.closed:
        listing.recheck[key] = None
    elif direction.closed or old or listed.port in direction.ports:
        listing.recheck.pop(key, None)
    else:
        listing.recheck[key] = None
    if len(direction.ports) > 1 and not old:
        for port in direction.ports:
            other = entries.listings.get(port.dpid)
            known = None if other is None else other.flows.get(key)
            if known is not None and known.moved_at < listed.moved_at - GRACE:
                entries.listings[port.dpid].recheck[key] = None
