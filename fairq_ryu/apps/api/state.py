"""What the controller says of itself: health, policy, events, and the state that a live page shows."""

from __future__ import annotations

from typing import Literal

from fairq_ryu.apps.api.base import Count, Dpid, PortNumber, Row, Span, TcpPort, said
from fairq_ryu.apps.api.rows import GifRow, HostRow, LinkRow, PortRow, SwitchRow

Value = int | float | bool | str
EventKind = Literal["cng", "nom", "incast", "repin", "loss", "missed", "bridge", "agent", "policy"]


class Health(Row):
    """Whether the controller works, and what it has."""

    status: Literal["ok"] = said("the controller answers")
    version: str = said("of fairq_ryu")
    policy: str = said("the policy of ports that no pattern names")
    uptime_s: Span = said("since the controller started", "s")
    bridges: Count = said("bridges that are connected")
    agents: Count = said("agents that are connected")
    agents_missing: list[Dpid] = said("bridges that are connected and have no agent")
    loop_delay_s: Span | None = said(
        "99 of 100 turns of the control loop came no later than this, lately; null: not known yet", "s"
    )


class Ready(Row):
    """All bridges that are connected have their agents."""

    ready: Literal[True] = said("always true; a controller that is not ready answers 503")


class ParameterRow(Row):
    """A parameter of the policy, which is a setting of its section in the configuration."""

    name: str = said("its name")
    value: Value = said("the value in force")
    type: Literal["whole number", "number", "yes or no", "text"] = said("what it may be")
    unit: str = said('unit of the value; "": none')
    default: Value = said("the value if nothing is said")
    minimum: float | None = said("no less than this")
    maximum: float | None = said("no more than this")
    choices: list[str] = said("a text is one of these; empty: any")
    help: str = said("what it does")


class PortPolicyRow(Row):
    """A line of the section `[ports]`: a policy for the ports that a pattern names."""

    match: str = said("pattern on the name of the interface, `role:host` or `role:link`")
    policy: str = said("the policy of these ports")


class Policy(Row):
    """The policy, its parameters, and what else could be."""

    policy: str = said("the policy of ports that no pattern names")
    parameters: list[ParameterRow] = said("its parameters")
    ports: list[PortPolicyRow] = said("ports that have another, tried in this order")
    available: list[str] = said("policies that are installed")


class FlowRef(Row):
    """A direction of a connection."""

    src: str = said("IP address that sends the data")
    dst: str = said("IP address that receives it")
    sport: TcpPort = said("TCP port of `src`")
    dport: TcpPort = said("TCP port of `dst`")


class EventRow(Row):
    """Something that has happened."""

    id: Count = said("its number; later ones have higher numbers")
    time: float = said("when, Unix time", "s")
    kind: EventKind = said(
        "`cng`, `nom`: a queue is congested, is not any more; `incast`: IQM holds flows, or lets go; "
        "`repin`: a connection goes another way; `loss`: a queue has dropped; `missed`: a deadline has "
        "passed; `bridge`, `agent`: one has come or gone; `policy`: it was changed"
    )
    message: str = said("in words")
    dpid: Dpid | None = said("the switch that it is about; null: none in particular")
    port: PortNumber | None = said("its port")
    flow: FlowRef | None = said("the flow")
    count: Count = said("so many of the kind at this port are told of in this one")


class Live(Row):
    """The state that `/v1/live` sends again and again."""

    time: float = said("when this was, Unix time", "s")
    health: Health = said("as `/v1/health`")
    ports: list[PortRow] = said("as `/v1/ports`")
    switches: list[SwitchRow] = said("as `/v1/switches`")
    links: list[LinkRow] = said("as `/v1/links`")
    hosts: list[HostRow] = said("as `/v1/hosts`")
    gif: list[GifRow] = said("as `/v1/gif`, no more than 200 rows")
    gif_total: Count = said("so many rows there are")
    flows_total: Count = said("connections in the flow table")
    flows_active: Count = said("of these, those that have not ended")
    interval_s: Span = said("until the next", "s")
