"""Announcements of flows over REST: who may write, and what a request must be.

A page in a browser on the controller's machine could be made to write to 127.0.0.1, too. So a request must
say that it is JSON, which a page of another origin may not without asking first; it must call the controller
by an address or by its own name, which one that has only borrowed the address does not; and a page of another
origin is refused by what the browser says of it.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import urlsplit

from ryu.lib import hub

from fairq_ryu.apps.rest_answer import Answer, Refused, quoted
from fairq_ryu.fabric import announce_request
from fairq_ryu.fabric.announce_request import Request
from fairq_ryu.fabric.announcements import Full

MOST_BODY = 64 << 10
# A request whose body has not come after so many seconds is given up.
_BODY_TIMEOUT = 5.0
_REQUIRED = ("src", "dst", "dport")
_OPTIONAL = ("sport", "size", "deadline", "ttl", "count")
# What proxies add: then the address that a request comes from is not that of who asks.
_FORWARDED = ("HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_VIA")


class Declined(Exception):
    """The controller takes no announcement (now); ``str()`` says why."""


class AnnouncingView(Protocol):
    """Who takes announcements. Rows are dicts that JSON can say; ``docs/rest.md`` has their fields."""

    def announce(self, wanted: Request) -> dict[str, Any]:
        """Take an announcement, and return its row. Raises :class:`Declined`, or
        :class:`~fairq_ryu.fabric.announcements.Full`.
        """

    def announcements(self) -> list[dict[str, Any]]:
        """What applications have announced, the oldest first: ``id``, ``src``, ``dst``, ``sport``, ``dport``,
        ``size``, ``deadline``, ``left``, ``expires_s``, ``flows``.
        """

    def withdraw(self, number: int) -> bool:
        """Take an announcement back; False if there is no such."""

    def gif(self) -> list[dict[str, Any]]:
        """The flows of the ports whose policy knows deadlines: ``dpid``, ``port``, ``priority``, ``src``,
        ``dst``, ``sport``, ``dport``, ``age_s``, ``size_bytes``, ``remaining_bytes``,
        ``deadline_s``, ``remaining_s``, ``state``.
        """


@dataclass(frozen=True, slots=True)
class Call:
    """A request: ``environ`` as WSGI has it, ``parts`` those of the path that are in braces."""

    announcing: AnnouncingView | None
    environ: Mapping[str, Any]
    parts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered; no answer is an empty body."""

    status: HTTPStatus
    answer: Answer | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


# What can be done


def listing(call: Call) -> Answer:
    """GET /v1/announcements."""
    return {"announcements": [] if call.announcing is None else call.announcing.announcements()}


def gif(call: Call) -> Answer:
    """GET /v1/gif."""
    return {"gif": [] if call.announcing is None else call.announcing.gif()}


def one(call: Call) -> Answer:
    """GET /v1/announcements/ID."""
    number = _number(call)
    for row in listing(call)["announcements"]:
        if row["id"] == number:
            return dict(row)
    raise _unknown(call)


def announce(call: Call) -> Reply:
    """POST /v1/announcements. The request is checked as a whole before anything is done."""
    wanted = read_request(read_body(call.environ))
    if call.announcing is None:
        raise Refused(HTTPStatus.CONFLICT, "the policy in force takes no announcements")
    try:
        row = call.announcing.announce(wanted)
    except Declined as declined:
        raise Refused(HTTPStatus.CONFLICT, str(declined)) from None
    except Full as full:
        raise Refused(HTTPStatus.TOO_MANY_REQUESTS, str(full)) from None
    return Reply(HTTPStatus.CREATED, row, {"Location": f"/v1/announcements/{row['id']}"})


def withdraw(call: Call) -> Reply:
    """DELETE /v1/announcements/ID."""
    number = _number(call)
    if call.announcing is None or not call.announcing.withdraw(number):
        raise _unknown(call)
    return Reply(HTTPStatus.NO_CONTENT)


def _number(call: Call) -> int:
    text = call.parts.get("id", "")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise _unknown(call)
    return int(text)


