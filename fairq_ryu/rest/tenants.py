"""/v1/tenants: the tenants, what they have at each port, and changes of them."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from fairq_ryu.control.operations.tenant_control import TenantOperations
from fairq_ryu.errors import UserError
from fairq_ryu.rest.operations import RequestContext
from fairq_ryu.rest.reply import Answer, Reply, RequestRefused
from fairq_ryu.tenants import OTHERS


def listing(context: RequestContext) -> Answer:
    """GET /v1/tenants."""
    return {"tenants": _view(context).rows()}


_SUMS = ("flows", "goodput_bps", "bytes", "floor_broken")


def joined(answers: Sequence[Answer]) -> Answer:
    """The tenants of the whole fabric: what each has at the ports of all controllers."""
    rows: dict[str, list[Answer]] = {}
    for answer in answers:
        for row in answer["tenants"]:
            rows.setdefault(row["name"], []).append(row)
    others = rows.pop(OTHERS, [])
    ordered = [rows[name] for name in sorted(rows)] + ([others] if others else [])
    return {"tenants": [joined_one(each) for each in ordered]}


def joined_one(rows: Sequence[Answer]) -> Answer:
    """One tenant, likewise."""
    sums = {name: sum(row[name] for row in rows) for name in _SUMS}
    return {**rows[0], **sums, "ports": [port for row in rows for port in row["ports"]]}


def one(context: RequestContext) -> Answer:
    """GET /v1/tenants/NAME."""
    row = _view(context).row(context.parts.name)
    if row is None:
        raise _unknown(context.parts.name)
    return row


def put(context: RequestContext) -> Reply:
    """PUT /v1/tenants/NAME. The whole request is checked before anything is changed."""
    view, name = _view(context), context.parts.name
    try:
        new = view.put(name, context.body.hosts, context.body.weight)
    except UserError as error:
        raise RequestRefused(HTTPStatus.UNPROCESSABLE_ENTITY, f"{error.message}; {error.remedy}") from None
    return Reply(HTTPStatus.CREATED if new else HTTPStatus.OK, view.row(name))


def remove(context: RequestContext) -> Reply:
    """DELETE /v1/tenants/NAME."""
    if not _view(context).remove(context.parts.name):
        raise _unknown(context.parts.name)
    return Reply(HTTPStatus.NO_CONTENT)


def _view(context: RequestContext) -> TenantOperations:
    if context.service.tenants is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "this controller has no tenants")
    return context.service.tenants


def _unknown(name: str) -> RequestRefused:
    return RequestRefused(HTTPStatus.NOT_FOUND, f"there is no tenant {name!r}")
