"""The files of the live page, read once when the controller starts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from fairq_ryu.rest.reply import Reply, RequestRefused

DIRECTORY = Path(__file__).resolve().parent.parent / "page"
INDEX = "index.html"
# The file types of a page; other files are not served.
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
# No content of other origins, and not in frames of other pages: the page can read all that the operator can.
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class _File(NamedTuple):
    body: bytes
    content_type: str
    tag: str


class Pages:
    """The files by name. Files that are added to the directory later are not served."""

    def __init__(self, directory: Path = DIRECTORY) -> None:
        self._files: dict[str, _File] = {}
        for path in sorted(directory.glob("*")) if directory.is_dir() else ():
            kind = TYPES.get(path.suffix)
            if kind is not None and path.is_file():
                body = path.read_bytes()
                self._files[path.name] = _File(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        return list(self._files)

    def reply(self, name: str, environ: Mapping[str, Any]) -> Reply:
        """The reply with a file. Raises :class:`RequestRefused` if there is no such file."""
        file = self._files.get(name)
        if file is None:
            raise RequestRefused(HTTPStatus.NOT_FOUND, "there is no such file of the page")
        headers = {"ETag": file.tag, "Cache-Control": "no-cache", "Content-Security-Policy": POLICY}
        known = [tag.strip().removeprefix("W/") for tag in environ.get("HTTP_IF_NONE_MATCH", "").split(",")]
        if file.tag in known:
            return Reply(HTTPStatus.NOT_MODIFIED, headers=headers)
        return Reply(headers=headers, body=file.body, content_type=file.content_type)
