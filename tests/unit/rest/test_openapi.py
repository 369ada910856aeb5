"""The OpenAPI document that the interface describes itself with."""

from __future__ import annotations

import re

from fairq_ryu.rest.openapi import VERSION, document
from fairq_ryu.rest.resources import RESOURCES

DOCUMENT = document(RESOURCES)
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [
    (method.upper(), path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
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
    asked = SCHEMAS["AnnouncementRequest"]["properties"]
    for name in ("deadline", "ttl"):
        (number,) = [each for each in asked[name]["anyOf"] if each["type"] == "number"]
        assert (number["exclusiveMinimum"], number["maximum"]) == (0, 86400)
