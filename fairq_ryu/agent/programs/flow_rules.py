"""The rules of single flows, as the window program reads them: those of controllers, and the agent's own,
which close the windows of connections that wait for their turn.

A flow has one rule. A controller's replaces the agent's, and the agent's never replaces a controller's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError, Map
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.model import FlowKey, WindowKind, WindowRule

# Rules of the agent have no counters.
_NO_SLOT = (1 << 32) - 1


def rule(window: WindowRule, expires_ns: int, slot: int) -> Any:
    """A rule as it is in the maps."""
    return layout.fq_rule(expires_ns=expires_ns, bytes=window.bytes, kind=window.kind.map_number, slot=slot)


class FlowRules:
    """The map ``flow_rules``. ``changed`` is called when :attr:`count` has changed."""

    def __init__(self, table: Map, changed: Callable[[], None]) -> None:
        self._table, self._changed = table, changed
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

    def install(self, flow: FlowKey, window: WindowRule, expires_ns: int, slot: int) -> None:
        """Install a controller's rule for the ACKs of ``flow``, or change it. Raises :class:`BpfError`."""
        key = flow_key(flow, directed=True)
        fresh = self._table.get(key) is None
        self._table.set(key, rule(window, expires_ns, slot))
        self._closed.discard(bytes(key))
        if fresh:
            self._count(1)

    def remove(self, flow: FlowKey) -> None:
        """Remove the rule for the ACKs of ``flow``."""
        self._remove(flow_key(flow, directed=True))

    def close(self, key: Any, until_ns: int) -> bool:
        """The window of a flow is 0 until then; ``key``: the direction of its ACKs. Returns False if it has a
        rule of a controller, or there is no room for one more.
        """
        known = bytes(key) in self._closed
        if not known and self._table.get(key) is not None:
            return False
        try:
            self._table.set(key, rule(WindowRule(WindowKind.WINDOW, 0), until_ns, _NO_SLOT))
        except BpfError:
            return False
        if not known:
            self._closed.add(bytes(key))
            self._count(1)
        return True

    def open(self, key: Any) -> None:
        """The window of a flow is no longer 0, unless a controller wants that."""
        if bytes(key) in self._closed:
            self._remove(key)

    def clear(self) -> None:
        """Remove all rules."""
        for key in list(self._table.keys()):
            self._table.delete(key)
        self._closed.clear()
        self._count(-self.count)

    def _remove(self, key: Any) -> None:
        self._closed.discard(bytes(key))
        if self._table.delete(key):
            self._count(-1)

    def _count(self, more: int) -> None:
        self.count += more
        self._changed()
