"""The answers of the REST interface: JSON, problem documents (RFC 9457), and streams."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fairq_ryu.control.yielding import in_steps

JSON = "application/json"
PROBLEM = "application/problem+json"
# In the environment of a request: ends the connection after the answer.
CLOSE = "fairq.close"
# Likewise: to be called with the size of the reply, bytes; None: it is a stream.
SENDS = "fairq.sends"

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a request: an object for JSON, or ``body`` as it is, or a ``stream`` without end. Without
    any of the three the body is empty.
    """

    status: HTTPStatus = HTTPStatus.OK
    answer: Answer | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str | None = None
    stream: Iterable[bytes] | None = None


class RequestRefused(Exception):
    """The request cannot be answered; ``str()`` is the detail for the problem document."""

    def __init__(self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})


def encode(answer: Answer) -> bytes:
    """JSON, as ``json.dumps`` encodes it; long lists yield to the rest of the controller."""
    fields = []
    for name, value in answer.items():
        if isinstance(value, list):
            text = f"[{', '.join(json.dumps(row, allow_nan=False) for row in in_steps(value))}]"
        else:
            text = json.dumps(value, allow_nan=False)
        fields.append(f"{json.dumps(name)}: {text}")
    return f"{{{', '.join(fields)}}}\n".encode()


def problem(status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> Reply:
    """A problem document."""
    document = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    return Reply(status, headers=headers or {}, body=encode(document), content_type=PROBLEM)
