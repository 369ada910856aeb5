"""How many rules a bridge has, and whose: asked for with aggregate statistics, which read no rule.

Rules of :func:`~fairq_ryu.openflow.beside.discovery` do not count: they are there for some seconds only.
Bounded: four requests a connection, removed with their replies or when the connection ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairq_ryu.control.sender import Outgoing
from fairq_ryu.fabric.ways import RuleCount
from fairq_ryu.openflow import beside
from fairq_ryu.openflow.pipeline import Datapath

_KINDS = (beside.ALL, beside.OF_PIPELINE, beside.OF_NORMAL, beside.DISCOVERS)

Counted = Callable[[RuleCount], object]


@dataclass(eq=False)
class _Question:
    datapath: Datapath
    xids: list[int]
    counted: Counted
    found: dict[int, int] = field(default_factory=dict)


class RuleCounts:
    """The questions that are not answered yet, one a bridge."""

    def __init__(self) -> None:
        self._questions: dict[int, _Question] = {}

    def __len__(self) -> int:
        return len(self._questions)

    def ask(self, datapath: Datapath, counted: Counted) -> list[Outgoing]:
        """The requests of a bridge; ``counted`` is called with the answer. An earlier question of this bridge
        is dropped.
        """
        requests = [beside.count_rules(datapath, kind) for kind in _KINDS]
        for request in requests:
            datapath.set_xid(request)
        xids = [request.xid for request in requests]
        self._questions[datapath.id] = _Question(datapath, xids, counted)
        return [(datapath, request) for request in requests]

    def reply(self, message: Any) -> None:
        """A bridge has replied (Ryu's ``OFPAggregateStatsReply``)."""
        asked = self._questions.get(message.datapath.id)
        if asked is None or asked.datapath is not message.datapath or message.xid not in asked.xids:
            return
        asked.found[message.xid] = message.body.flow_count
        if len(asked.found) == len(asked.xids):
            del self._questions[message.datapath.id]
            total, paths, normal, discovery = (asked.found[xid] for xid in asked.xids)
            asked.counted(RuleCount(total - discovery, paths, normal))

    def disconnected(self, datapath: Datapath) -> None:
        """A connection has ended."""
        asked = self._questions.get(datapath.id)
        if asked is not None and asked.datapath is datapath:
            del self._questions[datapath.id]
