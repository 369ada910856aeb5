"""The files of the live page, as they are on the disk when the controller starts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from fairq_ryu.rest.reply import Refused, Reply

DIRECTORY = Path(__file__).resolve().parent.parent / "page"
INDEX = "index.html"
# What is not of one of these kinds is no part of a page, and is not served.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
# Nothing from elsewhere, and in nobody else's frame: the page may read what the operator may.
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class _File(NamedTuple):
    body: bytes
    content_type: str
    tag: str


class Pages:
    """The files by name. What comes into the directory later is not served."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._files: dict[str, _File] = {}
        for path in sorted(directory.glob("*")) if directory.is_dir() else ():
            kind = TYPES.get(path.suffix)
            if kind is not None and path.is_file():
                body = path.read_bytes()
                self._files[path.name] = _File(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')

    @property
    def names(self) -> list[str]:
        """What there is."""
        return list(self._files)

    def reply(self, name: str, environ: Mapping[str, Any]) -> Reply:
        """A file. Raises :class:`Refused` if there is none of that name."""
        file = self._files.get(name)
        if file is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such file of the page")
        headers = {"ETag": file.tag, "Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
        known = [tag.strip().removeprefix("W/") for tag in environ.get("HTTP_IF_NONE_MATCH", "").split(",")]
        if file.tag in known:
            return Reply(HTTPStatus.NOT_MODIFIED, headers=headers)
        return Reply(headers=headers, body=file.body, content_type=file.content_type)
