"""The metrics of the network: ports, switches, flows, announcements, losses. Values are read at the scrape.

The number of label values is bounded: labels are ports, switches and constants, never flows or hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from fairq_ryu.control.operations.state import ControllerState
from fairq_ryu.control.operations.tenant_control import tenant_rows
from fairq_ryu.control.yielding import LOOKS_PER_STEP, in_steps
from fairq_ryu.metrics.family import Family, Sample
from fairq_ryu.model import Congestion, dpid_text
from fairq_ryu.policies.parts.deadline_table import GifTable

Samples = Mapping[str, Iterable[Sample]]

_PORT = ("dpid", "port", "name")
# Metric -> its field of /v1/ports, and the factor between the units.
_FIELDS: Mapping[str, tuple[str, float]] = {
    "fairq_port_queue_bytes": ("queue_bytes", 1),
    "fairq_port_queue_limit_bytes": ("limit_bytes", 1),
    "fairq_port_queue_target_bytes": ("target_bytes", 1),
    "fairq_port_rate_bytes_per_second": ("rate_bps", 1 / 8),
    "fairq_port_dropped_packets_total": ("drops", 1),
    "fairq_port_transmitted_bytes_total": ("tx_bytes", 1),
    "fairq_port_received_bytes_total": ("rx_bytes", 1),
    "fairq_port_hidden_queue_bytes": ("hidden_bytes", 1),
    "fairq_port_hidden_queue_delay_seconds": ("hidden_delay_s", 1),
    "fairq_port_line_bytes_per_second": ("line_bps", 1 / 8),
    "fairq_port_virtual_rate_bytes_per_second": ("virtual_rate_bps", 1 / 8),
    "fairq_port_flows": ("flows", 1),
    "fairq_port_active_flows": ("active", 1),
    "fairq_port_pool_bytes": ("pool_bytes", 1),
    "fairq_port_window_bytes": ("window_bytes", 1),
    "fairq_port_flow_windows": ("flow_windows", 1),
    "fairq_port_lowered_acks_total": ("lowered", 1),
    "fairq_port_would_lower_acks_total": ("would_lower", 1),
    "fairq_port_incast": ("incast", 1),
    "fairq_port_turns_waiting": ("turns_waiting", 1),
    "fairq_port_judged_packets_total": ("judged", 1),
    "fairq_port_judged_dropped_packets_total": ("judged_dropped", 1),
    "fairq_port_judged_marked_packets_total": ("judged_marked", 1),
    "fairq_port_judged_not_ect_packets_total": ("judged_not_ect", 1),
    "fairq_port_fair_share_samples": ("fair_share", 1),
    "fairq_port_fair_share_flows": ("fair_share_flows", 1),
    "fairq_port_queue_delay_seconds": ("queue_delay_s", 1),
}

# Metric -> its field of a tenant at a port, and the factor between the units.
_TENANT_FIELDS: Mapping[str, tuple[str, float]] = {
    "fairq_tenant_goodput_bytes_per_second": ("goodput_bps", 1 / 8),
    "fairq_tenant_share_ratio": ("share", 1),
    "fairq_tenant_flows": ("flows", 1),
    "fairq_tenant_acked_bytes_total": ("bytes", 1),
    "fairq_tenant_acks_total": ("acks", 1),
    "fairq_tenant_floor_broken_acks_total": ("floor_broken", 1),
}
# Of these, 0 means: not known.
_NOT_KNOWN = ("limit_bytes", "rate_bps", "line_bps", "virtual_rate_bps")

PORTS = (
    Family("fairq_port_queue_bytes", "gauge", "Length of the queue when it was last read.", _PORT),
    Family(
        "fairq_port_queue_byte_seconds_total",
        "counter",
        "Integral of the queue length over time; its rate is the exact mean length of the queue in bytes.",
        _PORT,
    ),
    Family(
        "fairq_port_queue_peak_bytes", "gauge", "Greatest length of the queue in the last 15 to 30 s.", _PORT
    ),
    Family("fairq_port_queue_limit_bytes", "gauge", "Size of the buffer, if known.", _PORT),
    Family(
        "fairq_port_queue_target_bytes",
        "gauge",
        "Queue length that the policy aims at, if it has a target.",
        _PORT,
    ),
    Family("fairq_port_rate_bytes_per_second", "gauge", "Rate of the port, if known.", _PORT),
    Family(
        "fairq_port_hidden_queue_bytes",
        "gauge",
        "What stood last in the queue that a far queue is for. Only of far queues, as the next three.",
        _PORT,
    ),
    Family("fairq_port_hidden_queue_delay_seconds", "gauge", "Mean delay there, by round trips.", _PORT),
    Family("fairq_port_line_bytes_per_second", "gauge", "Rate of its line, set or found.", _PORT),
    Family(
        "fairq_port_virtual_rate_bytes_per_second", "gauge", "Rate at which the virtual queue drains.", _PORT
    ),
    Family("fairq_port_dropped_packets_total", "counter", "Packets dropped by the queue.", _PORT),
    Family(
        "fairq_port_transmitted_bytes_total",
        "counter",
        "Bytes that the bridge has sent through the port.",
        _PORT,
    ),
    Family(
        "fairq_port_received_bytes_total",
        "counter",
        "Bytes that the bridge has received through the port.",
        _PORT,
    ),
    Family(
        "fairq_port_flows",
        "gauge",
        "Flows (directions of connections) whose data leaves through the port.",
        _PORT,
    ),
    Family("fairq_port_active_flows", "gauge", "Flows that sent data recently, counted by the agent.", _PORT),
    Family("fairq_port_pool_bytes", "gauge", "Pool that the active flows of the port share equally.", _PORT),
    Family("fairq_port_window_bytes", "gauge", "Window that every flow of the port has.", _PORT),
    Family("fairq_port_flow_windows", "gauge", "Flows that have a window rule of their own.", _PORT),
    Family(
        "fairq_port_lowered_acks_total",
        "counter",
        "ACKs of the port's data whose window was lowered.",
        _PORT,
    ),
    Family(
        "fairq_port_would_lower_acks_total",
        "counter",
        "ACKs whose window would have been lowered if the port was not only observed.",
        _PORT,
    ),
    Family(
        "fairq_port_mode",
        "gauge",
        "1 for the mode of the port: act, observe or disabled.",
        (*_PORT, "mode"),
    ),
    Family(
        "fairq_port_congested",
        "gauge",
        "1: congested (CNG), 0: not congested (NOM). Only if the policy sets thresholds.",
        _PORT,
    ),
    Family(
        "fairq_port_incast",
        "gauge",
        "1: the policy limits the flows because of an incast, 0: it does not. Only with IQM.",
        _PORT,
    ),
    Family(
        "fairq_port_law_in_switch",
        "gauge",
        "1: the law of the port runs in the switch, 0: in the controller, or the switch does not run it.",
        _PORT,
    ),
    Family(
        "fairq_port_turns_waiting",
        "gauge",
        "New connections that wait for their turn, with their SYN or SYN-ACK or with a closed window. Only "
        "where new connections take turns.",
        _PORT,
    ),
    Family(
        "fairq_port_turns_total",
        "counter",
        "SYNs and SYN-ACKs that left because the port had room (released), because they had waited too long "
        "(overdue), or at once because too many waited or too many handshakes were incomplete (overflowed).",
        (*_PORT, "outcome"),
    ),
    Family(
        "fairq_port_judged_packets_total",
        "counter",
        "Packets that the queue laws of the port have judged. Only where it has one, as the next six.",
        _PORT,
    ),
    Family("fairq_port_judged_dropped_packets_total", "counter", "Of these, those that they dropped.", _PORT),
    Family("fairq_port_judged_marked_packets_total", "counter", "Of these, those marked with CE.", _PORT),
    Family("fairq_port_judged_not_ect_packets_total", "counter", "Of these, those not ECN-capable.", _PORT),
    Family(
        "fairq_port_fair_share_samples", "gauge", "Fair share of a flow, m_f. Only with AFQ and AFCD.", _PORT
    ),
    Family(
        "fairq_port_fair_share_flows",
        "gauge",
        "Flows with samples in the shadow buffer. Only with AFQ and AFCD.",
        _PORT,
    ),
    Family(
        "fairq_port_queue_delay_seconds", "gauge", "Queueing delay of the last packet that was judged.", _PORT
    ),
    Family(
        "fairq_port_info",
        "info",
        "Role of the port (host, link, undecided, unknown) and its policy.",
        (*_PORT, "role", "policy"),
    ),
)


FABRIC = (
    Family("fairq_bridge_connected", "gauge", "1: the bridge is connected to the controller.", ("dpid",)),
    Family(
        "fairq_bridge_info",
        "info",
        "Way in which the bridge is governed (windows, normal, paths).",
        ("dpid", "way"),
    ),
    Family("fairq_agent_connected", "gauge", "1: the agent of the bridge is connected.", ("dpid",)),
    Family("fairq_hosts", "gauge", "Known hosts."),
    Family("fairq_links", "gauge", "Links between switches that work in both directions."),
    Family("fairq_flows", "gauge", "TCP connections in the flow table.", ("state",)),
    Family("fairq_flows_opened_total", "counter", "Connections that were added to the flow table."),
    Family(
        "fairq_flows_refused_total",
        "counter",
        "Connections that were not added, because the flow table was full.",
    ),
    Family(
        "fairq_flows_unscaled",
        "gauge",
        "Flows whose windows an agent does not change, because it does not know their window scale.",
        ("dpid",),
    ),
    Family(
        "fairq_paths_pinned",
        "gauge",
        "Connections that are pinned: rules of their own keep them on their path.",
    ),
    Family("fairq_repins_total", "counter", "Times that a connection was moved to another path."),
    Family(
        "fairq_announcements", "gauge", "Announcements that are assigned to a flow or can still be assigned."
    ),
    Family("fairq_announcements_made_total", "counter", "Announcements that the controller has accepted."),
    Family(
        "fairq_gif_flows",
        "gauge",
        "Flows of the ports whose policy uses deadlines, by the state of the deadline.",
        ("state",),
    ),
    Family(
        "fairq_losses_remembered", "gauge", "Dropped segments that are stored and can still be recovered."
    ),
    Family("fairq_losses_total", "counter", "Dropped segments that agents have reported."),
    Family("fairq_losses_repeated_total", "counter", "Reported segments that were stored already."),
    Family(
        "fairq_losses_settled_total",
        "counter",
        "Reported segments that are finished, by outcome; acked: the receiver has acknowledged the data.",
        ("outcome",),
    ),
    Family("fairq_recovery_limited_total", "counter", "Times that recovery has reached its rate limit."),
    Family(
        "fairq_spoken_total",
        "counter",
        "Packets sent to hosts, by kind: wake (ends a pause), dupack (duplicate ACKs), reinject "
        "(dropped segments sent again).",
        ("kind",),
    ),
    Family(
        "fairq_unspoken_total",
        "counter",
        "Packets that could not be sent to hosts, by kind and reason.",
        ("kind", "reason"),
    ),
)
_TENANT = (*_PORT, "tenant")
TENANTS = (
    Family("fairq_tenant_weight", "gauge", "Weight of the tenant.", ("tenant",)),
    Family(
        "fairq_tenant_goodput_bytes_per_second",
        "gauge",
        "Acknowledged payload of the tenant at the port in the last second or so. Only with the policy "
        "tenants, as the next six.",
        _TENANT,
    ),
    Family("fairq_tenant_share_ratio", "gauge", "Part of the port's windows that is the tenant's.", _TENANT),
    Family("fairq_tenant_flows", "gauge", "Flows of the tenant that use their windows, or are new.", _TENANT),
    Family("fairq_tenant_acked_bytes_total", "counter", "Acknowledged payload of the tenant.", _TENANT),
    Family("fairq_tenant_acks_total", "counter", "ACKs that met a share of the tenant.", _TENANT),
    Family(
        "fairq_tenant_floor_broken_acks_total",
        "counter",
        "Of these, ACKs at which one segment for each flow was more than the share.",
        _TENANT,
    ),
    Family(
        "fairq_tenants_left_out_acks_total",
        "counter",
        "Handshakes and ACKs that met no share, because the agent had no room for another tenant there.",
        _PORT,
    ),
)
_GIF_STATES = ("open", "met", "missed", "ended", "none")
_SETTLED = ("ignored", "acked", "expired", "overflow", "forgotten")
_TURNS = ("released", "overdue", "overflowed")
_SENT_KINDS = ("wake", "dupack", "reinject")


def ports(state: ControllerState, now: float) -> Samples:
    """All ports."""
    found: dict[str, list[Sample]] = {family.name: [] for family in PORTS}
    for row in in_steps(state.ports()):
        labels = (row["dpid"], str(row["port"]), row["name"])
        for name, (field, factor) in _FIELDS.items():
            value = row.get(field)
            if value is None or (field in _NOT_KNOWN and not value):
                continue
            found[name].append((labels, value * factor))
        congestion = row.get("state")
        if congestion is not None:
            found["fairq_port_congested"].append((labels, congestion == Congestion.CNG))
        found["fairq_port_mode"].append(((*labels, row["mode"]), 1))
        if row["law"] is not None or row["law_missing"] is not None:
            found["fairq_port_law_in_switch"].append((labels, row["law"] == "switch"))
        if row["turns_waiting"] is not None:
            found["fairq_port_turns_total"] += [((*labels, each), row[f"turns_{each}"]) for each in _TURNS]
        found["fairq_port_info"].append(((*labels, row["role"], row["policy"]), 1))
        _queue(state, row, labels, found, now)
    return found


def tenants(state: ControllerState, _now: float) -> Samples:
    """All tenants. Their number is bounded by that of the tables of agents."""
    found: dict[str, list[Sample]] = {family.name: [] for family in TENANTS}
    for tenant in tenant_rows(state.windows):
        found["fairq_tenant_weight"].append(((tenant["name"],), tenant["weight"]))
        for row in tenant["ports"]:
            labels = (row["dpid"], str(row["port"]), row["name"])
            for name, (field, factor) in _TENANT_FIELDS.items():
                found[name].append(((*labels, tenant["name"]), row[field] * factor))
    for key, left_out in state.windows.tenants.left_out().items():
        labels = (dpid_text(key.dpid), str(key.port), state.windows.inventory.name(key))
        found["fairq_tenants_left_out_acks_total"].append((labels, left_out))
    return found


def _queue(
    state: ControllerState,
    row: Mapping[str, Any],
    labels: tuple[str, ...],
    found: Mapping[str, list[Sample]],
    now: float,
) -> None:
    """Metrics that are not in the rows of ports, because they are useful over longer times only."""
    link = state.windows.links.get(int(row["dpid"], 16))
    port = None if link is None else link.ports.get(row["port"])
    if port is None or port.depth is None:
        return
    found["fairq_port_queue_byte_seconds_total"].append((labels, port.depth.byte_ns / 1e9))
    if port.peak is not None:
        found["fairq_port_queue_peak_bytes"].append((labels, port.peak.value(now)))


def fabric(state: ControllerState, now: float) -> Samples:
    """Switches, hosts, flows, and actions for flows."""
    fabric, flows, windows = state.fabric, state.flows, state.windows
    known, inventory = windows.inventory.known, windows.inventory
    gif = _gif_states(windows.engine.gif().values(), now)
    losses = windows.recovery.outcomes
    sent = windows.injector.counts
    unsent = ((key.partition(": "), count) for key, count in sorted(sent.items()) if ": " in key)
    return {
        "fairq_bridge_connected": [((dpid_text(dpid),), inventory.is_connected(dpid)) for dpid in known],
        "fairq_bridge_info": [((dpid_text(dpid), str(inventory.way(dpid))), 1) for dpid in known],
        "fairq_agent_connected": [((dpid_text(dpid),), dpid in windows.links) for dpid in known],
        "fairq_hosts": [((), len(fabric.hosts))],
        "fairq_links": [((), sum(1 for _ in fabric.topology.links()))],
        "fairq_flows": [((str(state),), count) for state, count in flows.states.items()],
        "fairq_flows_opened_total": [((), flows.opened)],
        "fairq_flows_refused_total": [((), flows.refused)],
        "fairq_flows_unscaled": [
            ((dpid_text(dpid),), link.flows_unscaled) for dpid, link in sorted(windows.links.items())
        ],
        "fairq_paths_pinned": [((), fabric.paths.pinned)],
        "fairq_repins_total": [((), fabric.repins)],
        "fairq_announcements": [((), len(windows.announcements))],
        "fairq_announcements_made_total": [((), windows.announcements.made)],
        "fairq_gif_flows": [((state,), gif[state]) for state in _GIF_STATES],
        "fairq_losses_remembered": [((), windows.recovery.stored)],
        "fairq_losses_total": [((), losses["lost"])],
        "fairq_losses_repeated_total": [((), losses["repeated"])],
        "fairq_losses_settled_total": [((name,), losses[name]) for name in _SETTLED],
        "fairq_recovery_limited_total": [((), losses["limited"])],
        "fairq_spoken_total": [((kind,), sent[kind]) for kind in _SENT_KINDS],
        "fairq_unspoken_total": [((kind, reason), count) for (kind, _, reason), count in unsent],
    }


def _gif_states(tables: Iterable[GifTable], now: float) -> Counter[str]:
    """The flows of all tables, by the state of their deadlines."""
    entries = (entry for table in tables for entry in list(table))
    return Counter(entry.state(now) or "none" for entry in in_steps(entries, LOOKS_PER_STEP))
