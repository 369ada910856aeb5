"""The REST requests about announcements of flows, and their replies."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fairq_ryu.fabric.deadlines.announcements import Full
from fairq_ryu.fabric.deadlines.request import Request
from fairq_ryu.rest.operations import RequestContext, page
from fairq_ryu.rest.reply import Answer, Reply, RequestRefused
from fairq_ryu.rest.schema.requests import AnnouncementRequest
from fairq_ryu.rest.views import Declined


def listing(context: RequestContext) -> Answer:
    """GET /v1/announcements."""
    announcing = context.service.announcing
    found = ([], 0) if announcing is None else announcing.announcements(context.query)
    return page("announcements", context, found)


def gif(context: RequestContext) -> Answer:
    """GET /v1/gif."""
    announcing = context.service.announcing
    return page("gif", context, ([], 0) if announcing is None else announcing.gif(context.query))


def one(context: RequestContext) -> Answer:
    """GET /v1/announcements/ID."""
    announcing, number = context.service.announcing, context.parts.id
    row = None if announcing is None else announcing.announcement(number)
    if row is None:
        raise _unknown(number)
    return row


def announce(context: RequestContext) -> Reply:
    """POST /v1/announcements. The whole request is checked before anything is changed."""
    wanted = _request(context.body)
    if context.service.announcing is None:
        raise RequestRefused(HTTPStatus.CONFLICT, "the policy in force takes no announcements")
    try:
        row = context.service.announcing.announce(wanted)
    except Declined as declined:
        raise RequestRefused(HTTPStatus.CONFLICT, str(declined)) from None
    except Full as full:
        raise RequestRefused(HTTPStatus.TOO_MANY_REQUESTS, str(full)) from None
    return Reply(HTTPStatus.CREATED, row, {"Location": f"/v1/announcements/{row['id']}"})


def withdraw(context: RequestContext) -> Reply:
    """DELETE /v1/announcements/ID."""
    announcing, number = context.service.announcing, context.parts.id
    if announcing is None or not announcing.withdraw(number):
        raise _unknown(number)
    return Reply(HTTPStatus.NO_CONTENT)


def _request(body: AnnouncementRequest) -> Request:
    # Many libraries send null for a value that is not given.
    fields: dict[str, Any] = {name: value for name, value in body if value is not None}
    try:
        return Request(**fields)
    except ValueError as error:
        raise RequestRefused(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)) from None


def _unknown(number: int) -> RequestRefused:
    return RequestRefused(HTTPStatus.NOT_FOUND, f"there is no announcement {number}")
