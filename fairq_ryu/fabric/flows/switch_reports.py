"""What switches report of their flows, for the flow table: changes of their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairq_ryu.fabric.flows.changes import apply_changes, complete
from fairq_ryu.fabric.flows.connection import FlowEvent, SeenFlow
from fairq_ryu.fabric.flows.entries import Entries
from fairq_ryu.fabric.flows.listing import Listing
from fairq_ryu.model import FlowKey

REMOVED_PER_SLICE = 32
"""Connections that are removed in one slice of work that may be long."""


class SwitchReports:
    """The part of :class:`~fairq_ryu.fabric.flows.table.FlowTable` that agents' records come to."""

    idle_timeout: float
    _entries: Entries

    def lists(self, dpid: int) -> bool:
        """Whether a switch lists its flows: it has begun, and was not forgotten since."""
        return dpid in self._entries.listings

    def list_anew(self, dpid: int, now: float) -> None:
        """A switch begins to list its flows: what it listed before is not valid any more."""
        self._entries.listings[dpid] = Listing()
        self._entries.flow_ports.all_unlisted(dpid, now)

    def changed(
        self, dpid: int, seen: Sequence[SeenFlow], gone: Iterable[FlowKey], now: float
    ) -> list[FlowEvent]:
        """A switch that lists its flows has sent changes: records, and directions that are not listed any
        more. Both directions of a connection come together. :meth:`changes_complete` follows the last ones.
        """
        return apply_changes(self._entries, dpid, seen, gone, self.idle_timeout, now)

    def changes_complete(
        self, dpid: int, as_of: float, refresh: float, now: float
    ) -> Iterator[list[FlowEvent]]:
        """All changes of a switch up to ``as_of`` were received; it reports a direction that sends every
        ``refresh`` seconds. In short steps, between which other inputs may be processed.

        Unknown connections are added (they are older than the controller, or the copy of their SYN was lost);
        directions whose end was missed are closed; directions that are not listed are removed from the ports
        of the switch. A connection that is then at no port of any switch has ended. Closed and unanswered
        connections whose time limit has passed are removed.
        """
        yield from complete(self._entries, dpid, as_of, refresh, self.idle_timeout, now)
        yield self._entries.drop_expired(now, REMOVED_PER_SLICE)[1]
