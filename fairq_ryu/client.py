"""Talks to the controller's REST interface: one request, its answer or one clear error.

Knows the interface by its documentation only (``docs/rest.md``), and imports nothing of the controller and
nothing but Python's own library: applications that announce their flows import this.
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

from fairq_ryu.errors import UserError

DEFAULT_URL = "http://127.0.0.1:8080"
URL_VARIABLE = "FAIRQ_URL"
TOKEN_VARIABLE = "FAIRQ_TOKEN"
_TIMEOUT = 5.0
# An answer beyond this many bytes is not the controller's: its lists are shorter.
_MAX_BYTES = 64 << 20
# Of another program's words, so many characters are repeated.
_MAX_WORDS = 200


class NoController(UserError):
    """Nobody answers at that address, or somebody who is not the controller."""


class Refused(UserError):
    """The controller has answered that it will not; ``status`` is HTTP's."""

    status = 0


def announce(
    src: str,
    dst: str,
    dport: int,
    *,
    sport: int | None = None,
    size: int | None = None,
    deadline: float | None = None,
    ttl: float | None = None,
    count: int | None = None,
    url: str | None = None,
    token: str | None = None,
) -> int:
    """Announce a flow to the controller, before it starts or while it runs; returns the number of this.

    ``src`` sends ``size`` bytes to TCP port ``dport`` of ``dst``, and all of it should have arrived
    ``deadline`` seconds after the flow's start; at least one of the two is needed. ``sport``: it is for the
    flow with this source port. Without, it is for the last flow that has started within ``ttl`` seconds (60
    if not given) and has none, or else for the next that does; ``count``: for so many.

    ``url`` is the address of the controller's REST interface (None: that in the environment, ``FAIRQ_URL``,
    or else http://127.0.0.1:8080), ``token`` the controller's (None: that in the environment,
    ``FAIRQ_TOKEN``).

    Raises :class:`NoController`, or :class:`Refused` with what is wrong; both are
    :class:`~fairq_ryu.errors.UserError`.
    """
    said = {"sport": sport, "size": size, "deadline": deadline, "ttl": ttl, "count": count}
    token = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
    fields = {"src": str(src), "dst": str(dst), "dport": dport, **said}
    return int(post(fields, address(url), token, "url")["id"])


def address(given: str | None) -> str:
    """The address of the REST interface: what is ``given``, or else that in the environment, or else the
    default. Raises :class:`UserError` if what the environment says is no address.
    """
    url = given if given is not None else os.environ.get(URL_VARIABLE) or DEFAULT_URL
    if given is None:
        _base(url, URL_VARIABLE)
    return url


def read_token(file: Path | None) -> str:
    """The token to send: that of a file, or else of the environment; "" if there is none. Raises
    :class:`UserError`.
    """
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "")
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not a text of letters and digits"
        raise UserError(f"cannot read the token from {file}: {why}", "correct --token-file") from None


def post(said: Mapping[str, Any], url: str, token: str = "", option: str = "--url") -> dict[str, Any]:
    """Announce a flow: the fields as ``docs/rest.md`` has them, those that are None left out. Returns the row
    of the announcement; raises as :func:`announce` does.
    """
    fields = {name: value for name, value in said.items() if value is not None}
    try:
        body = json.dumps(fields).encode()
    except (TypeError, ValueError) as error:
        raise Refused(f"that cannot be announced: {error}", "give numbers and texts") from None
    row = ask(
        url, "POST", "/v1/announcements", body, token=token, usage="see docs/announcing.md", option=option
    )
    number = row.get("id")
    if not isinstance(number, int) or isinstance(number, bool):
        raise not_ours(url, "no number of the announcement", option)
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
) -> dict[str, Any]:
    """The controller's answer, an object. Raises :class:`NoController` or :class:`Refused`.

    ``usage`` is where it stands what may be asked, ``option`` how the caller calls the address.
    """
    base = _base(url, option)
    headers = {} if body is None else {"Content-Type": "application/json"}
    if token:
        if not (token.isascii() and token.isprintable()):
            raise UserError("the token is none", "it has letters, digits and -._~+/= only")
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(f"{base}{path}", data=body, headers=headers, method=method)
    # No proxy: the controller is on this machine or on the management network.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_TIMEOUT) as response:
            answer = response.read(_MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error, url, path.partition("?")[0], usage, option) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        # URLError has the reason in it; an end in the middle of the answer comes without.
        reason = getattr(error, "reason", None) or error
        why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        raise NoController(
            f"no controller answers at {base}: {plain(why)[:_MAX_WORDS]}",
            f"start it (ryu-manager fairq_ryu.apps.fairq), or say where it is with {option}",
        ) from None
    if len(answer) > _MAX_BYTES:
        raise not_ours(url, f"more than {_MAX_BYTES:,} bytes", option)
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        raise not_ours(url, "no JSON", option) from None
    if not isinstance(found, dict):
        raise not_ours(url, "no JSON object", option)
    return found


def _base(url: str, option: str) -> str:
    """The address to ask, without a slash at its end. Raises :class:`UserError` if it is none."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    # A query would come before the path, and blanks and line ends are not for HTTP.
    usable = usable and not parts.query and not parts.fragment
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise UserError(f"{option} {url!r} is no address", "write http://HOST:PORT")
    return url.rstrip("/")


def _refused(error: urllib.error.HTTPError, url: str, path: str, usage: str, option: str) -> UserError:
    detail = _detail(error)
    if detail is None:
        return not_ours(url, f"HTTP status {error.code}", option)
    refused = _words_of(error.code, detail, f"{url.rstrip('/')}{path}", usage)
    refused.status = error.code
    return refused


def _words_of(status: int, detail: str, address: str, usage: str) -> Refused:
    if status in (400, 422):
        return Refused(f"the controller refused that: {detail}", usage)
    remedies = {
        401: f"give the controller's token: {TOKEN_VARIABLE} in the environment, or --token-file",
        403: "see what docs/rest.md says of security",
        409: "start the controller with a policy that knows deadlines: sed or rsed",
        429: "try again later",
    }
    remedy = "see the controller's log" if status >= 500 else "see whether it is of another version"
    return Refused(f"{address}: {status}, {detail}", remedies.get(status, remedy))


def _detail(error: urllib.error.HTTPError) -> str | None:
    """What a problem document (RFC 9457) says; None if the answer is none."""
    if error.headers.get_content_type() != "application/problem+json":
        return None
    with contextlib.suppress(OSError, ValueError, RecursionError, http.client.HTTPException):
        document = json.loads(error.read(_MAX_BYTES))
        if isinstance(document, dict) and isinstance(document.get("detail"), str):
            return plain(document["detail"])[:_MAX_WORDS]
    return None


def not_ours(url: str, why: str, option: str = "--url") -> NoController:
    """Somebody else answers there."""
    return NoController(
        f"{url.rstrip('/')} answers, but not as fairq_ryu's controller does: {why}",
        f"see whether {option} names its REST interface (ryu-manager's --wsapi-port)",
    )


def plain(text: object) -> str:
    """Text from outside, without what a terminal would take for a command."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(text))
