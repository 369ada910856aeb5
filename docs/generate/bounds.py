"""The table of what takes memory, and how much at most: of the code's own constants."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from typing import Any

from docs.generate.marks import Old, Row, Rows
from fairq_ryu.agent import controller_connection, flow_changes, layout, turn_deadlines, turn_queue
from fairq_ryu.agent.programs.program import ProgramLimits
from fairq_ryu.apps import garbage
from fairq_ryu.cluster import ownership
from fairq_ryu.control.agents import agent_port
from fairq_ryu.control.arrivals import bridge_joining
from fairq_ryu.control.flows import flow_tracking, syn_admission
from fairq_ryu.control.reports.events import History, Kind
from fairq_ryu.fabric.deadlines.announcements import Announcements
from fairq_ryu.fabric.flows import entries, listing, parked_syns, table
from fairq_ryu.fabric.topology import claims, host_limit, hosts
from fairq_ryu.rest import connections, guard, peers, streams
from fairq_ryu.rest.schema import requests
from fairq_ryu.ryu_compat import batched_io, limited_log, switch_listener

_LIMITS = ProgramLimits()
_KEY = ctypes.sizeof(layout.fq_flow_key)


def _map(entries_: int, value: Any, key: int = _KEY) -> tuple[str, str]:
    """The bound of an eBPF map, and what its entries take when all are there."""
    return f"{entries_:,}", _size(entries_ * (key + ctypes.sizeof(value)))


def _size(number: float) -> str:
    """Bytes in words."""
    return f"{number / (1 << 20):.0f} MiB" if number >= 1 << 20 else f"{number / (1 << 10):.0f} KiB"


def _default(function: Callable[..., Any], name: str) -> int:
    return int(inspect.signature(function).parameters[name].default)


def bounds(_old: Old) -> Rows:
    """Of agent, controller and REST interface."""
    head = ("where", "what", "at most", "bytes", "beyond that")
    return [head, *_agent(), *_controller(), *_rest()]


def _agent() -> list[Row]:
    evicts = "about the one that was silent longest goes"
    return [
        ("agent, eBPF map", "connections (`flows`)", *_map(_LIMITS.flows, layout.fq_flow), evicts),
        ("", "silent connections (half of `flows`)", *_map(_LIMITS.silent, layout.fq_flow), evicts),
        ("", "rivals (`flows` / 16)", *_map(_LIMITS.rivals, layout.fq_flow), evicts),
        (
            "",
            "states of laws for single flows (`flows` / 4)",
            *_map(_LIMITS.law_flows, layout.fq_law_flow),
            "a flow begins anew",
        ),
        (
            "",
            "rules of flows, of each bridge",
            *_map(_LIMITS.counters, layout.fq_rule),
            "the controller's rule is refused with an error",
        ),
        (
            "",
            "ports, and transmit queues of ports with several (`ports`)",
            *_map(_LIMITS.ports, layout.fq_port, 0),
            "the port is not watched",
        ),
        (
            "agent",
            "connections that are remembered for controllers",
            f"`flows`, and as many that have gone (at least {flow_changes.MIN_REMOVED:,})",
            "",
            "a controller that is behind gets the whole list",
        ),
        (
            "",
            "handshakes that wait for their turn, at a port",
            f"{turn_queue.CAPACITY:,}",
            _size(turn_queue.CAPACITY * layout.CONSTANTS["FQ_TURN_BYTES"]),
            "they pass",
        ),
        (
            "",
            "deadlines of new connections",
            f"{turn_deadlines.CAPACITY:,}",
            "",
            "the oldest goes",
        ),
        (
            "",
            "messages for a controller that does not read",
            "",
            _size(controller_connection.MAX_UNSENT),
            "the connection is closed",
        ),
    ]


def _controller() -> list[Row]:
    capacity = _default(table.FlowTable.__init__, "capacity")
    history = _default(History.__init__, "capacity")
    return [
        (
            "controller",
            "connections",
            f"{capacity:,}; of them with an unanswered SYN {entries.HALF_OPEN:,}, of one port "
            f"{entries.HALF_OPEN_PER_PORT} (in `paths`)",
            "1.4 KiB each, as measured",
            "the one that has ended, or the oldest unanswered SYN goes",
        ),
        (
            "",
            "more SYNs, in a short form",
            f"{parked_syns.MAX_PER_PORT:,} of each of {parked_syns.MAX_PORTS} ports",
            "",
            "the oldest of the port goes",
        ),
        (
            "",
            "copies of segments that wait",
            f"{flow_tracking.MAX_COPIES:,}",
            "",
            "the oldest is applied at once",
        ),
        (
            "",
            "paths of connections that have ended",
            f"{flow_tracking.MAX_ENDED:,}",
            "",
            "the one that ended first goes: if its end was forged, it is not pinned any more",
        ),
        ("", "held SYNs that wait", f"{syn_admission.MAX_QUEUED:,}", "", "it goes on at once"),
        (
            "",
            "hosts",
            f"{_default(hosts.HostTable.__init__, 'capacity'):,}, {hosts.MAX_ADDRESSES} addresses of each; "
            f"new ones of one port {host_limit.BURST:,}, and {host_limit.RATE} more a second",
            "",
            "frames to others are flooded",
        ),
        (
            "",
            "claims of addresses under way",
            f"{claims.MAX_CLAIMS:,}, {claims.MAX_PER_PORT} of one port",
            "",
            "the claim has no effect",
        ),
        (
            "",
            "announcements",
            f"{_default(Announcements.__init__, 'capacity'):,}",
            "",
            "status 429",
        ),
        ("", "events", f"{history} of each of {len(Kind)} kinds", "", "the oldest goes"),
        (
            "",
            "connections of switches and agents",
            f"{switch_listener.MAX_CONNECTIONS:,}; before the handshake {switch_listener.MAX_PENDING}",
            "",
            "refused; the oldest one before its handshake goes",
        ),
        (
            "",
            "bridges of [several controllers](scaling.md)",
            f"{ownership.MOST_BRIDGES:,}, and those that were claimed at the same moment",
            "",
            "the bridge is not governed, and the log says so",
        ),
        (
            "",
            "ports of an agent; directions, and rules, that one lists",
            f"{agent_port.MOST_PORTS:,}; {listing.MOST_LISTED:,}; {bridge_joining.MOST_RULES:,}",
            "",
            "the connection is closed; directions are left out",
        ),
        (
            "",
            "messages for one that does not read",
            f"{batched_io.MAX_UNSENT:,}",
            _size(batched_io.MAX_UNSENT_BYTES),
            "the connection is closed",
        ),
        (
            "",
            "garbage that only a full collection finds",
            f"{garbage.PART:.0%} of the memory, if that is more",
            _size(garbage.GROWTH),
            "a full collection",
        ),
        (
            "",
            "log lines about peers, a minute",
            f"{limited_log.MAX_LINES}, {limited_log.MAX_LINES_PER_PEER} about one",
            "",
            "they are counted, and the number logged",
        ),
    ]


def _rest() -> list[Row]:
    return [
        ("REST", "connections", f"{connections.CONNECTIONS}", "", "the one that has waited longest goes"),
        (
            "",
            "replies that clients have not read, without the newest",
            "",
            _size(connections.UNREAD),
            "the connection of the oldest is closed",
        ),
        (
            "",
            "event streams, bytes of each beside the latest state",
            f"{streams.MAX_STREAMS}",
            _size(streams.MAX_BYTES),
            "status 429; a stream that is not read is ended",
        ),
        ("", "body of a request", "", _size(guard.MAX_BODY), "status 413"),
        (
            "",
            "questions to other controllers at once, and the answer to each",
            f"{peers.AT_ONCE}",
            _size(peers.MOST_BYTES),
            "they wait, and are then not asked; `missing` says so",
        ),
        ("", "rows of a page", f"{requests.MAX_LIMIT:,}", "", "status 400"),
    ]
