"""The one list of what can be asked for; dispatch, checks and the OpenAPI document follow from it."""

from __future__ import annotations

from http import HTTPStatus

from fairq_ryu.apps import announce_api
from fairq_ryu.apps.api import answers, asking, rows, state
from fairq_ryu.apps.call import Call, Operation, Resource, page
from fairq_ryu.apps.openapi import VERSION, encoded
from fairq_ryu.apps.pages import INDEX
from fairq_ryu.apps.rest_answer import JSON, Answer, Refused, Reply
from fairq_ryu.apps.streams import SSE
from fairq_ryu.errors import UserError
from fairq_ryu.fabric.events import Kind

ROOT = "/v1"
PORTS = f"{ROOT}/ports"


# What is answered


def _health(call: Call) -> Answer:
    return call.service.view.health()


def _ready(call: Call) -> Answer:
    health = call.service.view.health()
    if not health["bridges"]:
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "no bridge is connected yet")
    if health["agents_missing"]:
        names = ", ".join(f"{int(dpid, 16):x}" for dpid in health["agents_missing"][:8])
        raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"bridges without an agent: {names}")
    return {"ready": True}


def _ports(call: Call) -> Reply:
    return Reply(body=call.service.ports.get(), content_type=JSON)


def _flows(call: Call) -> Answer:
    return page("flows", call, call.service.view.flows(call.query))


def _paths(call: Call) -> Answer:
    return page("paths", call, call.service.view.paths(call.query))


def _policy(call: Call) -> Answer:
    if call.service.policy is None:
        raise Refused(HTTPStatus.NOT_FOUND, "nobody knows of a policy here")
    return call.service.policy.policy()


def _change(call: Call) -> Answer:
    if call.service.policy is None:
        raise Refused(HTTPStatus.NOT_FOUND, "nobody knows of a policy here")
    try:
        return call.service.policy.change(call.body)
    except UserError as error:
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None


def _events(call: Call) -> Answer | Reply:
    streams, query = call.service.streams, call.query
    kind = None if query.kind is None else Kind(query.kind)
    if SSE in call.environ.get("HTTP_ACCEPT", ""):
        last = call.environ.get("HTTP_LAST_EVENT_ID", "")
        known = int(last) if last.isascii() and last.isdigit() and len(last) <= 18 else None
        if known is None and "since" in query.model_fields_set:
            known = query.since
        return streams.events(known, kind, call.environ)
    found = streams.history.since(query.since, kind, query.limit)
    return {
        "events": [streams.row(event) for event in found],
        "last": streams.history.last,
        "limit": query.limit,
    }


def _live(call: Call) -> Reply:
    return call.service.streams.live(call.environ)


def _page(call: Call) -> Reply:
    return call.service.pages.reply(call.parts.name, call.environ)


def _index(call: Call) -> Reply:
    return call.service.pages.reply(INDEX, call.environ)


def _metrics(call: Call) -> Reply:
    if call.service.metrics is None:
        raise Refused(HTTPStatus.NOT_FOUND, "nobody counts here")
    body, kind = call.service.metrics.render(call.environ.get("HTTP_ACCEPT", ""))
    return Reply(body=body, content_type=kind)


def _document(call: Call) -> Reply:
    return Reply(body=encoded(RESOURCES, call.service.most_limit), content_type=JSON)


# What there is

_NO_ANNOUNCEMENT = {HTTPStatus.NOT_FOUND: "there is no such announcement"}
_NO_STREAM = {HTTPStatus.TOO_MANY_REQUESTS: "there are as many streams already as there may be"}
_UNCHANGED = {HTTPStatus.NOT_MODIFIED: "it is still what `If-None-Match` says"}
_ANY_TYPE = "*/*"


