"""What may be asked of the REST interface: parameters of queries and paths, and bodies."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from fairq_ryu.fabric.deadlines.request import DEFAULT_TTL, MOST_COUNT, MOST_SECONDS, MOST_SIZE
from fairq_ryu.rest.schema.base import Address, Asked, Digits, PortText, Whole, said
from fairq_ryu.rest.schema.rows import State
from fairq_ryu.rest.schema.state import EventKind

DEFAULT_LIMIT = 100
MOST_LIMIT = 1000
MOST_NUMBER = 10**9
MOST_ID = 10**18 - 1

# In this order: bounds behind a validator of ours would be checked, and missing from the document.
Limit = Annotated[int, Field(ge=1, le=MOST_LIMIT), Digits]
Offset = Annotated[int, Field(ge=0, le=MOST_NUMBER), Digits]
Number = Annotated[int, Field(ge=0, le=MOST_ID), Digits]


class Nothing(Asked):
    """No parameters."""


class PageQuery(Asked):
    """Which part of a list."""

    limit: Limit = said("maximum number of rows", default=DEFAULT_LIMIT)
    offset: Offset = said("number of rows to skip", default=0)


class FlowsQuery(PageQuery):
    """Which flows."""

    src: Address | None = said("IP address of the side that opened the connection", default=None)
    dst: Address | None = said("IP address of the other side", default=None)
    port: PortText | None = said(
        "TCP port of either side, or `DPID:PORT` for a switch port on its path", default=None
    )
    state: State | None = said("state of the connection", default=None)


class EventsQuery(Asked):
    """Which events."""

    since: Number = said("only events with a higher number than this", default=0)
    kind: EventKind | None = said("only events of this kind", default=None)
    limit: Limit = said("maximum number of events; the latest ones are returned", default=DEFAULT_LIMIT)


class NumberPart(Asked):
    """The announcement that a path names."""

    id: Number = said("number of the announcement")


class NamePart(Asked):
    """The file that a path names."""

    name: str = said("name of a file of the live page", min_length=1, max_length=100)


class _Said(Asked):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


TcpPort = Annotated[StrictInt, Field(ge=1, le=65535), Whole]
Seconds = Annotated[float, Field(gt=0, le=MOST_SECONDS, allow_inf_nan=False)]


class AnnouncementRequest(_Said):
    """What an application says of a flow. `size`, `deadline` or both are needed."""

    src: Address = said("IP address that sends the data")
    dst: Address = said("IP address that receives it")
    sport: TcpPort | None = said("TCP port of `src`: the announcement is for this one flow", default=None)
    dport: TcpPort = said("TCP port of `dst`")
    size: Annotated[StrictInt, Field(ge=1, le=MOST_SIZE), Whole] | None = said(
        "size of the flow", "bytes", default=None
    )
    deadline: Seconds | None = said(
        "time by which all data should have arrived, counted from the start of the flow", "s", default=None
    )
    ttl: Seconds | None = said(
        f"time within which the flow must start; default {DEFAULT_TTL:g}", "s", default=None
    )
    count: Annotated[StrictInt, Field(ge=1, le=MOST_COUNT), Whole] | None = said(
        "without `sport`: number of flows to which it applies; default 1", default=None
    )


class PolicyChange(_Said):
    """What the policy should be. What is not named stays, or is as the configuration has it."""

    policy: StrictStr | None = said("name of the policy", default=None, max_length=100)
    parameters: dict[str, StrictBool | StrictInt | StrictFloat | StrictStr] | None = said(
        "new values by parameter name; checked like the configuration file", default=None
    )
