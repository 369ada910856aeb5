"""Models of the requests to the REST interface: parameters of queries and paths, and bodies."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from fairq_ryu.fabric.deadlines.request import DEFAULT_TTL, MAX_COUNT, MAX_SECONDS, MAX_SIZE, MAX_VLAN
from fairq_ryu.far_queue import LEAST_SHARE, SHARE
from fairq_ryu.model import MOST_PRIORITY, PRIORITY
from fairq_ryu.rest.schema.base import Address, Digits, PortText, RequestModel, Whole, described
from fairq_ryu.rest.schema.rows import State
from fairq_ryu.rest.schema.state import EventKind
from fairq_ryu.tenants import MOST_HOSTS, MOST_WEIGHT

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000
MAX_NUMBER = 10**9
MAX_ID = 10**18 - 1

# Bounds are before our validator: behind it they would be checked but missing from the document.
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT), Digits]
Offset = Annotated[int, Field(ge=0, le=MAX_NUMBER), Digits]
Number = Annotated[int, Field(ge=0, le=MAX_ID), Digits]


class Nothing(RequestModel):
    """No parameters."""


class PageQuery(RequestModel):
    """The part of a list to return."""

    limit: Limit = described("maximum number of rows", default=DEFAULT_LIMIT)
    offset: Offset = described("number of rows to skip", default=0)


class FlowsQuery(PageQuery):
    """The filters for flows."""

    src: Address | None = described("IP address of the side that opened the connection", default=None)
    dst: Address | None = described("IP address of the other side", default=None)
    port: PortText | None = described(
        "TCP port of either side, or `DPID:PORT` for a switch port on its path", default=None
    )
    state: State | None = described("state of the connection", default=None)


class EventsQuery(RequestModel):
    """The filters for events."""

    since: Number = described("only events with a higher number than this", default=0)
    kind: EventKind | None = described("only events of this kind", default=None)
    limit: Limit = described("maximum number of events; the latest ones are returned", default=DEFAULT_LIMIT)


class NumberPart(RequestModel):
    """The announcement that a path names."""

    id: Number = described("number of the announcement")


class NamePart(RequestModel):
    """The file that a path names."""

    name: str = described("name of a file of the live page", min_length=1, max_length=100)


class FarQueuePart(RequestModel):
    """The port that a path names."""

    bridge: str = described("name of the bridge, or its dpid", max_length=100)
    port: str = described("name of the port's interface, or its number", max_length=100)


class TenantPart(RequestModel):
    """The tenant that a path names."""

    name: str = described("name of the tenant", min_length=1, max_length=32)


class _RequestBody(RequestModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


TcpPort = Annotated[StrictInt, Field(ge=1, le=65535), Whole]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS, allow_inf_nan=False)]


class AnnouncementRequest(_RequestBody):
    """The announcement of a flow by an application. It has a `size`, a `deadline` or a `priority`."""

    src: Address = described("IP address that sends the data")
    dst: Address = described("IP address that receives it")
    sport: TcpPort | None = described(
        "TCP port of `src`: the announcement is for this one flow", default=None
    )
    dport: TcpPort = described("TCP port of `dst`")
    size: Annotated[StrictInt, Field(ge=1, le=MAX_SIZE), Whole] | None = described(
        "size of the flow", "bytes", default=None
    )
    deadline: Seconds | None = described(
        "time by which all data should have arrived, counted from the start of the flow", "s", default=None
    )
    priority: Annotated[StrictInt, Field(ge=1, le=MOST_PRIORITY), Whole] | None = described(
        f"share of the flow within its tenant, in proportion; usual is {PRIORITY}", default=None
    )
    ttl: Seconds | None = described(
        f"time within which the flow must start; default {DEFAULT_TTL:g}", "s", default=None
    )
    count: Annotated[StrictInt, Field(ge=1, le=MAX_COUNT), Whole] | None = described(
        "without `sport`: number of flows to which it applies; default 1", default=None
    )
    vlan: Annotated[StrictInt, Field(ge=0, le=MAX_VLAN), Whole] | None = described(
        "VLAN of the flow; 0: none. Default any", default=None
    )


class TenantRequest(_RequestBody):
    """A tenant."""

    hosts: list[StrictStr] = described(
        "IP addresses, and networks as `10.0.1.0/24`; in smaller networks of other tenants within them, "
        "these tenants are the owners",
        min_length=1,
        max_length=MOST_HOSTS,
    )
    weight: Annotated[StrictInt, Field(ge=1, le=MOST_WEIGHT), Whole] = described(
        "its part of a port is this divided by the sum over the tenants that send there", default=1
    )


class EnableRequest(_RequestBody):
    """The ports that are enabled: all, those of a bridge, or one."""

    bridge: StrictStr | None = described(
        "name of the bridge, or its dpid; default all bridges", default=None, max_length=100
    )
    port: StrictStr | None = described(
        "name of the port's interface, its number, or `DPID:PORT`; default all ports",
        default=None,
        max_length=100,
    )


class DisableRequest(EnableRequest):
    """The ports that are disabled: all, those of a bridge, or one."""

    seconds: Seconds | None = described(
        "time after which they are enabled again; default until they are enabled by request",
        "s",
        default=None,
    )


Words = Annotated[StrictStr, Field(max_length=40)] | Annotated[StrictInt, Field(ge=0), Whole]


class FarQueueRequest(_RequestBody):
    """A far queue, in the words of tc(8). What is left out is as in the configuration."""

    rate: Words | None = described(
        "rate of the port above, such as `10gbit`; a number alone is in bit/s. Default that of the link",
        default=None,
    )
    buffer: Words | None = described(
        "its buffer, such as `1mb`; a number alone is in bytes. Default what drains within 5 ms",
        default=None,
    )
    share: Annotated[float, Field(ge=LEAST_SHARE, le=1, allow_inf_nan=False)] | None = described(
        f"part of the rate at which the virtual queue drains; default {SHARE:g}", default=None
    )


class PolicyChange(_RequestBody):
    """A change of the policy. Parameters that are not named keep their values, or have those of the
    configuration.
    """

    policy: StrictStr | None = described("name of the policy", default=None, max_length=100)
    parameters: dict[str, StrictBool | StrictInt | StrictFloat | StrictStr] | None = described(
        "new values by parameter name; checked like the configuration file", default=None
    )
