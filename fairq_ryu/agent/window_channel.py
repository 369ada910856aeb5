"""The agent's end of the window channel: one handler for each experimenter message that controllers send.

The dispatch tables at the end list the messages. To add one, write its module in ``fairq_ryu/channel``, and
its handler and one line of a table here. Every function raises
:class:`~fairq_ryu.channel.refusal.OpenFlowError` for a request that is refused, and changes nothing then.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from fairq_ryu.agent.openflow_server import Session
from fairq_ryu.channel import (
    congestion,
    deadlines,
    far_queues,
    flow_changes,
    flow_priorities,
    flow_records,
    framing,
    hidden_queue,
    oxm,
    port_mode,
    port_settings,
    queue_depth,
    queue_law,
    recovery,
    segment_counts,
    segment_state,
    tenants,
    waking,
    window_law,
)
from fairq_ryu.channel.dispatch import DispatchTable, MalformedBody, Route
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.model import FlowKey, SegmentState
from fairq_ryu.packet.tcp_build import Addressing

_Result = TypeVar("_Result")


def receive_command(session: Session, payload: bytes) -> None:
    """Carry out an experimenter message; ``payload`` begins with the experimenter header."""
    route, body = _routed(_COMMANDS, payload)
    if session.role == ofp.OFPCR_ROLE_SLAVE:
        text = f"{route.incoming.name} from a slave"
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE, text)
    _handled(route, session, body)


def answer_request(session: Session, payload: bytes) -> Iterator[bytes]:
    """The reply to an experimenter multipart request whose ``payload`` begins with the experimenter header:
    that header, which opens each message of the reply, and then parts that must not be split.
    """
    route, body = _routed(_REQUESTS, payload)
    parts = _handled(route, session, body)
    yield payload[: framing.EXPERIMENTER.size]
    yield from parts


def _routed(table: DispatchTable[Session, _Result], payload: bytes) -> tuple[Route[Session, _Result], bytes]:
    """The route of a message and its body."""
    if len(payload) < framing.EXPERIMENTER.size:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, "experimenter header truncated")
    experimenter, number = framing.EXPERIMENTER.unpack_from(payload)
    if experimenter != oxm.EXPERIMENTER_ID:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXPERIMENTER, f"{experimenter:#x}")
    route = table.get(number)
    if route is None:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXP_TYPE, f"type {number}")
    return route, payload[framing.EXPERIMENTER.size :]


def _handled(route: Route[Session, _Result], session: Session, body: bytes) -> _Result:
    try:
        return route(session, body)
    except MalformedBody as error:
        raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_LEN, str(error)) from None


# One handler for each message


def _set_thresholds(session: Session, requested: congestion.SetThresholds) -> None:
    session.server.congestion.set_thresholds(requested, time.monotonic_ns())


def _queue_depths(session: Session, port: int) -> Iterable[bytes]:
    server = session.server
    depths = server.read_queue_depths(session, server.requested_ports(port))
    return [queue_depth.encode_reply([depth]) for depth in depths]


def _flow_records(session: Session, requested: flow_records.RecordRequest) -> Iterable[bytes]:
    server = session.server
    return server.data.flow_records(requested.idle_ms, server.requested_ports(requested.port))


def _flow_changes(session: Session, wanted: flow_changes.ChangeRequest) -> Iterable[bytes]:
    return [flow_changes.encode_reply(session.server.data.flow_changes(wanted))]


def _segment_states(session: Session, keys: list[FlowKey]) -> Iterable[bytes]:
    data = session.server.data
    found = [data.segment_state(key) for key in keys]
    # Of a flow that leaves by another bridge, the controller asks that one.
    return [
        segment_state.encode_state(each if each.port in data.ports else SegmentState(each.key, False))
        for each in found
    ]


def _set_law(session: Session, requested: window_law.SetLaw) -> None:
    session.server.set_law(requested, time.monotonic_ns())


def _law_states(session: Session, law: int) -> Iterable[bytes]:
    return [window_law.encode_reply([state]) for state in session.server.laws.states(law)]


def _set_queue_law(session: Session, requested: queue_law.SetQueueLaw) -> None:
    session.server.set_queue_law(requested, time.monotonic_ns())


def _queue_law_states(session: Session, law: int) -> Iterable[bytes]:
    return [queue_law.encode_reply([state]) for state in session.server.queue_laws.states(law)]


def _wake(session: Session, flows: list[Addressing]) -> None:
    session.server.injector.wake(flows)


def _set_recovery(session: Session, wanted: recovery.SetRecovery) -> None:
    session.server.recovery.set(wanted, time.monotonic_ns())


def _set_deadlines(session: Session, wanted: list[deadlines.HandshakeDeadline]) -> None:
    now = time.monotonic_ns()
    for flow, us in wanted:
        session.server.data.set_deadline(flow, None if us is None else now + us * 1000, now)


def _set_tenants(session: Session, wanted: tenants.SetTenants) -> None:
    if wrong := wanted.wrong():
        raise OpenFlowError(ofp.OFPET_EXPERIMENTER, tenants.ERROR_TENANTS, wrong)
    session.server.data.set_tenants(wanted, time.monotonic_ns())


def _set_priorities(session: Session, wanted: list[flow_priorities.FlowPriority]) -> None:
    session.server.data.set_priorities(wanted)


def _tenant_states(session: Session, port: int) -> Iterable[bytes]:
    server = session.server
    ports = server.requested_ports(port)
    found = (state for each in ports for state in server.data.tenant_states(each.ofport))
    return [tenants.encode_reply([each]) for each in found]


def _set_port_mode(session: Session, wanted: port_mode.SetPortMode) -> None:
    session.server.set_port_mode(wanted)


def _port_modes(session: Session, port: int) -> Iterable[bytes]:
    return [port_mode.encode_reply([each]) for each in session.server.port_modes(port)]


def _set_far_queues(session: Session, told: far_queues.Told) -> None:
    session.server.far.tell_far_queues(told)


def _lease_far_rates(session: Session, lease: far_queues.RateLease) -> None:
    session.server.far.lease_far_rates(lease, time.monotonic_ns())


def _far_queues(session: Session, _: None) -> Iterable[bytes]:
    return [far_queues.encode_reply([each]) for each in session.server.far.far_queues()]


def _hidden_queues(session: Session, port: int) -> Iterable[bytes]:
    return [hidden_queue.encode_reply([each]) for each in session.server.hidden_queues(port)]


def _port_settings(session: Session, _: None) -> None:
    for message in port_settings.messages(session.server.port_settings):
        session.send(message)


def _segment_counts(session: Session, _: None) -> Iterable[bytes]:
    server = session.server
    counts = segment_counts.SegmentCounts(
        server.recovery.outcomes, server.injector.counts, server.recovery.stored
    )
    return segment_counts.encode_reply(counts)


_COMMANDS: DispatchTable[Session, None] = DispatchTable()
_COMMANDS.add(congestion.SET, _set_thresholds)
_COMMANDS.add(window_law.SET, _set_law)
_COMMANDS.add(queue_law.SET, _set_queue_law)
_COMMANDS.add(waking.WAKE, _wake)
_COMMANDS.add(recovery.SET, _set_recovery)
_COMMANDS.add(deadlines.SET, _set_deadlines)
_COMMANDS.add(tenants.SET, _set_tenants)
_COMMANDS.add(flow_priorities.SET, _set_priorities)
_COMMANDS.add(port_mode.SET, _set_port_mode)
_COMMANDS.add(port_settings.REQUEST, _port_settings)
_COMMANDS.add(far_queues.SET, _set_far_queues)
_COMMANDS.add(far_queues.LEASE, _lease_far_rates)

_REQUESTS: DispatchTable[Session, Iterable[bytes]] = DispatchTable()
_REQUESTS.add(queue_depth.REQUEST, _queue_depths)
_REQUESTS.add(flow_records.REQUEST, _flow_records)
_REQUESTS.add(flow_changes.REQUEST, _flow_changes)
_REQUESTS.add(segment_state.REQUEST, _segment_states)
_REQUESTS.add(window_law.REQUEST, _law_states)
_REQUESTS.add(queue_law.REQUEST, _queue_law_states)
_REQUESTS.add(segment_counts.REQUEST, _segment_counts)
_REQUESTS.add(port_mode.REQUEST, _port_modes)
_REQUESTS.add(far_queues.REQUEST, _far_queues)
_REQUESTS.add(tenants.REQUEST, _tenant_states)
_REQUESTS.add(hidden_queue.REQUEST, _hidden_queues)
