"""The rows of the REST interface: ports, flows and what else the controller lists."""

from __future__ import annotations

from typing import Literal

from fairq_ryu.apps.api.base import Count, Dpid, PortNumber, PortOf, Row, Span, TcpPort, said
from fairq_ryu.fabric.flows import FlowState

State = Literal["syn-seen", "established", "half-closed", "closed"]
assert State.__args__ == tuple(str(state) for state in FlowState)  # type: ignore[attr-defined]


class PortRow(Row):
    """A port of a switch, with its queue and its windows."""

    dpid: Dpid = said("the switch")
    port: PortNumber = said("OpenFlow number")
    name: str = said("name of the interface")
    role: Literal["host", "link", "undecided"] = said("`host`, `link` (to another switch) or `undecided`")
    flows: Count = said("directions of connections whose data leaves by it")
    active: Count | None = said(
        "flows that sent data lately, as the agent counts them; null without an agent"
    )
    queue_bytes: Count | None = said("queue when it was last read", "bytes")
    peak_bytes: Count | None = said("longest queue between the last two readings", "bytes")
    limit_bytes: Count | None = said("size of the buffer; 0: not known, or no queue", "bytes")
    rate_bps: Count | None = said("rate of the port; 0: not known", "bit/s")
    drops: Count | None = said("dropped by the queue, by its own count", "packets")
    pool_bytes: Count | None = said("pool that stands for the port", "bytes")
    window_bytes: Count | None = said("window that stands for each of its flows", "bytes")
    flow_windows: Count = said("flows with a window of their own")
    policy: str = said("policy that governs it")
    target_bytes: Count | None = said("queue that the policy aims at; null: it has no such aim", "bytes")
    state: Literal["CNG", "NOM"] | None = said(
        "`CNG`: the queue is congested by the policy's thresholds; `NOM`: it is not; null: nobody watches"
    )
    incast: bool | None = said("whether IQM holds its flows for an incast; null with other policies")
    tx_bytes: Count | None = said("what has left the switch by it, by the bridge's own count", "bytes")
    rx_bytes: Count | None = said("what has come in by it", "bytes")
    tx_bps: Count | None = said(
        "rate of `tx_bytes` over the last half second or so; null: not known yet", "bit/s"
    )
    rx_bps: Count | None = said("the same of `rx_bytes`", "bit/s")


class FlowRow(Row):
    """A TCP connection."""

    src: str = said("IP address of the side that opened the connection, as far as that is known")
    dst: str = said("IP address of the other side")
    sport: TcpPort = said("TCP port of `src`")
    dport: TcpPort = said("TCP port of `dst`")
    state: State = said(
        "of both sides together; a `closed` connection stays listed for a moment, and counts nowhere"
    )
    ports: list[PortOf] = said("ports that data from `src` to `dst` leaves by, in the order of the path")
    back_ports: list[PortOf] = said("the same from `dst` to `src`")
    wscale: Count | None = said("window scale that `src` announced")
    back_wscale: Count | None = said("window scale that `dst` announced")
    mss: Count = said("segment size that `src` announced", "bytes")
    bytes: Count = said("payload from `src` to `dst`", "bytes")
    back_bytes: Count = said("payload from `dst` to `src`", "bytes")
    age_s: Span = said("since the connection was first seen", "s")
    idle_s: Span = said("since it was last seen", "s")
    pinned: bool = said("whether it is kept on its path by a rule of its own")
    rtt_s: Span | None = said("round-trip time, as its handshake showed it", "s")
    window_bytes: Count | None = said(
        "window that `src` may fill: the smallest of those that stand on its path; null: none stands", "bytes"
    )
    back_window_bytes: Count | None = said("the same for `dst`", "bytes")
    window_kind: Literal["flow", "port", "pool"] | None = said(
        "what that window comes from: a rule of its own (`flow`), the window of all flows of a port, or its "
        "share of a port's pool; of `window_bytes`, or of `back_window_bytes` where only that is there"
    )
    rewritten: Count | None = said(
        "ACKs of both sides whose window was lowered, where most were; null: no agent has told"
    )


class SwitchRow(Row):
    """A switch."""

    dpid: Dpid = said("the switch")
    connected: bool = said("whether the bridge is connected")
    agent: bool = said("whether its agent is connected")
    ports: Count = said("number of ports")


class HostRow(Row):
    """A host."""

    mac: str = said("the host's MAC address")
    at: PortOf = said("the port that it is behind")
    addresses: list[str] = said("the IP addresses that it was seen to use")


class LinkRow(Row):
    """A link between two switches."""

    a: PortOf = said("port at one end")
    b: PortOf = said("port at the other; each link is there once")


class PathRow(Row):
    """The path of a connection."""

    src: str = said("IP address of one side")
    dst: str = said("IP address of the other")
    sport: TcpPort = said("TCP port of `src`")
    dport: TcpPort = said("TCP port of `dst`")
    ports: list[PortOf] = said("ports that segments from `src` to `dst` leave by, in order")
    back_ports: list[PortOf] = said("the same from `dst` to `src`")
    pinned: bool = said("whether rules of its own keep it there")


class GifRow(Row):
    """A flow of a port whose policy knows deadlines."""

    dpid: Dpid = said("the switch")
    port: PortNumber = said("the port that the flow's data leaves by")
    priority: Count = said("its place on that port; 1 is served first")
    src: str = said("IP address that sends the data")
    dst: str = said("IP address that receives it")
    sport: TcpPort = said("TCP port of `src`")
    dport: TcpPort = said("TCP port of `dst`")
    age_s: Span = said("since its start", "s")
    size_bytes: Count | None = said("as announced", "bytes")
    remaining_bytes: Count | None = said("of these, what its receiver has not acknowledged", "bytes")
    deadline_s: float | None = said(
        "from when the table has it, which of a SYN that waited is later than its start", "s"
    )
    remaining_s: float | None = said("until its deadline; negative: since", "s")
    state: Literal["open", "met", "missed", "ended"] | None = said(
        "`open`: not yet due; `met`: all is acknowledged, in time; `missed`: due, and not all is; `ended`: "
        "all is acknowledged, and the deadline has passed meanwhile, before or after; null: no deadline"
    )


class AnnouncementRow(Row):
    """An announcement of a flow."""

    id: Count = said("its number")
    src: str = said("IP address that sends the data")
    dst: str = said("IP address that receives it")
    sport: TcpPort | None = said("TCP port of `src`; null: any")
    dport: TcpPort = said("TCP port of `dst`")
    size: Count | None = said("of the flow; null: not said", "bytes")
    deadline: Span | None = said("from the start of the flow; null: none", "s")
    left: Count = said("so many flows may still take it")
    expires_s: Span | None = said("until none may any more; null: none may", "s")
    flows: list[int] = said("source ports of the flows that have it")
