"""The parts of the controller that the REST interface and the metrics may read, and nothing else of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.channel.window_law import LawState
from fairq_ryu.control.agents.agent_port import AgentPort
from fairq_ryu.control.paths.fabric_controller import FabricController
from fairq_ryu.control.reports.counters import Counts
from fairq_ryu.control.reports.events import History
from fairq_ryu.control.reports.port_traffic import PortTrafficTable
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.fabric.flows.table import FlowTable
from fairq_ryu.far_queue import FAR, Why, is_far
from fairq_ryu.model import NO_WINDOWS, WindowKind, WindowRule, dpid_text
from fairq_ryu.policies.base import Display
from fairq_ryu.policies.governed_port import PortView
from fairq_ryu.queue_law_spec import Limits, QueueLawSpec

_TURNS = ("turns_waiting", "turns_held", "turns_released", "turns_overdue", "turns_overflowed")
QUEUE_LAW_FIELDS = (
    "queue_law",
    "queue_law_missing",
    "queue_law_limits",
    "judged",
    "judged_dropped",
    "judged_marked",
    "judged_not_ect",
    "judged_unmarked",
    "fair_share",
    "fair_share_flows",
    "queue_delay_s",
    "delay_target_s",
    "delay_interval_s",
)
"""The fields of a port's row about its queue law; null: it has none, or none of that kind."""
HIDDEN_QUEUE_FIELDS = (
    "hidden_bytes",
    "hidden_delay_s",
    "line_bps",
    "virtual_rate_bps",
    "arrivals_peak_bps",
    "virtual_rate_why",
)
"""The fields of a far queue's row about the queue that it stands for; null: not known, or no far queue."""
_UNKNOWN = PortView(0, NO_WINDOWS, None, Display())


