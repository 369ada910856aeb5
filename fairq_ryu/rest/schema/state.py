"""Models of the controller's own state: health, policy, events, and the state for live pages."""

from __future__ import annotations

from typing import Literal

from fairq_ryu.rest.schema.base import Count, Dpid, FlowRef, PortNumber, Row, Span, described
from fairq_ryu.rest.schema.rows import GifRow, HostRow, LinkRow, PortRow, SwitchRow, TenantRow

Value = int | float | bool | str
EventKind = Literal[
    "cng",
    "nom",
    "incast",
    "share",
    "others",
    "rate",
    "law",
    "repin",
    "loss",
    "missed",
    "met",
    "unsent",
    "bridge",
    "agent",
    "policy",
    "mode",
    "far",
]


class Ways(Row):
    """The switches by the way in which they are governed."""

    windows: list[Dpid] = described("governed by their agents alone")
    normal: list[Dpid] = described("connected; they forward by their own rules")
    paths: list[Dpid] = described("connected; the controller forwards")


class Health(Row):
    """The health of the controller, with its version and its numbers of bridges and agents."""

    status: Literal["ok", "failing"] = described(
        "`failing`: a part of the controller has failed unexpectedly within the last minute, and goes on; "
        "its log says why"
    )
    failing: list[str] = described("the parts that have failed")
    version: str = described("version of fairq_ryu")
    policy: str = described("policy of the ports that no pattern matches")
    uptime_s: Span = described("time since the controller started", "s")
    bridges: Count = described("number of connected bridges")
    agents: Count = described("number of connected agents")
    agents_missing: list[Dpid] = described("connected bridges whose agent is not connected")
    ways: Ways = described("switches that are connected, or whose agent is, by the way they are governed")
    loop_delay_s: Span | None = described(
        "delay of the control loop, 99th percentile of the last while; null: not known yet", "s"
    )


class ControllerRow(Row):
    """A controller of the fabric."""

    name: str = described("its name")
    rest: str = described("address of its REST interface")
    alive: bool = described("whether it is heard of")
    bridges: Count = described("number of bridges that it owns")
    load: Count = described("governed ports of its bridges, and their connections")


class OwnedBridgeRow(Row):
    """A bridge, and its owner."""

    dpid: Dpid = described("dpid of the bridge")
    owner: str = described("name of the controller that owns it")
    generation: Count = described("increases with each change of owner")
    load: Count = described("its governed ports, and their connections")


class Cluster(Row):
    """The controllers that share a fabric, as one of them sees them."""

    controller: str = described("name of this controller")
    database: bool = described("whether it reaches the database")
    controllers: list[ControllerRow] = described("all controllers, also those that have just gone")
    bridges: list[OwnedBridgeRow] = described("all bridges that have had an owner")


class MissingRow(Row):
    """A controller that has not answered."""

    controller: str = described("its name")
    reason: str = described("why there is no answer of it")


class Whole(Row):
    """The answer of all controllers of a fabric."""

    missing: list[MissingRow] | None = described(
        "controllers that have not answered, so that their rows are missing; only where several share the "
        "fabric",
        default=None,
    )


class Ready(Row):
    """The controller is ready: every connected bridge has its agent."""

    ready: Literal[True] = described("always true; a controller that is not ready answers 503 instead")


class ParameterRow(Row):
    """A parameter of the policy, which is a setting of its section in the configuration."""

    name: str = described("name of the parameter")
    value: Value = described("value that is used now")
    type: Literal["whole number", "number", "yes or no", "text"] = described("type of the value")
    unit: str = described("unit of the value; empty: none")
    default: Value = described("default value")
    minimum: float | None = described("smallest allowed value; null: no limit")
    maximum: float | None = described("largest allowed value; null: no limit")
    choices: list[str] = described("allowed texts; empty: any text")
    help: str = described("what the parameter does")


class PortPolicyRow(Row):
    """A line of the section `[ports]`: a policy for the ports that a pattern names."""

    match: str = described("pattern for interface names, or `role:host` or `role:link`")
    policy: str = described("policy of the ports that match")


class Policy(Row):
    """The policy, its parameters, and the names of all policies."""

    policy: str = described("policy of the ports that no pattern matches")
    parameters: list[ParameterRow] = described("parameters of this policy")
    ports: list[PortPolicyRow] = described(
        "patterns of ports that have another policy; the first match counts"
    )
    available: list[str] = described("names of all installed policies")


class EventRow(Row):
    """An event."""

    id: Count = described("number of the event; later events have higher numbers")
    time: float = described("time of the event, Unix time", "s")
    kind: EventKind = described(
        "`cng`: a queue became congested; `nom`: it is no longer congested; `incast`: IQM began "
        "or stopped limiting flows; `share`: the least windows of a tenant's flows began to break its "
        "share of a port, or stopped; `others`: the line before a far queue carries traffic that does not "
        "come here, or no longer; `rate`: the rate of such a line was found, or has changed; `law`: the "
        "switch does not run the law of a port, which has no windows; "
        "`repin`: a connection got another path; `loss`: a queue "
        "dropped packets; `missed`: a flow missed its deadline; `met`: all announced bytes of a "
        "flow arrived before its deadline; `unsent`: a flow that an application announced ended "
        "without sending, or before all announced bytes were acknowledged; `bridge`, `agent`: one "
        "connected or disconnected; `policy`: the policy was changed; `mode`: ports were disabled or "
        "enabled; `far`: a far queue was added, changed or removed"
    )
    message: str = described("the event in words")
    dpid: Dpid | None = described("switch that the event is about; null: none")
    port: PortNumber | None = described("port that the event is about; null: none")
    flow: FlowRef | None = described("flow that the event is about; null: none")
    count: Count = described(
        "number of events of this kind at this port that this entry stands for; of `loss`, number of packets"
    )


class Live(Row):
    """The state that `/v1/live` sends periodically."""

    time: float = described("time of this state, Unix time", "s")
    health: Health = described("as `/v1/health`")
    ports: list[PortRow] = described("as `/v1/ports`")
    switches: list[SwitchRow] = described("as `/v1/switches`")
    links: list[LinkRow] = described("as `/v1/links`")
    hosts: list[HostRow] = described("as `/v1/hosts`")
    gif: list[GifRow] = described("as `/v1/gif`, at most 200 rows")
    gif_total: Count = described("number of all rows")
    tenants: list[TenantRow] = described("as `/v1/tenants`")
    flows_total: Count = described("number of connections in the flow table")
    flows_active: Count = described("number of those that have not ended")
    interval_s: Span = described("time until the next state", "s")
