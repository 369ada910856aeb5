"""The list of all resources; dispatch, checks and the OpenAPI document are made from it."""

from __future__ import annotations

from http import HTTPStatus

from fairq_ryu.control.reports.events import Kind
from fairq_ryu.errors import UserError
from fairq_ryu.model import short_dpid
from fairq_ryu.rest import announcements, far_queues, modes, tenants
from fairq_ryu.rest.openapi import VERSION, encoded
from fairq_ryu.rest.operations import Operation, RequestContext, Resource, page
from fairq_ryu.rest.reply import JSON, Answer, Reply, RequestRefused
from fairq_ryu.rest.schema import requests, responses, rows, state
from fairq_ryu.rest.static_pages import INDEX
from fairq_ryu.rest.streams import SSE

ROOT = "/v1"
PORTS = f"{ROOT}/ports"


# Handlers


def _health(context: RequestContext) -> Answer:
    return context.service.view.health()


def _ready(context: RequestContext) -> Answer:
    health = context.service.view.health()
    cluster = context.service.cluster
    if cluster is not None and not cluster.is_known:
        reason = "the database of the cluster has not been reached yet"
        raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, reason)
    # Of several controllers, one may own no bridge, and stand by.
    if not health["bridges"] and not health["agents"] and cluster is None:
        raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, "no bridge and no agent is connected yet")
    if health["agents_missing"]:
        names = ", ".join(short_dpid(int(dpid, 16)) for dpid in health["agents_missing"][:8])
        raise RequestRefused(HTTPStatus.SERVICE_UNAVAILABLE, f"bridges without an agent: {names}")
    return {"ready": True}


def _ports(context: RequestContext) -> Reply:
    return Reply(body=context.service.ports.get(), content_type=JSON)


def _flows(context: RequestContext) -> Answer:
    return page("flows", context, context.service.view.flows(context.query))


def _paths(context: RequestContext) -> Answer:
    return page("paths", context, context.service.view.paths(context.query))


def _policy(context: RequestContext) -> Answer:
    if context.service.policy is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "this controller shows no policy")
    return context.service.policy.policy()


def _change(context: RequestContext) -> Answer:
    if context.service.policy is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "this controller shows no policy")
    try:
        return context.service.policy.change(context.body.policy, context.body.parameters or {})
    except UserError as error:
        raise RequestRefused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None


def _cluster(context: RequestContext) -> Answer:
    if context.service.cluster is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "this controller shares its fabric with no other")
    return context.service.cluster.cluster()


def _events(context: RequestContext) -> Answer | Reply:
    streams, query = context.service.streams, context.query
    kind = None if query.kind is None else Kind(query.kind)
    if SSE in context.environ.get("HTTP_ACCEPT", ""):
        known = streams.known(context.environ.get("HTTP_LAST_EVENT_ID", ""))
        if known is None and "since" in query.model_fields_set:
            known = query.since
        return streams.events(known, kind, context.environ)
    found = streams.history.since(streams.after(query.since), kind, query.limit)
    return {
        "events": [streams.row(event) for event in found],
        "last": streams.history.last,
        "limit": query.limit,
    }


def _live(context: RequestContext) -> Reply:
    return context.service.streams.live(context.environ)


def _page(context: RequestContext) -> Reply:
    return context.service.pages.reply(context.parts.name, context.environ)


def _index(context: RequestContext) -> Reply:
    return context.service.pages.reply(INDEX, context.environ)


def _metrics(context: RequestContext) -> Reply:
    if context.service.metrics is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "this controller has no metrics")
    body, kind = context.service.metrics.render(context.environ.get("HTTP_ACCEPT", ""))
    return Reply(body=body, content_type=kind)


def _document(_: RequestContext) -> Reply:
    return Reply(body=encoded(RESOURCES), content_type=JSON)


# Resources

