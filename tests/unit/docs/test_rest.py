"""docs/rest.md compared with the OpenAPI document: it lists exactly the paths, parameters, fields and
statuses.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fairq_ryu.control import yielding
from fairq_ryu.control.reports.events import History
from fairq_ryu.rest import cached_reply, guard, handler, server, streams
from fairq_ryu.rest.openapi import VERSION, document
from fairq_ryu.rest.resources import RESOURCES
from fairq_ryu.rest.schema.requests import MAX_LIMIT

TEXT = (Path(__file__).resolve().parents[3] / "docs/rest.md").read_text(encoding="utf-8")
DOCUMENT = document(RESOURCES)
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [
    (method.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]
# Heading of the page -> the model that it lists.
FIELDS = {
    "Fields of health": "Health",
    "Fields of the ways": "Ways",
    "Fields of ports": "PortRow",
    "Fields of flows": "FlowRow",
    "Fields of paths": "PathRow",
    "Fields of switches": "SwitchRow",
    "Fields of hosts": "HostRow",
    "Fields of links": "LinkRow",
    "Fields of gif": "GifRow",
    "Fields of announcements": "AnnouncementRow",
    "Fields of the policy": "Policy",
    "Fields of a parameter": "ParameterRow",
    "Fields of a pattern": "PortPolicyRow",
    "Fields of a changed mode": "ModeChangeRow",
    "Fields of events": "EventRow",
    "Fields of the flow of an event": "FlowRef",
    "Fields of a live state": "Live",
    "Fields of a problem": "Problem",
}
ASKED = {
    "Fields of an announcement that is made": "AnnouncementRequest",
    "Fields of a change": "PolicyChange",
    "Fields of a disable": "DisableRequest",
    "Fields of an enable": "EnableRequest",
}
# Answers that are a list of rows, and the texts about pages and readiness.
WHOLE = {
    *("Ports", "Flows", "Paths", "Switches", "Hosts", "Links", "Gif"),
    *("Announcements", "Events", "ModeChanges", "Ready"),
}


def tables() -> dict[str, list[list[str]]]:
    """Heading -> cells of the table rows below it, without the first."""
    found = {}
    for section in re.split(r"^##+ ", TEXT, flags=re.M)[1:]:
        heading, _, rest_of = section.partition("\n")
        lines = [line for line in rest_of.splitlines() if line.startswith("|")]
        found[heading] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return found


TABLES = tables()


def properties(model: str) -> dict[str, dict[str, Any]]:
    return dict(SCHEMAS[model]["properties"])


def test_every_operation_is_listed():
    assert TABLES["Requests"] == [
        [f"`{method}`", f"`{path}`", operation["summary"]] for method, path, operation in OPERATIONS
    ]


def test_every_parameter_is_listed():
    for method, path, operation in OPERATIONS:
        queries = [each for each in operation["parameters"] if each["in"] == "query"]
        wanted = [
            [f"`{each['name']}`", str(each["schema"].get("default", "")), each["description"]]
            for each in queries
        ]
        if method == "GET":
            assert TABLES.get(f"Parameters of {path}", []) == wanted
        else:
            assert wanted == []


@pytest.mark.parametrize(("heading", "model"), FIELDS.items())
def test_every_field_is_listed(heading, model):
    assert TABLES[heading] == [
        [f"`{name}`", about.get("x-unit", ""), about["description"]]
        for name, about in properties(model).items()
    ]


@pytest.mark.parametrize(("heading", "model"), ASKED.items())
def test_every_field_of_requests_is_listed(heading, model):
    needed = SCHEMAS[model].get("required", [])
    assert TABLES[heading] == [
        [f"`{name}`", "yes" if name in needed else "", about.get("x-unit", ""), about["description"]]
        for name, about in properties(model).items()
    ]


def test_no_model_is_forgotten():
    assert {*FIELDS.values(), *ASKED.values(), *WHOLE} == set(SCHEMAS)
    assert {heading for heading in TABLES if heading.startswith("Fields of")} == {*FIELDS, *ASKED}


def test_every_status_is_listed():
    words: dict[str, dict[str, None]] = {}
    for _, _, operation in OPERATIONS:
        for status, answer in operation["responses"].items():
            if status[0] in "45":
                words.setdefault(status, {})[answer["description"]] = None
    wanted = [[status, "; ".join(words[status])] for status in sorted(words)]
    assert TABLES["Which status when"] == [
        *wanted,
        ["500", "a fault of the controller, which is in its log"],
    ]


def test_the_document_is_whole():
    """Every reference exists; every operation has its own name and describes its answer."""
    text = str(DOCUMENT)
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in SCHEMAS
    assert DOCUMENT["openapi"] == VERSION
    assert len({operation["operationId"] for _, _, operation in OPERATIONS}) == len(OPERATIONS)
    for method, _, operation in OPERATIONS:
        answers = operation["responses"]
        assert {"403", "404", "405"} <= set(answers)
        assert ("security" in operation) == ("401" in answers) == (method != "GET")
        for status, answer in answers.items():
            if status[0] in "45":
                assert set(answer["content"]) == {"application/problem+json"}
            assert answer["description"]


def test_the_page_has_the_code_s_numbers():
    text = " ".join(TEXT.split())
    assert f"`limit` is {MAX_LIMIT} at most" in text
    assert f"after every {yielding.ROWS_PER_STEP} rows" in text
    assert f"longer than {cached_reply.KEEP * 100:g} ms, it is generated less often" in text
    assert f"up to {cached_reply.MAX_AGE:g} s old." in text
    assert f"at most the latest {streams._MAX_FRAMES // 2}." in text
    assert f"{handler.DEFAULT_HOST}, port 8080" in text
    assert f"without traffic for {server.IDLE:g} s" in text
    assert f"at most once in {cached_reply.KEEP * 1000:g} ms" in text
    assert f"at most {guard.MAX_BODY >> 10} KiB" in text
    assert f"A token has at least {guard._MIN_TOKEN} characters" in text
    history = History()
    assert f"{history.capacity} events of each kind, and to {history.share} of each kind at one port" in text
    assert f"a frame `state` every {streams.INTERVAL:g} s" in text
    assert f"a comment is sent every {streams.HEARTBEAT:g} s" in text
    assert f"more than {streams._MAX_FRAMES} frames or {streams._MAX_BYTES >> 20} MiB behind" in text
    assert f"At most {streams.DEFAULT_MAX_STREAMS} streams can be open" in text


def test_the_document_has_the_bounds_that_are_checked():
    """A bound that is checked but not documented would refuse requests that the document allows."""
    found = {
        (path, each["name"]): each["schema"]
        for _, path, operation in OPERATIONS
        for each in operation["parameters"]
    }
    for schema in found.values():
        assert schema["type"] == "string" or {"minimum", "maximum"} <= set(schema)
    assert found["/v1/flows", "limit"] == {"default": 100, "maximum": 1000, "minimum": 1, "type": "integer"}
    asked = properties("AnnouncementRequest")
    for name in ("deadline", "ttl"):
        (number,) = [each for each in asked[name]["anyOf"] if each["type"] == "number"]
        assert (number["exclusiveMinimum"], number["maximum"]) == (0, 86400)
