"""The status of an agent: one JSON object over a local socket, for people and experiments.

``fairq status --bridge s1`` prints it. :func:`snapshot` documents the keys and their units.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import time
from pathlib import Path
from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.congestion_monitor import CongestionMonitor
from fairq_ryu.agent.filter_watch import FilterWatch
from fairq_ryu.agent.law_table import LawTable
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.port_recovery import PortRecovery
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.queue_law_table import QueueLawTable
from fairq_ryu.agent.rule_table import Rule, RuleTable
from fairq_ryu.agent.segment_copier import SegmentCopier
from fairq_ryu.agent.segment_injector import SegmentInjector
from fairq_ryu.errors import UserError, quoted
from fairq_ryu.far_queue import Why
from fairq_ryu.laws import registry
from fairq_ryu.model import WindowKind
from fairq_ryu.queue_law_spec import Limits, Variant

ANSWER_S = 2.0
"""How long is waited for an agent, seconds. It answers in milliseconds."""


class NoAnswer(UserError):
    """The agent runs, and does not answer."""


class _Told(dict[str, Any]):
    """An object of an answer. An agent that was started before an update may tell less than is asked for."""

    def __missing__(self, key: str) -> Any:
        raise UserError(
            f"the agent tells nothing of {key}: its version is older than that of this command",
            "restart the agent",
        )


def run_directory() -> Path:
    """Where agents keep their lock and socket: ``$FAIRQ_RUNDIR`` or ``/run/fairq_ryu``."""
    return Path(os.environ.get("FAIRQ_RUNDIR", "/run/fairq_ryu"))


def socket_path(bridge: str) -> Path:
    """The status socket of a bridge's agent."""
    return run_directory() / f"{bridge}.sock"


def flows_path(bridge: str) -> Path:
    """What the next agent of a bridge needs of one that has ended: :mod:`fairq_ryu.agent.kept_flows`."""
    return run_directory() / f"{bridge}.flows"


def rule_row(rule: Rule | None, laws: LawTable, now_ns: int) -> dict[str, Any] | None:
    """The rule of a port, and the state of the law that it refers to; None: no rule whose lease lives."""
    if rule is None or rule.expires_ns <= now_ns:
        return None
    row = {
        "kind": rule.window.kind.name.lower(),
        "bytes": rule.window.bytes,
        "expires_in_s": (rule.expires_ns - now_ns) / 1e9,
    }
    if rule.window.kind is WindowKind.LAW:
        (state,) = laws.states(rule.window.bytes)
        row["bytes"] = state.pool or state.window
        row["law"] = {**state._asdict(), "kind": registry.window_laws()[state.kind].name}
    return row


def queue_rule_row(rule: Rule | None, laws: QueueLawTable, now_ns: int) -> dict[str, Any] | None:
    """The queue law of a port and what it has done; None: no rule whose lease lives."""
    if rule is None or rule.expires_ns <= now_ns:
        return None
    (state,) = laws.states(rule.window.bytes)
    names = {
        "kind": registry.queue_laws()[state.kind].name,
        "variant": Variant(state.variant).name.lower() if state.variant else "",
        "limits": Limits(state.limits).name.lower(),
    }
    return {"expires_in_s": (rule.expires_ns - now_ns) / 1e9, **state._asdict(), **names}


def _congestion(datapath: BridgePrograms, monitor: CongestionMonitor, ofport: int) -> dict[str, Any] | None:
    thresholds = monitor.thresholds.get(ofport)
    if thresholds is None:
        return None
    return {**thresholds._asdict(), "state": datapath.congestion(ofport).state.value}


