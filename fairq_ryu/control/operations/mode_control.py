"""Disabling and enabling ports of a running controller: by request, and by time.

A disable ends when its time is over, or when the ports are enabled. Where several controllers share a fabric,
all statements are one request, so that two that come to two controllers at the same time have an order: the
second to be stored is made again on top of the first.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fairq_ryu.control.operations.named_ports import NamedPorts
from fairq_ryu.control.operations.requests import WRONG, Key, Requests, Unstored
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.control.windows.disables import LIMIT, Disables, Scope, Statement
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.model import PortKey, PortMode, dpid_text, short_dpid

_Seen = dict[PortKey, tuple[PortMode, int]]
_Changes = dict[str, Any]
_DISABLES = Key("disables")
# No value of a request.
_NOTHING = object()
# Attempts to store a statement while others store theirs.
_ATTEMPTS = 20


@dataclass(eq=False)
class ModeControl:
    """Carries out disables and enables. ``now`` in seconds. Every method that changes something returns after
    the rules of the ports have been sent.
    """

    fabric: FabricController
    windows: WindowController
    requests: Requests
    report: Callable[[Occurrence], object]
    log: logging.Logger

    def disable(self, bridge: str | None, port: str | None, seconds: float | None, now: float) -> _Changes:
        """Let ports have no windows, for some time or (None) until they are enabled. Returns what has
        changed. Raises :class:`UserError` for an unknown bridge or port, and
        :class:`~fairq_ryu.control.windows.disables.TooMany`; then nothing is changed.
        """
        scope = self._scope(bridge, port)
        until = math.inf if seconds is None else now + seconds
        words = "disabled" if seconds is None else f"disabled for {seconds:g} s"
        return self._change(scope, words, lambda found: found.disable(scope, until), now)

    def enable(self, bridge: str | None, port: str | None, now: float) -> _Changes:
        """Let ports have the mode of the configuration again. As :meth:`disable`."""
        scope = self._scope(bridge, port)
        return self._change(scope, "enabled", lambda found: found.enable(scope), now)

    def tick(self, now: float) -> None:
        """End the disables whose time is over."""
        if self._disables.next_end > now:
            return
        before, over = self._modes(), self._disables.expire(now)
        self._apply(now)
        for scope in dict.fromkeys(over):
            self._reported(scope, "the time of a disable is over", self._changed(scope, before))

    def __post_init__(self) -> None:
        """Find ports by what requests call them."""
        self.named = NamedPorts(self.fabric, self.windows, self.requests.shared)
        self._storing: Any = _NOTHING
        self.requests.follow(_DISABLES.kind, self._requested)

    @property
    def _disables(self) -> Disables:
        return self.windows.modes.disables

    # Changes

    def _change(self, scope: Scope, words: str, change: Callable[[Disables], None], now: float) -> _Changes:
        before = self._modes()
        for _ in range(_ATTEMPTS):
            stored, wanted = self.requests.get(*_DISABLES), Disables(self._disables.statements())
            change(wanted)
            value = [_value(each, now) for each in wanted.statements()] or None
            self._storing = value
            try:
                if self.requests.store({_DISABLES: value}, {_DISABLES: stored}):
                    break
            finally:
                self._storing = _NOTHING
        else:
            raise Unstored("other controllers change the modes of ports all the time: ask again")
        if self.requests.get(*_DISABLES) == value:
            self._disables.replace(wanted)
        self._apply(now)
        changed = self._changed(scope, before)
        self._reported(scope, words, changed)
        return {"what": self._named(scope), "ports": changed}

    def _requested(self, _: Iterable[str]) -> None:
        """The statements are others than before, perhaps by another controller."""
        value, now = self.requests.get(*_DISABLES), time.monotonic()
        if value == self._storing:
            return  # its own
        self._disables.replace(Disables(self._read(value, now)))
        self._apply(now)

    def _read(self, value: Any, now: float) -> Iterator[Statement]:
        """The statements of a request, without those that are over."""
        for each in value if isinstance(value, list) else [] if value is None else [value]:
            try:
                statement = _statement(each, now)
            except WRONG as error:
                self.log.error("ports cannot be disabled or enabled as it was requested, %r: %s", each, error)
                continue
            if statement.until is None or statement.until > now:
                yield statement

    def _apply(self, now: float) -> None:
        self.windows.mode_changes.apply(now)
        self.fabric.pause_holds(bool(self._disables))

    def _modes(self) -> _Seen:
        """The mode of every port, and the number of its rules."""
        modes, engine = self.windows.modes, self.windows.engine
        return {key: (modes.of(key), engine.installed(key)) for key in self._ports()}

    def _changed(self, scope: Scope, before: _Seen) -> list[dict[str, Any]]:
        """The ports of a scope whose mode has changed since."""
        rows = []
        for key, (mode, rules) in self._modes().items():
            was, had = before.get(key, (mode, rules))
            if was is not mode and scope.covers(key, self._name(key)):
                rows.append(
                    {
                        "dpid": dpid_text(key.dpid),
                        "port": key.port,
                        "name": self._name(key),
                        "before": str(was),
                        "after": str(mode),
                        "rules_before": had,
                        "rules_after": rules,
                    }
                )
        return rows

    def _reported(self, scope: Scope, words: str, changed: list[dict[str, Any]]) -> None:
        ports = f"{len(changed)} port{'' if len(changed) == 1 else 's'}"
        text = f"{self._named(scope)}: {words}; the mode of {ports} has changed"
        at: PortKey | int | None = scope.dpid
        if scope.dpid is not None and scope.port is not None:
            at = PortKey(scope.dpid, scope.port)
        self.log.info("%s", text)
        self.report(Occurrence(Kind.MODE, text, at))

    # Names

    def _ports(self) -> list[PortKey]:
        return self.named.ports()

    def _name(self, key: PortKey) -> str:
        return self.named.name(key)

    def _named(self, scope: Scope) -> str:
        """A scope in words."""
        if scope.dpid is None:
            return "all ports"
        name, short = self.windows.modes.bridge(scope.dpid), short_dpid(scope.dpid)
        if scope.port is None:
            return f"bridge {name} ({short})" if name else f"bridge {short}"
        at = f"{short}:{scope.port}"
        return f"{scope.name} ({at})" if scope.name else f"port {at}"

    def _scope(self, bridge: str | None, port: str | None) -> Scope:
        dpid = None if bridge is None else self.named.bridge(bridge)
        if port is None:
            return Scope(dpid)
        key = self.named.port(port, dpid)
        return Scope(key.dpid, key.port, self._name(key))


def too_many() -> str:
    """The reason of :class:`TooMany`, and the remedy."""
    return f"{LIMIT} disables are in force already: enable all ports first"


def _value(statement: Statement, now: float) -> dict[str, Any]:
    """A statement as a request has it. Its end is a time of the day there, None for one without end: clocks
    of different machines have nothing else in common.
    """
    scope, until = statement
    dpid = None if scope.dpid is None else dpid_text(scope.dpid)
    found = {"dpid": dpid, "port": scope.port, "name": scope.name, "disabled": until is not None}
    ends = until is not None and until != math.inf
    return found | {"until": time.time() + until - now if ends and until is not None else None}


def _statement(value: dict[str, Any], now: float) -> Statement:
    dpid = None if value["dpid"] is None else int(value["dpid"], 16)
    port, name = value["port"], value["name"]
    if not isinstance(port, int | None) or not isinstance(name, str):
        raise ValueError("its port is none")
    scope = Scope(dpid, port, name)
    if not value["disabled"]:
        return Statement(scope, None)
    until = value["until"]
    return Statement(scope, math.inf if until is None else now + float(until) - time.time())
