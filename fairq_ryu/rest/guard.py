"""Access control: who may read, who may write, and how much, checked before a request is handled.

A web page in a browser on the controller's machine can send requests to 127.0.0.1, too. So the ``Host`` of a
request must be an address or one of the controller's names, which excludes DNS rebinding; and a
request that writes must have the token and the content type of JSON, and must not come from a page of another
origin. No header lets other origins read (CORS is off).
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import stat
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fairq_ryu.errors import UserError
from fairq_ryu.rest.reply import CLOSE, RequestRefused
from fairq_ryu.rest.schema.base import quoted
from fairq_ryu.ryu_compat.runtime import hub

TOKEN_VARIABLE = "FAIRQ_TOKEN"
MAX_BODY = 64 << 10
# Time limit for the body of a request, seconds.
BODY_TIMEOUT = 5.0
_MIN_TOKEN = 16
_HOW = f"set [fairq_ryu] token_file, or {TOKEN_VARIABLE} in the controller's environment"


def read_token(file: str, variable: str) -> str:
    """The token from a file or the environment, "" if there is none. Raises :class:`UserError`."""
    if file and variable:
        raise UserError(
            f"both [fairq_ryu] token_file and {TOKEN_VARIABLE} give a token", "remove one of the two"
        )
    if not file:
        return _usable(variable, TOKEN_VARIABLE) if variable else ""
    try:
        with Path(file).open("rb") as handle:
            mode = os.fstat(handle.fileno()).st_mode
            text = handle.read(4097)
    except OSError as error:
        raise UserError(
            f"cannot read the token from {file}: {error.strerror}", "correct [fairq_ryu] token_file"
        ) from None
    if stat.S_ISREG(mode) and mode & stat.S_IROTH:
        raise UserError(f"every user of this machine can read the token in {file}", f"chmod o= {file}")
    return _usable(text.decode("latin-1").strip(), file)


def _usable(token: str, where: str) -> str:
    if not re.fullmatch(rf"[A-Za-z0-9._~+/=-]{{{_MIN_TOKEN},4096}}", token):
        raise UserError(
            f"the token in {where} is not valid: {_MIN_TOKEN} or more letters, digits and -._~+/= are needed",
            "make one, for example with: openssl rand -hex 32",
        )
    return token


class RequestGuard:
    """The checks of one interface. ``names``: its host names besides ``localhost``."""

    def __init__(self, token: str = "", names: Iterable[str] = ()) -> None:
        self._token = token.encode()
        self._names = {"localhost", *(name.lower() for name in names if name)}

    def check_host(self, environ: Mapping[str, Any]) -> None:
        """Raise :class:`RequestRefused` unless the ``Host`` of the request is the controller's."""
        host = environ.get("HTTP_HOST")
        if host and not self.is_own(host):
            raise RequestRefused(
                HTTPStatus.FORBIDDEN,
                f"the controller is not called {quoted(host)}: use its address, or see rest_names",
            )

    def is_own(self, host: str) -> bool:
        """Whether a ``Host`` is the controller's. Every address is, because DNS rebinding needs a name."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
            if name in self._names:
                return True
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def check_writer(self, environ: Mapping[str, Any]) -> None:
        """Raise :class:`RequestRefused` unless the client may write."""
        host, origin = environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise RequestRefused(HTTPStatus.FORBIDDEN, f"pages of {quoted(origin)} may not change anything")
        if not self._token:
            raise RequestRefused(HTTPStatus.FORBIDDEN, f"changes are refused without a token: {_HOW}")
        scheme, _, given = environ.get("HTTP_AUTHORIZATION", "").strip().partition(" ")
        if scheme.lower() != "bearer":
            raise _unauthorized("a token is needed: Authorization: Bearer TOKEN", "")
        if not hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._token):
            raise _unauthorized("the token is wrong", ', error="invalid_token"')

    def read_body(self, environ: Mapping[str, Any]) -> bytes:
        """The body of a request, which must be JSON by its header. Raises :class:`RequestRefused`."""
        kind = str(environ.get("CONTENT_TYPE", "")).partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RequestRefused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json")
        length = str(environ.get("CONTENT_LENGTH") or "")
        if not length or environ.get("HTTP_TRANSFER_ENCODING"):
            raise RequestRefused(HTTPStatus.LENGTH_REQUIRED, "Content-Length is needed")
        if not (length.isascii() and length.isdigit()):
            raise RequestRefused(HTTPStatus.BAD_REQUEST, f"Content-Length: {quoted(length)} is not a number")
        if len(length) > 12 or int(length) > MAX_BODY:
            raise RequestRefused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {MAX_BODY} bytes"
            )
        timeout = hub.Timeout(BODY_TIMEOUT)
        try:
            body: bytes = environ["wsgi.input"].read(int(length))
        except hub.Timeout as expired:
            if expired is not timeout:
                raise
            environ.get(CLOSE, lambda: None)()  # the rest of it may still arrive
            raise RequestRefused(HTTPStatus.REQUEST_TIMEOUT, "the body was not received in time") from None
        except OSError:
            body = b""
        finally:
            timeout.cancel()
        if len(body) != int(length):
            raise RequestRefused(HTTPStatus.BAD_REQUEST, "the body is shorter than Content-Length")
        return body


def _unauthorized(detail: str, error: str) -> RequestRefused:
    return RequestRefused(
        HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": f'Bearer realm="fairq_ryu"{error}'}
    )
