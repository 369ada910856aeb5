"""A client of the controller's REST interface: one request, and its answer or one clear error.

Applications that announce their flows import this module. So it depends on the documented interface only
(``docs/rest.md``) and imports nothing but Python's standard library and the project's error type.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fairq_ryu.errors import UserError, plain

DEFAULT_URL = "http://127.0.0.1:8080"
URL_VARIABLE = "FAIRQ_URL"
TOKEN_VARIABLE = "FAIRQ_TOKEN"
_TIMEOUT = 5.0
CHANGE_TIMEOUT = 15.0
"""How long to wait for a change at a port, seconds: the controller may pass it on to another one."""
# The maximum size of an answer, bytes; the controller's lists are shorter.
_MAX_ANSWER_BYTES = 64 << 20
# The maximum number of characters that are quoted from another program.
_MAX_QUOTED = 200


class NoController(UserError):
    """No server answers at this address, or one that is not the controller."""


class Refused(UserError):
    """The controller has refused the request; ``status`` is the HTTP status."""

    status = 0


def announce(
    src: str,
    dst: str,
    dport: int,
    *,
    sport: int | None = None,
    size: int | None = None,
    deadline: float | None = None,
    priority: int | None = None,
    ttl: float | None = None,
    count: int | None = None,
    vlan: int | None = None,
    url: str | None = None,
    token: str | None = None,
) -> int:
    """Announce a flow to the controller, before it starts or while it runs; returns the number of the
    announcement.

    ``src`` sends ``size`` bytes to TCP port ``dport`` of ``dst``, and the last byte should arrive
    ``deadline`` seconds after the flow's start. ``priority``: its share within its tenant, in proportion; 100
    is usual. At least one of the three is needed. ``sport``: the announcement is for the flow with this
    source port. Without it, the announcement is for the last flow without an announcement that started at
    most ``ttl`` seconds ago (default 60), or else for the next flow that starts within ``ttl`` seconds;
    ``count``: the number of such flows (default 1). ``vlan``: the flow's VLAN, 0 for none; without it, the
    flow may be in any.

    ``url`` is the address of the controller's REST interface (None: the environment variable ``FAIRQ_URL``,
    or else http://127.0.0.1:8080), ``token`` the controller's token (None: the environment variable
    ``FAIRQ_TOKEN``).

    Raises :class:`NoController`, or :class:`Refused` with the controller's reason; both are
    :class:`~fairq_ryu.errors.UserError`.
    """
    token = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    fields = {"src": str(src), "dst": str(dst), "dport": dport, "sport": sport, "size": size}
    fields |= {"deadline": deadline, "priority": priority, "ttl": ttl, "count": count, "vlan": vlan}
    return int(post(fields, address(url), token, "url")["id"])


def address(given: str | None) -> str:
    """The address of the REST interface: ``given``, or else the one in the environment, or else the default.
    Raises :class:`UserError` if the environment variable is not an address.
    """
    url = given if given is not None else os.environ.get(URL_VARIABLE) or DEFAULT_URL
    if given is None:
        _base(url, URL_VARIABLE)
    return url


def read_token(file: Path | None) -> str:
    """The token to send, from a file or else from the environment; "" without one. Raises :class:`UserError`
    if the file cannot be read.
    """
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "")
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not ASCII text"
        raise UserError(f"cannot read the token from {file}: {why}", "correct --token-file") from None


def post(fields: Mapping[str, Any], url: str, token: str = "", option: str = "--url") -> dict[str, Any]:
    """Announce a flow: ``fields`` as in ``docs/rest.md``; those that are None are not sent. Returns the row
    of the announcement; raises as :func:`announce` does.
    """
    try:
        body = json.dumps({name: value for name, value in fields.items() if value is not None}).encode()
    except (TypeError, ValueError) as error:
        raise Refused(f"that cannot be announced: {error}", "give numbers and texts") from None
    row = ask(
        url, "POST", "/v1/announcements", body, token=token, usage="see docs/announcing.md", option=option
    )
    number = row.get("id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise not_the_controller(url, "no number of the announcement", option)
    return row


def ask(
    url: str,
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    usage: str,
    token: str = "",
    option: str = "--url",
    timeout: float | None = None,
) -> dict[str, Any]:
    """The controller's answer, a JSON object. Raises :class:`NoController` or :class:`Refused`.

    ``usage``: the remedy for a wrong request, a reference to the documentation; ``option``: the name under
    which the user gave the address; ``timeout``: how long to wait, seconds.
    """
    base = _base(url, option)
    headers = {} if body is None else {"Content-Type": "application/json"}
    if token:
        if not (token.isascii() and token.isprintable()):
            raise UserError(
                "the token contains characters that are not allowed",
                "use letters, digits and -._~+/= only",
            )
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"{base}{path}", data=body, headers=headers, method=method)
    # Without a proxy, because the controller is on this machine or on the management network.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=timeout or _TIMEOUT) as response:
            answer = response.read(_MAX_ANSWER_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error, url, path.partition("?")[0], usage, option) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        # URLError contains the reason; a connection that ends in the middle of the answer has none.
        reason = getattr(error, "reason", None) or error
        why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        raise NoController(
            f"no controller answers at {base}: {plain(why)[:_MAX_QUOTED]}",
            f"start it (ryu-manager fairq_ryu.apps.fairq), or give its address with {option}",
        ) from None
    if len(answer) > _MAX_ANSWER_BYTES:
        raise not_the_controller(url, f"more than {_MAX_ANSWER_BYTES:,} bytes", option)
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        raise not_the_controller(url, "no JSON", option) from None
    if not isinstance(found, dict):
        raise not_the_controller(url, "no JSON object", option)
    return found


def _base(url: str, option: str) -> str:
    """The address without a slash at its end. Raises :class:`UserError` if it is not an HTTP address."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    # A query would precede the path; HTTP does not allow spaces and line ends in an address.
    usable = usable and not parts.query and not parts.fragment
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise UserError(f"{option} {url!r} is not an address", "write http://HOST:PORT")
    return url.rstrip("/")