def snapshot(
    datapath: BridgePrograms,
    filters: FilterWatch,
    table: RuleTable,
    laws: LawTable,
    monitor: CongestionMonitor,
    recovery: PortRecovery,
    injector: SegmentInjector,
    copier: SegmentCopier,
    queue_table: RuleTable,
    queue_laws: QueueLawTable,
) -> dict[str, Any]:
    """Ports with their queues, counters and rules.

    ``queue``: ``kind`` of the root qdisc, ``reason`` why its limit is not known (empty if it is),
    ``bytes``, ``peak``, ``limit`` in bytes, ``rate`` in bytes/s, ``drops`` and ``packets``
    in packets, ``byte_ns`` the integral of the backlog up to ``clock_ns``, ``histogram`` as
    ``[lowest bytes, highest bytes, ns]``. ``acks`` counts ACKs to which a rule of the port or of its
    flows applied, ``rewritten`` those that were lowered, ``would_lower`` those left unchanged because the
    port is only observed (its ``mode`` is ``observe`` and not ``act``), ``unknown_scale`` those left
    unchanged because their handshake was not seen (``scale_told`` those that told their scale themselves,
    and ``scale_wrong`` the segments that told another than their handshake), ``signed`` because
    the connection signs its segments (TCP-MD5, TCP-AO), ``coarse`` those whose window step exceeded the
    window of the rule. ``no_acks`` counts the flows whose data leaves by the port and whose ACKs leave by
    no port of the agent: those of ``now``, and all (``total``) since it started. Of a ``rule`` of kind
    ``law``, ``bytes`` is the pool or the window of every flow (0: neither), and ``law`` the law's state as on
    the window channel; ``queue_law`` has that of the port's queue law.
    ``flows_evicted`` counts flows that were removed
    because the map was full, ``tenants_left_out`` the handshakes and ACKs of tenants for which there was no
    room at their ports.
    ``far`` is what is inferred of the queue that a far queue stands for, as on the window channel, null of
    other ports. ``congestion`` has a port's thresholds in bytes and its state, null where no controller has
    set any.
    ``drop_reports``: ``available`` if this kernel can report dropped packets (``unavailable``: why not) and,
    in packets, those sent to controllers (``told``), of no interest to them (``passed_over``: no TCP segment
    whose loss matters), suppressed by the rate or because no controller reads fast enough (``held_back``),
    and ``lost`` because the agent was too slow. ``recovery`` has the ``losses`` that the agent has recovered
    by itself, by outcome, the losses ``stored``, and the segments ``sent`` by kind, in segments; a kind with
    a reason counts those that were not sent. ``deadlines`` counts the stored deadlines of connections whose
    handshakes may wait for their turn, ``closed_windows`` the connections that wait with closed windows.
    ``segment_copies`` counts copies of SYN, FIN and RST for controllers:
    the ``rules`` that ask for them, PACKET_INs ``sent``, and segments that were not copied, beyond a rate
    (``copies_suppressed``, which each port has as well) or because the agent was too slow (``lost``); and
    copies that were not sent because a controller did not read fast enough (``unread``). ``tx_queues`` has
    the ``bytes``, ``peak``, ``drops`` and ``packets`` of each transmit queue, where these have a qdisc each;
    ``queue`` is then the longest of them. ``filters``: ``place`` of the window program (``clsact``; ``tcx``:
    an ingress qdisc leaves no place for the other programs); how often filters that others had removed were
    ``restored``, and the ``refusal`` if they could not be; who runs ``before`` the agent's programs; and the
    TCP packets that have ``missed`` these since a segment reached them last.
    """
    now = time.monotonic_ns()
    ports = []
    for port in datapath.ports.values():
        queue, limits, state = datapath.queue(port), datapath.queue_limits(port), datapath.port_state(port)
        ports.append(
            {
                "ofport": port.ofport,
                "name": port.name,
                "ifindex": port.ifindex,
                "queue": {
                    "kind": limits.kind,
                    "reason": limits.reason,
                    "bytes": queue.backlog,
                    "peak": queue.peak,
                    "limit": limits.limit,
                    "rate": limits.rate,
                    "drops": queue.drops,
                    "packets": queue.packets,
                    "byte_ns": queue.byte_ns,
                    "clock_ns": queue.clock_ns,
                    "histogram": datapath.histogram(port),
                },
                "far": _far(datapath, port),
                "tx_queues": [
                    {"bytes": each.backlog, "peak": each.peak, "drops": each.drops, "packets": each.packets}
                    for each in datapath.tx_queues(port)
                ],
                "active_flows": layout.active_flows(state, now, datapath.limits.bucket_ns),
                "mode": "observe" if port.ofport in datapath.observed else "act",
                "acks": state.acks,
                "rewritten": state.rewritten,
                "would_lower": state.would_lower,
                "unknown_scale": state.unknown_scale,
                "scale_told": state.scale_told,
                "scale_wrong": state.scale_wrong,
                "signed": state.signed_acks,
                "coarse": state.coarse,
                "handshakes": state.handshakes,
                "no_acks": datapath.unanswered(port)._asdict(),
                "malformed": state.malformed,
                "filters": {"place": datapath.filter_place(port.ifindex), **filters.row(port.ifindex)},
                "copies": state.copies,
                "copies_suppressed": state.copies_suppressed,
                "congestion": _congestion(datapath, monitor, port.ofport),
                "rule": rule_row(table.port_rule(port.ofport), laws, now),
                "queue_law": queue_rule_row(queue_table.port_rule(port.ofport), queue_laws, now),
            }
        )
    drops = monitor.drops
    suppressed, lost = datapath.not_copied
    return {
        "ports": ports,
        "flows": datapath.host.flows,
        "flows_evicted": datapath.host.evicted,
        "tenants_left_out": datapath.window.tenants_left_out,
        "rules": len(table) + len(queue_table) + len(copier),
        "congestion_messages": monitor.notices_sent,
        "drop_reports": {
            "available": datapath.reports_drops,
            "unavailable": datapath.drops.reason,
            "told": drops.sent,
            "passed_over": drops.ignored,
            "held_back": drops.suppressed,
            "lost": datapath.drops.lost,
        },
        "segment_copies": {
            "rules": len(copier),
            "sent": copier.counts.sent,
            "copies_suppressed": suppressed,
            "lost": lost,
            "unread": copier.counts.unread,
        },
        "recovery": {
            "losses": dict(recovery.outcomes),
            "stored": recovery.stored,
            "sent": dict(injector.counts),
        },
        "deadlines": datapath.turns.deadlines,
        "closed_windows": datapath.turns.closed,
    }


