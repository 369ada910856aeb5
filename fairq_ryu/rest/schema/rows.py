"""The rows of the REST interface: ports, flows and what else the controller lists."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from fairq_ryu.fabric.flows.table import FlowState
from fairq_ryu.far_queue import Why
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.model import PortMode, WindowKind
from fairq_ryu.queue_law_spec import Limits
from fairq_ryu.rest.schema.base import Count, Dpid, FlowRef, PortNumber, PortOf, Row, Span, TcpPort, described

State = Literal["syn-seen", "established", "half-closed", "closed"]
assert State.__args__ == tuple(str(state) for state in FlowState)  # type: ignore[attr-defined]
PortModeName = Literal["act", "observe", "disabled"]
assert PortModeName.__args__ == tuple(str(mode) for mode in PortMode)  # type: ignore[attr-defined]
QUEUE_LAWS = tuple(law.name for law in queue_laws().values())
WINDOW_SCOPES = ("flow", *(kind.scope for kind in WindowKind if kind.table == 0))


def _scope(text: str) -> str:
    if text not in WINDOW_SCOPES:
        raise ValueError(f"{text} is none of {', '.join(WINDOW_SCOPES)}")
    return text


def _queue_law(text: str) -> str:
    if text not in QUEUE_LAWS:
        raise ValueError(f"{text} is none of {', '.join(QUEUE_LAWS)}")
    return text


VirtualRateWhy = Literal["unknown", "blind", "share", "raised", "full", "others"]
assert VirtualRateWhy.__args__ == tuple(each.name.lower() for each in Why)  # type: ignore[attr-defined]
QueueLawLimits = Literal["nothing", "length", "mean", "delay", "share", "unresponsive"]
assert QueueLawLimits.__args__ == tuple(each.name.lower() for each in Limits)  # type: ignore[attr-defined]
# Made from the folders of laws, so that a new one is valid without a change here.
QueueLawName = Annotated[
    str, AfterValidator(_queue_law), WithJsonSchema({"enum": list(QUEUE_LAWS), "type": "string"})
]
# The scope of a window rule. Made from the table of kinds, so that a new kind is valid without a change here.
WindowScope = Annotated[
    str, AfterValidator(_scope), WithJsonSchema({"enum": list(WINDOW_SCOPES), "type": "string"})
]


class PortRow(Row):
    """A port of a switch, with its queue and its windows."""

    dpid: Dpid = described("dpid of the switch")
    port: PortNumber = described("OpenFlow port number")
    name: str = described("name of the interface")
    role: Literal["host", "link", "undecided", "unknown", "far"] = described(
        "`host`, `link` (to another switch) or `undecided`; `unknown`: nobody looks for links, because the "
        "switch is not governed by paths; `far`: no port of the switch, but a queue in the switch above it"
    )
    far_of: PortNumber | None = described(
        "port by which the data of a far queue arrives; null: it is no far queue"
    )
    hidden_bytes: Count | None = described(
        "what stood last in the queue that a far queue is for, by round trips; null: not reported, or no far "
        "queue; likewise the next five",
        "bytes",
    )
    hidden_delay_s: Span | None = described("mean delay there; null: no round trip was seen", "s")
    line_bps: Count | None = described("rate of its line, set or found; 0: not known yet", "bit/s")
    virtual_rate_bps: Count | None = described("rate at which the virtual queue drains", "bit/s")
    arrivals_peak_bps: Count | None = described("highest rate of arrivals of the last 1 to 2 s", "bit/s")
    virtual_rate_why: VirtualRateWhy | None = described(
        "what that rate is: `unknown` (none yet), `blind` (the share; no round trips are seen), `share`, "
        "`raised` (more, because hardly anything stands), `full` (at most the share, because something "
        "stands), `others` (what other traffic leaves)"
    )
    flows: Count = described(
        "number of flows (directions of connections) whose data leaves through this port"
    )
    active: Count | None = described(
        "number of flows that sent data recently, counted by the agent; null: no agent"
    )
    queue_bytes: Count | None = described("length of the queue when it was last read", "bytes")
    peak_bytes: Count | None = described(
        "greatest length of the queue between the last two readings", "bytes"
    )
    limit_bytes: Count | None = described(
        "size of the buffer; 0: not known, or the port has no queue", "bytes"
    )
    rate_bps: Count | None = described("rate of the port; 0: not known", "bit/s")
    drops: Count | None = described(
        "packets that the queue has dropped, counted by the queue itself; of a far queue: segments that "
        "filled a gap later",
        "packets",
    )
    pool_bytes: Count | None = described("pool that is in force on the port; null: none", "bytes")
    window_bytes: Count | None = described(
        "window that is in force for every flow of the port; null: none", "bytes"
    )
    law: Literal["switch", "controller"] | None = described(
        "where the law of the port runs: `switch` or `controller`; null: the port has no queue of known "
        "size, or the switch does not run its law"
    )
    law_missing: str | None = described(
        "why the switch does not run the law of the policy, so that the port has no windows; null: it runs "
        "it, or the policy has none for the switch"
    )
    turns_waiting: Count | None = described(
        "new connections that wait for their turn, with their SYN or SYN-ACK or with a closed window; null: "
        "new connections take no turns on this port"
    )
    turns_held: Count | None = described("SYNs and SYN-ACKs that have waited, or wait")
    turns_released: Count | None = described("of these, those that left because the port had room")
    turns_overdue: Count | None = described("of these, those that left because they had waited too long")
    turns_overflowed: Count | None = described(
        "those that did not wait for room because too many waited or too many handshakes were incomplete"
    )
    queue_law: QueueLawName | None = described(
        "law that judges each packet before it enters the queue; null: none"
    )
    queue_law_missing: str | None = described("why the agent does not run that law; null: it does")
    queue_law_limits: QueueLawLimits | None = described(
        "what the law acts on now: `nothing`, `length` (of the queue), `mean` (of the queue), `delay`, "
        "`share` (two flows or more have samples, and a fair share is known), `unresponsive` (a flow has "
        "not reacted)"
    )
    judged: Count | None = described(
        "packets that the laws of the port have judged so far; null: not reported", "packets"
    )
    judged_dropped: Count | None = described("of these, those that they dropped", "packets")
    judged_marked: Count | None = described("of these, those that are marked (CE)", "packets")
    judged_not_ect: Count | None = described("of those judged, those that are not ECN-capable", "packets")
    judged_unmarked: Count | None = described(
        "of these, those that would have been marked if they were", "packets"
    )
    fair_share: float | None = described(
        "fair share of a flow, m_f; null: not known, or the law has none", "samples"
    )
    fair_share_flows: Count | None = described("flows with samples in the shadow buffer")
    queue_delay_s: Span | None = described("queueing delay of the last packet that was judged", "s")
    delay_target_s: Span | None = described("queueing delay that the law aims at; null: it has none", "s")
    delay_interval_s: Span | None = described("for how long the delay must be above that", "s")
    flow_windows: Count = described("number of flows with a window rule of their own")
    mode: PortModeName = described(
        "`act`: windows are lowered; `observe`: they are worked out, and nothing is written; `disabled`: the "
        "port has no windows"
    )
    disabled_s: Span | None = described(
        "time until the port is enabled again; null: it is not disabled, or it is until a request enables it",
        "s",
    )
    lowered: Count | None = described(
        "ACKs of the port's data whose window was lowered; null: the agent has not reported it"
    )
    would_lower: Count | None = described(
        "ACKs whose window would have been lowered if the port was not only observed; null: as `lowered`"
    )
    policy: str = described("policy of the port")
    target_bytes: Count | None = described(
        "queue length that the policy aims at; null: it has no target", "bytes"
    )
    state: Literal["CNG", "NOM"] | None = described(
        "`CNG`: the queue is congested, by the policy's thresholds; `NOM`: it is not; null: the "
        "policy sets no thresholds"
    )
    incast: bool | None = described(
        "whether the law limits its flows now because of an incast; null: it detects none"
    )
    tx_bytes: Count | None = described("bytes sent through this port, counted by the bridge", "bytes")
    rx_bytes: Count | None = described("bytes received through this port, counted by the bridge", "bytes")
    tx_bps: Count | None = described(
        "rate at which `tx_bytes` grew in about the last half second; null: not known yet", "bit/s"
    )
    rx_bps: Count | None = described("the same for `rx_bytes`", "bit/s")


class ModeChangeRow(Row):
    """A port whose mode has changed."""

    dpid: Dpid = described("dpid of the switch")
    port: PortNumber = described("OpenFlow port number")
    name: str = described("name of the interface")
    before: PortModeName = described("mode before the request")
    after: PortModeName = described("mode after it")
    rules_before: Count = described("number of window rules of the port before the request")
    rules_after: Count = described("number of window rules after it; new ones follow within an interval")


class FlowRow(FlowRef):
    """A TCP connection."""

    src: str = described("IP address of the side that opened the connection, if that is known")
    dst: str = described("IP address of the other side")
    state: State = described(
        "state of the connection; a `closed` one stays in the list for a short time and is not "
        "counted any more"
    )
    ports: list[PortOf] = described(
        "switch ports through which data from `src` to `dst` leaves, in the order of the path"
    )
    back_ports: list[PortOf] = described("the same for data from `dst` to `src`")
    wscale: Count | None = described("window scale that `src` announced")
    back_wscale: Count | None = described("window scale that `dst` announced")
    mss: Count = described("segment size that `src` announced", "bytes")
    bytes: Count = described("payload from `src` to `dst`", "bytes")
    back_bytes: Count = described("payload from `dst` to `src`", "bytes")
    age_s: Span = described("time since the connection was first seen", "s")
    idle_s: Span = described("time since its last packet was seen", "s")
    pinned: bool = described("whether rules of its own keep it on its path")
    rtt_s: Span | None = described("round-trip time, measured in its handshake", "s")
    window_bytes: Count | None = described(
        "window that `src` may fill: the smallest one installed on the path; null: none is installed", "bytes"
    )
    back_window_bytes: Count | None = described("the same for `dst`", "bytes")
    window_kind: WindowScope | None = described(
        "where this window comes from: `flow` (a rule for this flow), `port` (one window for "
        "every flow of a port), `pool` (a share of a port's pool) or `law` (a law that runs in the "
        "switch). It describes `window_bytes`, or `back_window_bytes` if `window_bytes` is null"
    )
    rewritten: Count | None = described(
        "number of ACKs, of both sides, whose window was lowered; the largest number that one "
        "agent reports; null: no report yet"
    )


class SwitchRow(Row):
    """A switch."""

    dpid: Dpid = described("dpid of the switch")
    connected: bool = described("whether the bridge is connected")
    agent: bool = described("whether its agent is connected")
    ports: Count = described("number of ports of the switch")
    way: Literal["windows", "normal", "paths"] = described(
        "how the switch is governed: `windows` (by its agent alone), `normal` (it forwards by its own rules) "
        "or `paths` (the controller forwards)"
    )
    limits: list[str] = described("what cannot be done in this way, with the reasons")


class HostRow(Row):
    """A host."""

    mac: str = described("MAC address of the host")
    vlan: Count = described("VLAN of the host; 0: none. The same addresses in two VLANs are two hosts")
    at: PortOf = described("switch port that leads to the host")
    addresses: list[str] = described("IP addresses that the host has used, IPv4 first")


class LinkRow(Row):
    """A link between two switches."""

    a: PortOf = described("port at one end of the link")
    b: PortOf = described("port at the other end; each link is listed once")


class PathRow(FlowRef):
    """The path of a connection."""

    src: str = described("IP address of the first side")
    dst: str = described("IP address of the second side")
    ports: list[PortOf] = described(
        "switch ports through which segments from `src` to `dst` leave, in the order of the path"
    )
    back_ports: list[PortOf] = described("the same for data from `dst` to `src`")
    pinned: bool = described("whether rules of its own keep it on this path")


class GifRow(Row):
    """A flow of a port whose policy uses deadlines."""

    dpid: Dpid = described("dpid of the switch")
    port: PortNumber = described("port through which the flow's data leaves")
    priority: Count = described("position of the flow in the order of its port; 1 is served first")
    src: str = described("IP address that sends the data")
    dst: str = described("IP address that receives it")
    sport: TcpPort = described("TCP port of `src`")
    dport: TcpPort = described("TCP port of `dst`")
    age_s: Span = described("time since the flow started", "s")
    size_bytes: Count | None = described("size, as announced", "bytes")
    remaining_bytes: Count | None = described(
        "bytes of these that the receiver has not acknowledged yet", "bytes"
    )
    deadline_s: float | None = described(
        "deadline, counted from when the flow was entered in this table; if its SYN was held, "
        "that is after the start of the flow",
        "s",
    )
    remaining_s: float | None = described(
        "time left until the deadline; negative: time since the deadline", "s"
    )
    state: Literal["open", "met", "missed", "ended"] | None = described(
        "`open`: the deadline is still ahead; `met`: all bytes are acknowledged and the deadline "
        "is still ahead; `missed`: the deadline has passed and bytes are missing; `ended`: all "
        "bytes are acknowledged and the deadline has passed (the flow may have been in time or "
        "late); null: no deadline"
    )


class FarQueueRow(Row):
    """A far queue."""

    dpid: Dpid = described("dpid of the switch")
    bridge: str = described("name of its bridge")
    port: PortNumber = described("port by which the data arrives")
    far_port: PortNumber = described("number of the far queue, a port of its own in `/v1/ports`")
    name: str = described("name of the port's interface")
    rate_bps: Count | None = described("rate of the port above; null: that of the link", "bit/s")
    buffer_bytes: Count | None = described("its buffer; null: what drains within 5 ms", "bytes")
    share: float = described("part of the rate at which the virtual queue drains")
    origin: Literal["configuration", "request"] = described(
        "where this comes from: the configuration of the agent, or a request to this controller"
    )
    uplink: str | None = described("uplink whose rate is divided among this one and others; null: none")
    leased_bps: Count | None = described(
        "rate that the controller has leased it in place of its own; null: none", "bit/s"
    )


class AnnouncementRow(Row):
    """An announcement of a flow."""

    id: Count = described("number of the announcement")
    src: str = described("IP address that sends the data")
    dst: str = described("IP address that receives it")
    sport: TcpPort | None = described("TCP port of `src`; null: any")
    dport: TcpPort = described("TCP port of `dst`")
    size: Count | None = described("size of the flow; null: not announced", "bytes")
    deadline: Span | None = described("deadline, counted from the start of the flow; null: none", "s")
    priority: Count | None = described("priority within its tenant; null: not announced")
    left: Count = described("number of flows to which it can still be assigned")
    expires_s: Span | None = described(
        "time during which it can still be assigned; null: it cannot be assigned any more", "s"
    )
    vlan: Count | None = described("VLAN of the flow; 0: none; null: any")
    flows: list[int] = described("source ports of the flows to which it is assigned")


class TenantPortRow(Row):
    """What a tenant has at a port."""

    dpid: Dpid = described("dpid of the switch")
    port: PortNumber = described("OpenFlow port number")
    name: str = described("name of the interface")
    flows: Count = described("number of flows of the tenant that use their windows, or are new")
    goodput_bps: Count = described("acknowledged payload in the last second or so", "bit/s")
    share: Annotated[float, Field(ge=0, le=1)] = described(
        "part of the port's windows that is the tenant's; 0: it sends nothing"
    )
    pool_bytes: Count = described("part of the pool of the port, which its flows share", "bytes")
    bytes: Count = described("payload that was acknowledged since the agent began", "bytes")
    acks: Count = described("ACKs that met a share of the tenant")
    floor_broken: Count = described(
        "of these, ACKs at which one segment for each flow was more than the share: it has more than its "
        "share then"
    )


class TenantRow(Row):
    """A tenant; its numbers are sums over the ports and far queues: a flow counts at each that it passes."""

    name: str = described("name; `others`: all hosts that have no tenant")
    hosts: list[str] = described("networks of the tenant")
    weight: Annotated[int, Field(ge=1)] = described("its weight")
    flows: Count = described("flows that use their windows, or are new, of all ports: one counts at each")
    goodput_bps: Count = described("payload acknowledged in the last second or so, of all ports", "bit/s")
    bytes: Count = described("payload acknowledged since the agents began, of all ports", "bytes")
    floor_broken: Count = described("ACKs at which the least windows broke the share")
    ports: list[TenantPortRow] = described("ports where it has sent")
