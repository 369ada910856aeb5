"""POST /v1/disable and /v1/enable: ports without windows, and with them again."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus

from fairq_ryu.control.operations.mode_control import ModeControl, too_many
from fairq_ryu.control.windows.disables import TooMany
from fairq_ryu.errors import UserError
from fairq_ryu.rest.operations import RequestContext
from fairq_ryu.rest.peers import refusal
from fairq_ryu.rest.reply import Answer, RequestRefused


def disable(context: RequestContext) -> Answer:
    """POST /v1/disable."""
    body, view = context.body, _view(context)
    return _carried_out(lambda now: view.disable(body.bridge, body.port, body.seconds, now))


def enable(context: RequestContext) -> Answer:
    """POST /v1/enable."""
    body, view = context.body, _view(context)
    return _carried_out(lambda now: view.enable(body.bridge, body.port, now))


def _view(context: RequestContext) -> ModeControl:
    if context.service.modes is None:
        raise RequestRefused(HTTPStatus.NOT_FOUND, "this controller has no modes of ports")
    return context.service.modes


def _carried_out(change: Callable[[float], Answer]) -> Answer:
    try:
        return change(time.monotonic())
    except UserError as error:
        raise refusal(HTTPStatus.UNPROCESSABLE_ENTITY, error) from None
    except TooMany:
        raise RequestRefused(HTTPStatus.TOO_MANY_REQUESTS, too_many()) from None