_NO_ANNOUNCEMENT = {HTTPStatus.NOT_FOUND: "no such announcement"}
_NO_TENANT = {HTTPStatus.NOT_FOUND: "no such tenant"}
_NO_STREAM = {HTTPStatus.TOO_MANY_REQUESTS: "too many open streams"}
_UNCHANGED = {HTTPStatus.NOT_MODIFIED: "the file has not changed since the `ETag` in `If-None-Match`"}
_ANY_TYPE = "*/*"
_UNANSWERED = "the agent, or another controller that was asked, has not answered; it may have the change"
_NO_PORTS = {
    HTTPStatus.UNPROCESSABLE_ENTITY: "no such bridge or port",
    HTTPStatus.TOO_MANY_REQUESTS: "too many disables",
    HTTPStatus.GATEWAY_TIMEOUT: _UNANSWERED,
}
_NO_FAR_QUEUE = {
    HTTPStatus.UNPROCESSABLE_ENTITY: (
        "no such far queue, bridge or port; the agent is not connected, or refuses it; the port is behind "
        "an uplink"
    ),
    HTTPStatus.GATEWAY_TIMEOUT: _UNANSWERED,
}


RESOURCES: tuple[Resource, ...] = (
    Resource(
        f"{ROOT}/health",
        {
            "GET": Operation(
                "health", "state of the controller: version, uptime, bridges, agents", _health, state.Health
            )
        },
    ),
    Resource(
        f"{ROOT}/ready",
        {
            "GET": Operation(
                "ready",
                "whether a bridge or an agent is connected, and every connected bridge has its agent",
                _ready,
                state.Ready,
                errors={HTTPStatus.SERVICE_UNAVAILABLE: "not ready; `detail` gives the reason"},
            )
        },
    ),
    Resource(
        f"{ROOT}/cluster",
        {
            "GET": Operation(
                "cluster",
                "controllers that share the fabric, and who owns which bridge",
                _cluster,
                state.Cluster,
                errors={HTTPStatus.NOT_FOUND: "this controller is alone"},
            )
        },
    ),
    Resource(
        PORTS,
        {
            "GET": Operation(
                "ports",
                "ports of all switches, with their queues and windows",
                _ports,
                responses.Ports,
                joins="ports",
            )
        },
    ),
    Resource(
        f"{ROOT}/flows",
        {
            "GET": Operation(
                "flows",
                "TCP connections, with the switch ports on their paths",
                _flows,
                responses.Flows,
                query=requests.FlowsQuery,
                long=True,
                joins="flows",
            )
        },
    ),
    Resource(
        f"{ROOT}/paths",
        {
            "GET": Operation(
                "paths",
                "paths of the connections",
                _paths,
                responses.Paths,
                query=requests.PageQuery,
                long=True,
                joins="paths",
            )
        },
    ),
    Resource(
        f"{ROOT}/switches",
        {
            "GET": Operation(
                "switches",
                "switches",
                lambda context: {"switches": context.service.view.switches()},
                responses.Switches,
                long=True,
                joins="switches",
            )
        },
    ),
    Resource(
        f"{ROOT}/hosts",
        {
            "GET": Operation(
                "hosts",
                "hosts, with the ports that lead to them",
                lambda context: {"hosts": context.service.view.hosts()},
                responses.Hosts,
                long=True,
                joins="hosts",
            )
        },
    ),
    Resource(
        f"{ROOT}/links",
        {
            "GET": Operation(
                "links",
                "links between switches",
                lambda context: {"links": context.service.view.links()},
                responses.Links,
                long=True,
                joins="links",
            )
        },
    ),
    Resource(
        f"{ROOT}/gif",
        {
            "GET": Operation(
                "gif",
                "flows by priority, with the bytes they still have to send and their deadlines",
                announcements.gif,
                responses.Gif,
                query=requests.PageQuery,
                long=True,
                joins="gif",
            )
        },
    ),
    Resource(
        f"{ROOT}/policy",
        {
            "GET": Operation("policy", "policy and its parameters", _policy, state.Policy),
            "PATCH": Operation(
                "changePolicy",
                "change the policy, its parameters or both; if anything is wrong, nothing is changed",
                _change,
                state.Policy,
                body=requests.PolicyChange,
                errors={
                    HTTPStatus.UNPROCESSABLE_ENTITY: (
                        "no such policy or parameter, or a value that is not allowed"
                    )
                },
            ),
        },
    ),
    Resource(
        f"{ROOT}/disable",
        {
            "POST": Operation(
                "disable",
                "let ports have no windows, for some time or until they are enabled",
                modes.disable,
                responses.ModeChanges,
                body=requests.DisableRequest,
                errors=_NO_PORTS,
                at_port=True,
            )
        },
    ),
    Resource(
        f"{ROOT}/enable",
        {
            "POST": Operation(
                "enable",
                "let disabled ports have windows again",
                modes.enable,
                responses.ModeChanges,
                body=requests.EnableRequest,
                errors=_NO_PORTS,
                at_port=True,
            )
        },
    ),
    Resource(
        f"{ROOT}/far-queues",
        {
            "GET": Operation(
                "farQueues",
                "queues in switches above that are governed from here",
                far_queues.listing,
                responses.FarQueues,
                joins="far_queues",
                long=True,
            )
        },
    ),
    Resource(
        f"{ROOT}/far-queues/{{bridge}}/{{port}}",
        {
            "PUT": Operation(
                "putFarQueue",
                "add or change the far queue of a port; if anything is wrong, nothing is changed",
                far_queues.put,
                rows.FarQueueRow,
                body=requests.FarQueueRequest,
                errors=_NO_FAR_QUEUE,
                at_port=True,
            ),
            "DELETE": Operation(
                "deleteFarQueue",
                "remove the far queue of a port; the answer is what it was",
                far_queues.delete,
                rows.FarQueueRow,
                errors=_NO_FAR_QUEUE,
                at_port=True,
            ),
        },
        parts=requests.FarQueuePart,
    ),
    Resource(
        f"{ROOT}/tenants",
        {
            "GET": Operation(
                "tenants",
                "tenants, and what each has at each port where the policy `tenants` is in force",
                tenants.listing,
                responses.Tenants,
                join=tenants.joined,
            )
        },
    ),
    Resource(
        f"{ROOT}/tenants/{{name}}",
        {
            "GET": Operation(
                "tenant",
                "one tenant",
                tenants.one,
                responses.OneTenant,
                errors=_NO_TENANT,
                join=tenants.joined_one,
            ),
            "PUT": Operation(
                "putTenant",
                "add a tenant (status 201), or change it; if anything is wrong, nothing is changed",
                tenants.put,
                rows.TenantRow,
                body=requests.TenantRequest,
                errors={
                    HTTPStatus.UNPROCESSABLE_ENTITY: (
                        "not a name, an address or a weight for a tenant, or another tenant has the hosts"
                    )
                },
            ),
            "DELETE": Operation(
                "removeTenant",
                "remove a tenant: its hosts are among the others then",
                tenants.remove,
                status=HTTPStatus.NO_CONTENT,
                errors=_NO_TENANT,
            ),
        },
        parts=requests.TenantPart,
    ),
    Resource(
        f"{ROOT}/announcements",
        {
            "GET": Operation(
                "announcements",
                "announcements of flows",
                announcements.listing,
                responses.Announcements,
                query=requests.PageQuery,
                long=True,
            ),
            "POST": Operation(
                "announce",
                "announce a flow",
                announcements.announce,
                rows.AnnouncementRow,
                status=HTTPStatus.CREATED,
                body=requests.AnnouncementRequest,
                errors={
                    HTTPStatus.CONFLICT: "the policy in force takes no announcements",
                    HTTPStatus.UNPROCESSABLE_ENTITY: "the fields contradict each other",
                    HTTPStatus.TOO_MANY_REQUESTS: "too many announcements",
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
                announcements.one,
                rows.AnnouncementRow,
                errors=_NO_ANNOUNCEMENT,
            ),
            "DELETE": Operation(
                "withdraw",
                "withdraw an announcement",
                announcements.withdraw,
                status=HTTPStatus.NO_CONTENT,
                errors=_NO_ANNOUNCEMENT,
            ),
        },
        parts=requests.NumberPart,
    ),
    Resource(
        f"{ROOT}/events",
        {
            "GET": Operation(
                "events",
                "latest events; with `Accept: text/event-stream`, as a stream",
                _events,
                responses.Events,
                media={SSE: "events as they happen, as server-sent events"},
                query=requests.EventsQuery,
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
                "stream of the whole state, twice a second, and of events",
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
                "metrics for Prometheus",
                _metrics,
                media={"text/plain": "Prometheus text format, or OpenMetrics if the request asks for it"},
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
                errors={HTTPStatus.NOT_FOUND: "no such file"},
                bare=_UNCHANGED,
            )
        },
        parts=requests.NamePart,
    ),
)
