"""The controller's own health as metrics: messages that reach it, its delay, and rules in its agents."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from fairq_ryu import __version__
from fairq_ryu.metrics.family import Family
from fairq_ryu.metrics.tables import Samples
from fairq_ryu.model import dpid_text

if TYPE_CHECKING:
    from fairq_ryu.control.operations.state import ControllerState

HEALTH = (
    Family("fairq_build_info", "info", "Versions of the running programs.", ("version", "python")),
    Family("fairq_policy_info", "info", "Policy of the ports that no pattern matches.", ("policy",)),
    Family(
        "fairq_packet_ins_total",
        "counter",
        "Packets that switches have sent to the controller, by kind.",
        ("kind",),
    ),
    Family(
        "fairq_packet_ins_dropped_total",
        "counter",
        "Packets to the controller that the bridge has dropped, because of the limit packet_in_rate.",
        ("dpid",),
    ),
    Family(
        "fairq_discovery_frames_ignored_total",
        "counter",
        "LLDP frames that show no link, by the reason why the controller ignores them.",
        ("reason",),
    ),
    Family(
        "fairq_address_claims_total",
        "counter",
        "Frames that claimed an address of another reachable host, by outcome.",
        ("outcome",),
    ),
    Family(
        "fairq_new_hosts_put_aside_total",
        "counter",
        "Frames from new addresses that were not learned as hosts, because their port had brought too many.",
    ),
    Family(
        "fairq_event_queue_length",
        "gauge",
        "Messages from switches that wait to be handled, without most copies of segments and replies of "
        "agents.",
    ),
    Family(
        "fairq_event_queue_capacity",
        "gauge",
        "Maximum of fairq_event_queue_length; at this length the controller stops reading from switches.",
    ),
    Family(
        "fairq_copies_waiting",
        "gauge",
        "Copies of SYN, FIN and RST that wait until the flow table takes them.",
    ),
    Family(
        "fairq_loop_delay_seconds",
        "histogram",
        "Delay of the control loop: how much later than planned it ran.",
    ),
    Family(
        "fairq_channel_round_trip_seconds",
        "histogram",
        "Time from a request for queue lengths until the agent's answer was handled.",
        ("dpid",),
    ),
    Family(
        "fairq_channel_timeouts_total",
        "counter",
        "Requests for queue lengths that the agent did not answer within a second.",
        ("dpid",),
    ),
    Family(
        "fairq_rules",
        "gauge",
        "Window rules that are installed in the agent, as far as the controller knows.",
        ("dpid",),
    ),
    Family(
        "fairq_rule_messages_total",
        "counter",
        "Messages to the agent that installed, renewed or removed a window rule.",
        ("dpid",),
    ),
    Family(
        "fairq_leases_lost_total",
        "counter",
        "Window rules that ended too early: not renewed within their lease (late), or the agent "
        "had disconnected (agent gone).",
        ("reason",),
    ),
    Family("fairq_policy_failures_total", "counter", "Times that a policy has failed on a port."),
    Family(
        "fairq_refused_messages_total",
        "counter",
        "Messages that a bridge or agent has rejected with an error.",
        ("by",),
    ),
    Family("fairq_malformed_messages_total", "counter", "Messages from agents that could not be decoded."),
    Family(
        "fairq_faults_total",
        "counter",
        "Unexpected faults of the controller, by the part of it that failed and went on; its log has them.",
        ("part",),
    ),
    Family(
        "fairq_events_total",
        "counter",
        "Events, by kind as in /v1/events; for loss, the number of dropped packets.",
        ("kind",),
    ),
    Family("fairq_event_streams", "gauge", "Open event streams."),
)


def health(state: ControllerState, now: float) -> Samples:
    """The controller itself."""
    counts, windows, engine = state.counts, state.windows, state.windows.engine
    links = [((dpid_text(dpid),), link) for dpid, link in sorted(windows.links.items())]
    installed = engine.rules(now)
    dropped = sorted(state.fabric.copy_meters.dropped.items())
    return {
        "fairq_build_info": [((__version__, platform.python_version()), 1)],
        "fairq_policy_info": [((engine.policy.name,), 1)],
        "fairq_packet_ins_total": [((kind,), count) for kind, count in counts.packet_ins.items()],
        "fairq_packet_ins_dropped_total": [((dpid_text(dpid),), count) for dpid, count in dropped],
        "fairq_discovery_frames_ignored_total": [
            ((reason,), count) for reason, count in state.fabric.discovery.ignored.items()
        ],
        "fairq_address_claims_total": [
            ((outcome,), count) for outcome, count in state.fabric.claims.outcomes.items()
        ],
        "fairq_new_hosts_put_aside_total": [((), state.fabric.host_limit.put_aside)],
        "fairq_event_queue_length": [((), state.event_queue.qsize())],
        "fairq_event_queue_capacity": [((), state.event_queue.maxsize)],
        "fairq_copies_waiting": [((), state.copies_waiting())],
        "fairq_loop_delay_seconds": [((), counts.loop_delay.histogram)],
        "fairq_channel_round_trip_seconds": [(dpid, link.round_trip) for dpid, link in links],
        "fairq_channel_timeouts_total": [(dpid, link.unanswered) for dpid, link in links],
        "fairq_rules": [(dpid, installed[link.dpid]) for dpid, link in links],
        "fairq_rule_messages_total": [(dpid, link.rule_messages) for dpid, link in links],
        "fairq_leases_lost_total": [(("late",), engine.lapsed), (("agent gone",), windows.leases_cut)],
        "fairq_policy_failures_total": [((), engine.failures + windows.queue_laws.failures)],
        "fairq_refused_messages_total": [((by,), count) for by, count in counts.refused.items()],
        "fairq_malformed_messages_total": [((), counts.malformed)],
        "fairq_faults_total": [((part,), count) for part, count in sorted(counts.faults.counts.items())],
        "fairq_events_total": [((str(kind),), n) for kind, n in state.history.occurred.items()],
        "fairq_event_streams": [((), state.open_streams())],
    }