RESOURCES: tuple[Resource, ...] = (
    Resource(
        f"{ROOT}/health",
        {"GET": Operation("health", "whether the controller works, and what it has", _health, state.Health)},
    ),
    Resource(
        f"{ROOT}/ready",
        {
            "GET": Operation(
                "ready",
                "whether bridges are connected, and all of them have agents",
                _ready,
                state.Ready,
                errors={HTTPStatus.SERVICE_UNAVAILABLE: "not ready, and why"},
            )
        },
    ),
    Resource(
        PORTS,
        {
            "GET": Operation(
                "ports", "the ports of all switches, with queue and windows", _ports, answers.Ports
            )
        },
    ),
    Resource(
        f"{ROOT}/flows",
        {
            "GET": Operation(
                "flows",
                "the TCP connections, with the ports that they leave by",
                _flows,
                answers.Flows,
                query=asking.FlowsQuery,
                long=True,
            )
        },
    ),
    Resource(
        f"{ROOT}/paths",
        {
            "GET": Operation(
                "paths", "the paths of connections", _paths, answers.Paths, query=asking.PageQuery, long=True
            )
        },
    ),
    Resource(
        f"{ROOT}/switches",
        {
            "GET": Operation(
                "switches",
                "the switches",
                lambda call: {"switches": call.service.view.switches()},
                answers.Switches,
                long=True,
            )
        },
    ),
    Resource(
        f"{ROOT}/hosts",
        {
            "GET": Operation(
                "hosts",
                "the hosts, and where they are",
                lambda call: {"hosts": call.service.view.hosts()},
                answers.Hosts,
                long=True,
            )
        },
    ),
    Resource(
        f"{ROOT}/links",
        {
            "GET": Operation(
                "links",
                "the links between switches",
                lambda call: {"links": call.service.view.links()},
                answers.Links,
                long=True,
            )
        },
    ),
    Resource(
        f"{ROOT}/gif",
        {
            "GET": Operation(
                "gif",
                "flows by priority, with what they have left to send and until when",
                announce_api.gif,
                answers.Gif,
                query=asking.PageQuery,
                long=True,
            )
        },
    ),
    Resource(
        f"{ROOT}/policy",
        {
            "GET": Operation("policy", "the policy and its parameters", _policy, state.Policy),
            "PATCH": Operation(
                "changePolicy",
                "change the policy or its parameters, as a whole or not at all",
                _change,
                state.Policy,
                body=asking.PolicyChange,
                errors={
                    HTTPStatus.UNPROCESSABLE_ENTITY: "no such policy or parameter, or a value it cannot have"
                },
            ),
        },
    ),
    Resource(
        f"{ROOT}/announcements",
        {
            "GET": Operation(
                "announcements",
                "what applications have announced",
                announce_api.listing,
                answers.Announcements,
                query=asking.PageQuery,
                long=True,
            ),
            "POST": Operation(
                "announce",
                "announce a flow",
                announce_api.announce,
                rows.AnnouncementRow,
                status=HTTPStatus.CREATED,
                body=asking.AnnouncementRequest,
                errors={
                    HTTPStatus.CONFLICT: "the policy in force takes no announcements",
                    HTTPStatus.UNPROCESSABLE_ENTITY: "the fields do not fit together",
                    HTTPStatus.TOO_MANY_REQUESTS: "there are as many announcements as there may be",
                },
            ),
        },
    ),
    Resource(
        f"{ROOT}/announcements/{{id}}",
        {
            "GET": Operation(
                "announcement",
                "one announcement",
                announce_api.one,
                rows.AnnouncementRow,
                errors=_NO_ANNOUNCEMENT,
            ),
            "DELETE": Operation(
                "withdraw",
                "take an announcement back",
                announce_api.withdraw,
                status=HTTPStatus.NO_CONTENT,
                errors=_NO_ANNOUNCEMENT,
            ),
        },
        parts=asking.NumberPart,
    ),
    Resource(
        f"{ROOT}/events",
        {
            "GET": Operation(
                "events",
                "what has happened lately; as a stream with `Accept: text/event-stream`",
                _events,
                answers.Events,
                media={SSE: "events as they happen, as server-sent events"},
                query=asking.EventsQuery,
                long=True,
                errors=_NO_STREAM,
            )
        },
    ),
    Resource(
        f"{ROOT}/live",
        {
            "GET": Operation(
                "live",
                "the state twice a second, and events, as a stream",
                _live,
                media={SSE: "frames `state` and `event`, as server-sent events"},
                errors=_NO_STREAM,
            )
        },
    ),
    Resource(
        "/metrics",
        {
            "GET": Operation(
                "metrics",
                "figures for Prometheus",
                _metrics,
                media={"text/plain": "in Prometheus' text format, or OpenMetrics' if that is asked for"},
                long=True,
            )
        },
    ),
    Resource(
        "/openapi.json",
        {
            "GET": Operation(
                "openapi",
                f"this interface as an OpenAPI {VERSION} document",
                _document,
                media={"application/json": "an OpenAPI document"},
            )
        },
    ),
    Resource(
        "/",
        {
            "GET": Operation(
                "index", "the live page", _index, media={"text/html": "the live page"}, bare=_UNCHANGED
            )
        },
    ),
    Resource(
        "/page/{name}",
        {
            "GET": Operation(
                "page",
                "a file of the live page",
                _page,
                media={_ANY_TYPE: "a file of the live page"},
                errors={HTTPStatus.NOT_FOUND: "there is no such file"},
                bare=_UNCHANGED,
            )
        },
        parts=asking.NamePart,
    ),
)
