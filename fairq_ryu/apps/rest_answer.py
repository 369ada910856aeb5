"""The answers of the REST interface: JSON, and problem documents (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from ryu.app.wsgi import Response
from ryu.lib import hub

# After so many rows the control loop gets its turn: it reads queues every 2 ms and must not wait for
# somebody who lists a million flows.
ROWS_AT_ONCE = 50
# No name or value of a request that is longer is worth repeating in an answer.
_QUOTED = 60

Answer = dict[str, Any]


def quoted(text: str) -> str:
    """Words of the request, for an answer."""
    return repr(text if len(text) <= _QUOTED else text[:_QUOTED] + "...")


class Refused(Exception):
    """The request cannot be answered; ``str()`` is the detail for the problem document."""

    def __init__(self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = dict(headers or {})


def encode(answer: Answer) -> bytes:
    """JSON, as ``json.dumps`` would have it; long lists in turns with the rest of the controller."""
    fields = []
    for name, value in answer.items():
        if isinstance(value, list):
            text = f"[{', '.join(json.dumps(row, allow_nan=False) for row in in_turns(value))}]"
        else:
            text = json.dumps(value, allow_nan=False)
        fields.append(f"{json.dumps(name)}: {text}")
    return f"{{{', '.join(fields)}}}\n".encode()


def response(status: HTTPStatus, content_type: str | None, body: bytes, headers: Mapping[str, str]) -> Any:
    """An answer that nobody is to keep or guess about."""
    made = Response(status=int(status), content_type=content_type, charset=None, body=body)
    made.headers.update({"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **headers})
    return made


def problem(status: HTTPStatus, detail: str, headers: Mapping[str, str]) -> Any:
    """The document that says why there is no answer."""
    document = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
    return response(status, "application/problem+json", encode(document), headers)


def in_turns(rows: Iterable[Any]) -> Iterator[Any]:
    """The same rows, with a turn for the rest of the controller now and then."""
    for count, row in enumerate(rows, 1):
        yield row
        if count % ROWS_AT_ONCE == 0:
            hub.sleep(0)
