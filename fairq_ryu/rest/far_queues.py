"""/v1/far-queues: the queues in switches above, and changes of them."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from fairq_ryu.config.far_queues import read_far_queue
from fairq_ryu.control.operations.far_control import FarControl, Unacknowledged
from fairq_ryu.control.yielding import in_steps
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.rest.operations import RequestContext
from fairq_ryu.rest.peers import refusal
from fairq_ryu.rest.reply import Answer, RequestRefused


def listing(context: RequestContext) -> Answer:
    """GET /v1/far-queues."""
    return {"far_queues": list(in_steps(_view(context).listed()))}


def put(context: RequestContext) -> Answer:
    """PUT /v1/far-queues/{bridge}/{port}."""
    view, at, body = _view(context), context.parts, context.body
    # A number alone is what tc takes it for.
    words = {name: str(value) for name in ("rate", "buffer") if (value := getattr(body, name)) is not None}
    if body.share is not None:
        words["share"] = f"{body.share:.6f}"

    def read(port: str) -> FarQueue:
        return read_far_queue(f"far queue of {port}", port, words)

    return _carried_out(lambda: view.add(at.bridge, at.port, read))


def delete(context: RequestContext) -> Answer:
    """DELETE /v1/far-queues/{bridge}/{port}."""
    view, at = _view(context), context.parts
    return _carried_out(lambda: view.remove(at.bridge, at.port))


def _view(context: RequestContext) -> FarControl:
    if context.service.far is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "this controller has no far queues")
    return context.service.far


def _carried_out(change: Callable[[], dict[str, Any]]) -> Answer:
    try:
        return change()
    except UserError as error:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        if isinstance(error, Unacknowledged):
            status = HTTPStatus.GATEWAY_TIMEOUT
        raise refusal(status, error) from None
