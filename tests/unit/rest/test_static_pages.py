"""The files of the live page: which files of a directory are served, and how."""

from __future__ import annotations

import pytest

from fairq_ryu.rest.static_pages import DIRECTORY, Pages
from tests.support.restsite import RestSite


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text("<!doctype html><title>é</title>")
    (tmp_path / "page.js").write_text("1")
    (tmp_path / "page.css").write_text("a {}")
    (tmp_path / "notes.txt").write_text("no part of a page")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "inside.js").write_text("2")
    (tmp_path / "folder.js").mkdir()
    made = RestSite()
    made.service.pages = Pages(tmp_path)
    (tmp_path / "late.js").write_text("3")
    return made


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/page/index.html", "text/html; charset=utf-8"),
        ("/page/page.js", "text/javascript; charset=utf-8"),
        ("/page/page.css", "text/css; charset=utf-8"),
    ],
)
def test_files_that_are_served(site, path, kind):
    answer = site.ask(path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, kind)
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'; ")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.body
    tag = answer.headers["ETag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = site.ask(path, HTTP_IF_NONE_MATCH=known)
        assert (again.status_code, again.body, again.headers["ETag"]) == (304, b"", tag)
    assert site.ask(path, HTTP_IF_NONE_MATCH='"other"').status_code == 200
    assert site.ask(path, "HEAD").body == b""


@pytest.mark.parametrize(
    "name",
    [
        *("notes.txt", "late.js", "folder.js", "nothing.js", "", "..", ".", "inside.js"),
        *("deeper/inside.js", "../view.py", "/etc/passwd", "page.js/", "PAGE.JS", "page.js\0", "x" * 5000),
    ],
)
def test_files_that_are_not_served(site, name):
    answer = site.ask(f"/page/{name}")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_each_file_has_its_own_tag(site):
    assert site.ask("/page/page.js").headers["ETag"] != site.ask("/page/page.css").headers["ETag"]


def test_a_missing_directory_has_no_files(tmp_path):
    assert Pages(tmp_path / "nowhere").names == []


def test_the_page_is_in_the_package():
    assert DIRECTORY.parent.name == "fairq_ryu" and DIRECTORY.name == "page"