def _far(datapath: BridgePrograms, port: BridgePort) -> dict[str, Any] | None:
    if port.far is None:
        return None
    found = datapath.hidden_queue(port)
    return {**found._asdict(), "why": Why(found.why).name.lower()}


def ask(bridge: str, timeout: float = ANSWER_S) -> dict[str, Any]:
    """The status of a bridge's agent. Raises :class:`NoAnswer` if it hangs for ``timeout`` seconds, or
    :class:`UserError`; so does the look for what an older agent does not tell.
    """
    path = socket_path(bridge)
    remedy = f"start one: fairq agent --bridge {quoted(bridge)} --controller tcp:127.0.0.1:6653"
    chunks = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(timeout)
        try:
            client.connect(str(path))
            while chunk := client.recv(1 << 16):
                chunks.append(chunk)
        except PermissionError:
            raise UserError(f"the agent of bridge {bridge} answers root only", "run this as root") from None
        except (TimeoutError, BlockingIOError):  # the second: too many wait for an answer already
            holder = _lock_holder(bridge)
            pid = f" (pid {holder})" if holder else ""
            remedy = (
                f"see what it does, or end it: kill -9 {holder or 'PID'}; systemd starts its service again"
            )
            hangs = f"the agent of bridge {bridge}{pid} does not answer within {timeout:g} s"
            raise NoAnswer(hangs, remedy) from None
        except ConnectionResetError:
            chunks.clear()
        except OSError:
            raise UserError(f"no agent runs on bridge {bridge}", remedy) from None
    try:
        answer: dict[str, Any] = json.loads(b"".join(chunks), object_hook=_Told)
    except ValueError:
        raise UserError(f"the agent of bridge {bridge} ended while it answered", remedy) from None
    return answer


def lock_path(bridge: str) -> Path:
    """The file that a bridge's agent keeps locked; it says which process that is."""
    return run_directory() / f"{bridge}.lock"


def _lock_holder(bridge: str) -> int:
    """The process that has written the lock file; 0: not known."""
    with contextlib.suppress(OSError):
        written = re.match(r"process (\d+) ", lock_path(bridge).read_text(errors="replace"))
        return int(written[1]) if written else 0
    return 0


def running() -> list[str]:
    """The bridges whose agents have a socket here."""
    return sorted(path.stem for path in run_directory().glob("*.sock"))