def _unknown(call: Call) -> Refused:
    return Refused(HTTPStatus.NOT_FOUND, f"there is no announcement {quoted(call.parts.get('id', ''))}")


# Who may write


def check_writer(environ: Mapping[str, Any], remote: bool, own_name: str) -> None:
    """Raise :class:`Refused` unless whoever asks may write: from this machine, or from anywhere with
    ``remote``. ``own_name`` is what the server was told to listen on.
    """
    if not remote and not _is_local(environ):
        raise Refused(HTTPStatus.FORBIDDEN, "announcements are taken from the controller's own machine only")
    host = environ.get("HTTP_HOST")
    if host and not _is_own(host, own_name):
        raise Refused(HTTPStatus.FORBIDDEN, f"the controller is not called {quoted(host)}: use its address")
    origin = environ.get("HTTP_ORIGIN")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        raise Refused(HTTPStatus.FORBIDDEN, f"pages of {quoted(origin)} may not announce flows")


def _is_local(environ: Mapping[str, Any]) -> bool:
    if any(name in environ for name in _FORWARDED):
        return False
    try:
        peer = ipaddress.ip_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    mapped = peer.ipv4_mapped if isinstance(peer, ipaddress.IPv6Address) else None
    return (mapped or peer).is_loopback


def _is_own(host: str, own_name: str) -> bool:
    """An address cannot be borrowed as a name can (DNS rebinding)."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if name in ("localhost", own_name.lower()):
            return True
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


# What is written


def read_body(environ: Mapping[str, Any]) -> bytes:
    """The body of a request, which must be JSON by its header. Raises :class:`Refused`."""
    kind = str(environ.get("CONTENT_TYPE", "")).partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json")
    length = str(environ.get("CONTENT_LENGTH") or "")
    if not length or environ.get("HTTP_TRANSFER_ENCODING"):
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is needed")
    if not (length.isascii() and length.isdigit()):
        raise Refused(HTTPStatus.BAD_REQUEST, f"Content-Length: {quoted(length)} is not a number")
    if len(length) > 12 or int(length) > MOST_BODY:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {MOST_BODY} bytes")
    timeout = hub.Timeout(_BODY_TIMEOUT)
    try:
        body: bytes = environ["wsgi.input"].read(int(length))
    except hub.Timeout as expired:
        if expired is not timeout:
            raise
        raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the body has not come") from None
    except OSError:
        body = b""
    finally:
        timeout.cancel()
    if len(body) != int(length):
        raise Refused(HTTPStatus.BAD_REQUEST, "the body ends before its time")
    return body


def read_request(body: bytes) -> Request:
    """What a body announces. Raises :class:`Refused` with 400."""
    try:
        said = json.loads(body.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except _Nonsense as nonsense:
        raise Refused(HTTPStatus.BAD_REQUEST, str(nonsense)) from None
    except (ValueError, RecursionError):
        raise Refused(HTTPStatus.BAD_REQUEST, "the body is not JSON in UTF-8") from None
    if not isinstance(said, dict):
        raise Refused(HTTPStatus.BAD_REQUEST, "the body is not a JSON object")
    for name in said:
        if name not in (*_REQUIRED, *_OPTIONAL):
            known = ", ".join((*_REQUIRED, *_OPTIONAL))
            raise Refused(HTTPStatus.BAD_REQUEST, f"unknown field {quoted(name)}: known are {known}")
    missing = [name for name in _REQUIRED if name not in said]
    if missing:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{missing[0]} is missing")
    # As many libraries say that there is none.
    fields = {name: value for name, value in said.items() if name in _REQUIRED or value is not None}
    try:
        return announce_request.request(**fields)
    except ValueError as error:
        raise Refused(HTTPStatus.BAD_REQUEST, str(error)) from None


class _Nonsense(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Nonsense("a field is given more than once")
    return found


def _no_number(text: str) -> None:
    raise _Nonsense(f"{text} is not a number in JSON")