class EventQueue(Protocol):
    """Ryu's queue of events that the controller has not handled yet."""

    maxsize: int

    def qsize(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ControllerState:
    """The parts of one controller, to be read. They may change during a reading that lets other greenlets
    run.
    """

    fabric: FabricController
    flows: FlowTable
    windows: WindowController
    traffic: PortTrafficTable
    counts: Counts
    history: History
    event_queue: EventQueue
    copies_waiting: Callable[[], int]
    open_streams: Callable[[], int]

    def ports(self) -> Iterator[dict[str, Any]]:
        """The ports of all bridges. Values that only an agent knows are None until it has reported them."""
        windows, inventory = self.windows, self.windows.inventory
        engine = windows.engine
        governed, now = engine.view(), time.monotonic()
        for dpid, ports in inventory.listed():
            link = windows.links.get(dpid)
            for port in ports:
                seen = governed.get(port, _UNKNOWN)
                plan, sample = seen.plan, seen.sample
                rule = plan.port_rule
                known = (link.ports.get(port.port) if link is not None else None) or AgentPort()
                counts, depth = known.counts, known.depth
                law, judged = known.window_law.state, known.queue_law.state
                traffic = self.traffic.get(port)
                yield {
                    "dpid": dpid_text(dpid),
                    "port": port.port,
                    "name": inventory.name(port),
                    "role": inventory.role(port),
                    "far_of": port.port - FAR if is_far(port.port) else None,
                    **_hidden(known),
                    "flows": seen.flows,
                    "active": None if depth is None else depth.active,
                    "queue_bytes": None if depth is None else depth.backlog,
                    "peak_bytes": None if depth is None else depth.peak,
                    "limit_bytes": None if depth is None else (sample.limit if sample else depth.buffer),
                    "rate_bps": None if depth is None else depth.rate * 8,
                    "drops": None if depth is None else depth.drops,
                    "pool_bytes": _pool(rule, law),
                    "window_bytes": _window(rule, law),
                    "flow_windows": len(plan.flows),
                    "mode": str(windows.modes.of(port)),
                    "disabled_s": windows.modes.disabled_for(port, now),
                    "lowered": None if counts is None else counts.lowered,
                    "would_lower": None if counts is None else counts.would_lower,
                    "policy": engine.policy_of(port).name,
                    "target_bytes": seen.shown.target,
                    "state": None if seen.shown.state is None else str(seen.shown.state),
                    "incast": seen.shown.incast,
                    "law": seen.shown.where,
                    "law_missing": seen.shown.missing,
                    **_turns(rule, law),
                    **_queue_law(*windows.queue_laws.shown(port), judged),
                    "tx_bytes": None if traffic is None else traffic.tx_bytes,
                    "rx_bytes": None if traffic is None else traffic.rx_bytes,
                    "tx_bps": None if traffic is None else traffic.tx_bps,
                    "rx_bps": None if traffic is None else traffic.rx_bps,
                }


def _hidden(known: AgentPort) -> dict[str, int | float | str | None]:
    """What the agent has inferred about the queue that a far queue stands for; None: not known."""
    row: dict[str, int | float | str | None] = dict.fromkeys(HIDDEN_QUEUE_FIELDS)
    found = known.hidden
    if found is None:
        return row
    return row | {
        "hidden_bytes": found.standing,
        "hidden_delay_s": known.hidden_delay,
        "line_bps": found.line * 8,
        "virtual_rate_bps": found.rate * 8,
        "arrivals_peak_bps": found.peak * 8,
        "virtual_rate_why": Why(found.why).name.lower() if found.why in set(Why) else None,
    }


def _turns(rule: WindowRule | None, law: LawState | None) -> dict[str, int | None]:
    """The handshakes that take turns on a port; None: they take none, or the agent has not reported them."""
    counts: dict[str, int | None] = dict.fromkeys(_TURNS)
    asked = rule is not None and rule.law is not None and bool(rule.law.turns)
    if asked and law is not None:
        values = (law.waiting, law.held, law.released, law.overdue, law.overflowed)
        counts.update(zip(_TURNS, values, strict=True))
    return counts


def _queue_law(
    spec: QueueLawSpec | None, missing: str | None, state: QueueLawState | None
) -> dict[str, str | int | float | None]:
    """The queue law of a port and what it has done. ``missing``: why the agent does not run it."""
    row: dict[str, str | int | float | None] = dict.fromkeys(QUEUE_LAW_FIELDS)
    if spec is None:
        return row
    row |= {"queue_law": spec.name, "queue_law_missing": missing}
    if state is None or missing is not None:
        return row
    shares, delays = spec.has_share, spec.has_delay
    limits = Limits(state.limits) if state.limits in set(Limits) else Limits.NOTHING
    return row | {
        "queue_law_limits": limits.name.lower(),
        "judged": state.judged,
        "judged_dropped": state.dropped,
        "judged_marked": state.marked,
        "judged_not_ect": state.not_ect,
        "judged_unmarked": state.unmarked,
        "fair_share": state.fair_q16 / 65536 if shares and state.fair_q16 else None,
        "fair_share_flows": state.flows if shares else None,
        "queue_delay_s": state.delay_us / 1e6,
        "delay_target_s": state.target_us / 1e6 if delays else None,
        "delay_interval_s": state.interval_us / 1e6 if delays else None,
    }


def _pool(rule: WindowRule | None, law: LawState | None) -> int | None:
    """The pool in force, bytes: the rule's, or that of the switch's law."""
    if rule is None or rule.kind is WindowKind.WINDOW:
        return None
    if rule.kind is WindowKind.POOL:
        return rule.bytes
    return law.pool if law is not None and law.pool else None


def _window(rule: WindowRule | None, law: LawState | None) -> int | None:
    """The window in force for every flow, bytes: the rule's, or that of the switch's law."""
    if rule is None or rule.kind is WindowKind.POOL:
        return None
    if rule.kind is WindowKind.WINDOW:
        return rule.bytes
    return law.window if law is not None and law.window else None
