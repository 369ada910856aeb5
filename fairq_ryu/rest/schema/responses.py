"""Models of the whole answers of the REST interface: lists of rows with their totals."""

from __future__ import annotations

from typing import Literal

from fairq_ryu.rest.schema.base import Count, Row, described
from fairq_ryu.rest.schema.rows import (
    AnnouncementRow,
    FarQueueRow,
    FlowRow,
    GifRow,
    HostRow,
    LinkRow,
    ModeChangeRow,
    PathRow,
    PortRow,
    SwitchRow,
    TenantRow,
)
from fairq_ryu.rest.schema.state import EventRow, Whole


class Ports(Whole):
    """The ports of all switches."""

    ports: list[PortRow]


class _Page(Whole):
    total: Count = described("number of all rows that match the filters")
    limit: Count = described("as given in the request")
    offset: Count = described("as given in the request")


class Flows(_Page):
    """A page of connections."""

    flows: list[FlowRow]


class Paths(_Page):
    """A page of paths."""

    paths: list[PathRow]


class Switches(Whole):
    """The switches."""

    switches: list[SwitchRow]


class Hosts(Whole):
    """The hosts."""

    hosts: list[HostRow]


class Links(Whole):
    """The links."""

    links: list[LinkRow]


class OneTenant(TenantRow, Whole):
    """A tenant."""


class Tenants(Whole):
    """The tenants."""

    tenants: list[TenantRow]


class Gif(_Page):
    """A page of the tables of all ports whose policy uses deadlines."""

    gif: list[GifRow]


class Announcements(_Page):
    """A page of the announcements of applications."""

    announcements: list[AnnouncementRow]


class ModeChanges(Row):
    """What a disable or an enable has changed."""

    what: str = described("the ports that were named, in words")
    ports: list[ModeChangeRow] = described("the ports whose mode has changed; empty: none")


class FarQueues(Whole):
    """The far queues of all agents that are connected."""

    far_queues: list[FarQueueRow]


class Events(Row):
    """A part of the history."""

    events: list[EventRow]
    last: Count = described("number of the latest event; 0: there has been none")
    limit: Count = described("as given in the request")


class Problem(Row):
    """An error of a request (RFC 9457)."""

    type: Literal["about:blank"] = described(
        "always `about:blank`: the HTTP status says what kind of problem it is"
    )
    title: str = described("the status in words")
    status: int = described("the HTTP status", ge=400, le=599)
    detail: str = described("what is wrong, and what to do")