def _refused(error: urllib.error.HTTPError, url: str, path: str, usage: str, option: str) -> UserError:
    detail = _detail(error)
    if detail is None:
        return not_the_controller(url, f"HTTP status {error.code}", option)
    refused = _error_of(error.code, detail, f"{url.rstrip('/')}{path}", usage)
    refused.status = error.code
    return refused


def _error_of(status: int, detail: str, address: str, usage: str) -> Refused:
    if status in (400, 422):
        return Refused(f"the controller refused that: {detail}", usage)
    remedies = {
        401: f"give the controller's token: {TOKEN_VARIABLE} in the environment, or --token-file",
        403: "see the section on security in docs/rest.md",
        409: "start the controller with a policy that uses that: sed, rsed, or another with turns = on; for "
        "priorities, tenants",
        429: "try again later",
    }
    remedy = "see the controller's log" if status >= 500 else "check the version of the controller"
    return Refused(f"{address}: {status}, {detail}", remedies.get(status, remedy))


def _detail(error: urllib.error.HTTPError) -> str | None:
    """The detail of a problem document (RFC 9457); None if the answer is not one."""
    if error.headers.get_content_type() != "application/problem+json":
        return None
    with contextlib.suppress(OSError, ValueError, RecursionError, http.client.HTTPException):
        document = json.loads(error.read(_MAX_ANSWER_BYTES))
        if isinstance(document, dict) and isinstance(document.get("detail"), str):
            return plain(document["detail"])[:_MAX_QUOTED]
    return None


def not_the_controller(url: str, why: str, option: str = "--url") -> NoController:
    """The error for an answer that the controller would not give; ``why`` is the difference."""
    return NoController(
        f"{url.rstrip('/')} answers, but not as fairq_ryu's controller does: {why}",
        f"check that {option} is the address of its REST interface (ryu-manager's --wsapi-port)",
    )
