"""The rows of the REST interface: ports, flows and what else the controller lists."""

from __future__ import annotations

from typing import Literal

from fairq_ryu.fabric.flows.table import FlowState
from fairq_ryu.rest.schema.base import Count, Dpid, PortNumber, PortOf, Row, Span, TcpPort, said

State = Literal["syn-seen", "established", "half-closed", "closed"]
assert State.__args__ == tuple(str(state) for state in FlowState)  # type: ignore[attr-defined]


class PortRow(Row):
    """A port of a switch, with its queue and its windows."""

    dpid: Dpid = said("dpid of the switch")
    port: PortNumber = said("OpenFlow port number")
    name: str = said("name of the interface")
    role: Literal["host", "link", "undecided"] = said("`host`, `link` (to another switch) or `undecided`")
    flows: Count = said("number of flows (directions of connections) whose data leaves through this port")
    active: Count | None = said(
        "number of flows that sent data recently, counted by the agent; null: no agent"
    )
    queue_bytes: Count | None = said("length of the queue when it was last read", "bytes")
    peak_bytes: Count | None = said("greatest length of the queue between the last two readings", "bytes")
    limit_bytes: Count | None = said("size of the buffer; 0: not known, or the port has no queue", "bytes")
    rate_bps: Count | None = said("rate of the port; 0: not known", "bit/s")
    drops: Count | None = said("packets that the queue has dropped, counted by the queue itself", "packets")
    pool_bytes: Count | None = said("pool that is installed for the port; null: none", "bytes")
    window_bytes: Count | None = said(
        "window that is installed for every flow of the port; null: none", "bytes"
    )
    flow_windows: Count = said("number of flows with a window rule of their own")
    policy: str = said("policy of the port")
    target_bytes: Count | None = said("queue length that the policy aims at; null: it has no target", "bytes")
    state: Literal["CNG", "NOM"] | None = said(
        "`CNG`: the queue is congested, by the policy's thresholds; `NOM`: it is not; null: the "
        "policy sets no thresholds"
    )
    incast: bool | None = said(
        "whether IQM limits its flows now because of an incast; null with other policies"
    )
    tx_bytes: Count | None = said("bytes sent through this port, counted by the bridge", "bytes")
    rx_bytes: Count | None = said("bytes received through this port, counted by the bridge", "bytes")
    tx_bps: Count | None = said(
        "rate at which `tx_bytes` grew in about the last half second; null: not known yet", "bit/s"
    )
    rx_bps: Count | None = said("the same for `rx_bytes`", "bit/s")


class FlowRow(Row):
    """A TCP connection."""

    src: str = said("IP address of the side that opened the connection, if that is known")
    dst: str = said("IP address of the other side")
    sport: TcpPort = said("TCP port of `src`")
    dport: TcpPort = said("TCP port of `dst`")
    state: State = said(
        "state of the connection; a `closed` one stays in the list for a short time and is not "
        "counted any more"
    )
    ports: list[PortOf] = said(
        "switch ports through which data from `src` to `dst` leaves, in the order of the path"
    )
    back_ports: list[PortOf] = said("the same for data from `dst` to `src`")
    wscale: Count | None = said("window scale that `src` announced")
    back_wscale: Count | None = said("window scale that `dst` announced")
    mss: Count = said("segment size that `src` announced", "bytes")
    bytes: Count = said("payload from `src` to `dst`", "bytes")
    back_bytes: Count = said("payload from `dst` to `src`", "bytes")
    age_s: Span = said("time since the connection was first seen", "s")
    idle_s: Span = said("time since its last packet was seen", "s")
    pinned: bool = said("whether rules of its own keep it on its path")
    rtt_s: Span | None = said("round-trip time, measured in its handshake", "s")
    window_bytes: Count | None = said(
        "window that `src` may fill: the smallest one installed on the path; null: none is installed", "bytes"
    )
    back_window_bytes: Count | None = said("the same for `dst`", "bytes")
    window_kind: Literal["flow", "port", "pool"] | None = said(
        "where this window comes from: `flow` (a rule for this flow), `port` (one window for "
        "every flow of a port) or `pool` (a share of a port's pool). It describes "
        "`window_bytes`, or `back_window_bytes` if `window_bytes` is null"
    )
    rewritten: Count | None = said(
        "number of ACKs, of both sides, whose window was lowered; the largest number that one "
        "agent reports; null: no report yet"
    )


class SwitchRow(Row):
    """A switch."""

    dpid: Dpid = said("dpid of the switch")
    connected: bool = said("whether the bridge is connected")
    agent: bool = said("whether its agent is connected")
    ports: Count = said("number of ports of the switch")


class HostRow(Row):
    """A host."""

    mac: str = said("MAC address of the host")
    at: PortOf = said("switch port that leads to the host")
    addresses: list[str] = said("IP addresses that the host has used, IPv4 first")


class LinkRow(Row):
    """A link between two switches."""

    a: PortOf = said("port at one end of the link")
    b: PortOf = said("port at the other end; each link is listed once")


class PathRow(Row):
    """The path of a connection."""

    src: str = said("IP address of the first side")
    dst: str = said("IP address of the second side")
    sport: TcpPort = said("TCP port of `src`")
    dport: TcpPort = said("TCP port of `dst`")
    ports: list[PortOf] = said(
        "switch ports through which segments from `src` to `dst` leave, in the order of the path"
    )
    back_ports: list[PortOf] = said("the same for data from `dst` to `src`")
    pinned: bool = said("whether rules of its own keep it on this path")


class GifRow(Row):
    """A flow of a port whose policy knows deadlines."""

    dpid: Dpid = said("dpid of the switch")
    port: PortNumber = said("port through which the flow's data leaves")
    priority: Count = said("position of the flow in the order of its port; 1 is served first")
    src: str = said("IP address that sends the data")
    dst: str = said("IP address that receives it")
    sport: TcpPort = said("TCP port of `src`")
    dport: TcpPort = said("TCP port of `dst`")
    age_s: Span = said("time since the flow started", "s")
    size_bytes: Count | None = said("size, as announced", "bytes")
    remaining_bytes: Count | None = said("bytes of these that the receiver has not acknowledged yet", "bytes")
    deadline_s: float | None = said(
        "deadline, counted from when the flow was entered in this table; if its SYN was held, "
        "that is after the start of the flow",
        "s",
    )
    remaining_s: float | None = said("time left until the deadline; negative: time since the deadline", "s")
    state: Literal["open", "met", "missed", "ended"] | None = said(
        "`open`: the deadline is still ahead; `met`: all bytes are acknowledged and the deadline "
        "is still ahead; `missed`: the deadline has passed and bytes are missing; `ended`: all "
        "bytes are acknowledged and the deadline has passed (the flow may have been in time or "
        "late); null: no deadline"
    )


class AnnouncementRow(Row):
    """An announcement of a flow."""

    id: Count = said("number of the announcement")
    src: str = said("IP address that sends the data")
    dst: str = said("IP address that receives it")
    sport: TcpPort | None = said("TCP port of `src`; null: any")
    dport: TcpPort = said("TCP port of `dst`")
    size: Count | None = said("size of the flow; null: not announced", "bytes")
    deadline: Span | None = said("deadline, counted from the start of the flow; null: none", "s")
    left: Count = said("number of flows to which it can still be assigned")
    expires_s: Span | None = said(
        "time during which it can still be assigned; null: it cannot be assigned any more", "s"
    )
    flows: list[int] = said("source ports of the flows to which it is assigned")
