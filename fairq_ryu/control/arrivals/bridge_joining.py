"""Bridges that join: the controller asks for the rules of a new bridge before it uses it.

A bridge lists its rules in one or more messages. It has joined with the last of them, and is then a bridge of
the network. Bounded: one entry a connection, removed when the connection ends or is replaced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.channel.dispatch import TooMuch
from fairq_ryu.control.sender import Outgoing
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.pipeline import Datapath

MOST_RULES = 1_000_000


class _Joining(NamedTuple):
    datapath: Datapath
    rules: list[Any]


class BridgeJoining:
    """Bridges whose rules are not known yet."""

    def __init__(self) -> None:
        self._joining: dict[int, _Joining] = {}

    def __len__(self) -> int:
        return len(self._joining)

    def start(self, datapath: Datapath) -> list[Outgoing]:
        """A bridge has connected: returns the request for its rules."""
        self._joining[datapath.id] = _Joining(datapath, [])
        return [(datapath, pipeline.ask_rules(datapath))]

    def add_rules(self, message: Any) -> list[Any] | None:
        """A part of the reply (Ryu's ``OFPFlowStatsReply``). Returns all rules with the last part; None
        before, and for a connection that is not joining. Raises :class:`TooMuch`.
        """
        joining = self._joining.get(message.datapath.id)
        if joining is None or joining.datapath is not message.datapath:
            return None
        joining.rules.extend(message.body)
        if len(joining.rules) > MOST_RULES:
            raise TooMuch(f"more than {MOST_RULES:,} rules")
        if message.flags & ofp.OFPMPF_REPLY_MORE:
            return None
        del self._joining[message.datapath.id]
        return joining.rules

    def disconnected(self, datapath: Datapath) -> None:
        """A connection has ended."""
        joining = self._joining.get(datapath.id)
        if joining is not None and joining.datapath is datapath:
            del self._joining[datapath.id]
