"""The rules of single flows, as the window program reads them: those of controllers, and the agent's own,
which close the windows of connections that wait for their turn.

A flow has one rule. A controller's replaces the agent's, and the agent's never replaces a controller's. Where
two bridges of the host have one for the same flow, the lower window applies until its lease ends or it is
removed; the other bridge's is then written when it is renewed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError, Map
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.turns import Closing
from fairq_ryu.model import FlowKey, WindowKind, WindowRule

# Rules of the agent have no counters.
_NO_SLOT = (1 << 32) - 1


def rule(window: WindowRule, expires_ns: int, slot: int) -> Any:
    """A rule as it is in the maps."""
    return layout.fq_rule(expires_ns=expires_ns, bytes=window.bytes, kind=window.kind.map_number, slot=slot)


def _closed_until(until_ns: int) -> Any:
    return rule(WindowRule(WindowKind.WINDOW, 0), until_ns, _NO_SLOT)


class FlowRules:
    """The map ``flow_rules``. ``changed`` is called when :attr:`count` has changed."""

    def __init__(self, table: Map, most_closed: int, changed: Callable[[], None]) -> None:
        """``most_closed``: rules of the agent, for which the map has room beside those of controllers."""
        self._table, self._most_closed, self._changed = table, most_closed, changed
        self._closed: set[bytes] = set()
        self.count = 0
        """The number of rules."""

    @property
    def fd(self) -> int:
        """The file descriptor of the map."""
        return self._table.fd

    @property
    def name(self) -> str:
        """The name of the map."""
        return self._table.name

    def install(self, flow: FlowKey, window: WindowRule, expires_ns: int, slot: int, own: range) -> None:
        """Install a controller's rule for the ACKs of ``flow``, or change it. ``own``: the slots of the
        bridge. Raises :class:`BpfError`.
        """
        key = flow_key(flow, directed=True)
        found: Any = self._table.get(key)
        lower = self._is_of_another(key, found, own) and found.bytes <= window.bytes
        if lower and found.expires_ns > time.monotonic_ns():
            return
        self._table.set(key, rule(window, expires_ns, slot))
        self._closed.discard(bytes(key))
        if found is None:
            self._count(1)

    def remove(self, flow: FlowKey, own: range) -> None:
        """Remove the rule of the bridge with the slots ``own`` for the ACKs of ``flow``."""
        key = flow_key(flow, directed=True)
        if not self._is_of_another(key, self._table.get(key), own):
            self._remove(key)

    def _is_of_another(self, key: Any, found: Any, own: range) -> bool:
        """Whether a rule that was found is a controller's, by another bridge."""
        return found is not None and bytes(key) not in self._closed and found.slot not in own

    def close(self, key: Any, until_ns: int) -> Closing:
        """The window of a flow is 0 until then; ``key``: the direction of its ACKs."""
        if self._table.get(key) is not None:
            return Closing.NEVER
        if len(self._closed) >= self._most_closed:
            return Closing.LATER
        self._closed.add(bytes(key))
        try:
            self._table.set(key, _closed_until(until_ns))
            self._count(1)
        except BpfError:
            self._closed.discard(bytes(key))
            if self._table.delete(key):
                self.count -= 1
            return Closing.LATER
        return Closing.DONE

    def keep_closed(self, key: Any, until_ns: int) -> bool:
        """A window that was closed stays so until then. Returns False if it is not closed any more."""
        if bytes(key) not in self._closed:
            return False
        try:
            self._table.set(key, _closed_until(until_ns))
        except BpfError:
            return False
        return True

    def open(self, key: Any) -> None:
        """The window of a flow is no longer 0, unless a controller wants that."""
        if bytes(key) in self._closed:
            self._remove(key)

    def _remove(self, key: Any) -> None:
        self._closed.discard(bytes(key))
        if self._table.delete(key):
            self._count(-1)

    def _count(self, more: int) -> None:
        self.count += more
        self._changed()
