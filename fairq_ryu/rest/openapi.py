"""The OpenAPI document, made of the list of resources and the models that check requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from fairq_ryu import __version__
from fairq_ryu.rest.reply import encode
from fairq_ryu.rest.schema.base import RequestModel
from fairq_ryu.rest.schema.responses import Problem
from fairq_ryu.rest.schema.state import EventRow, Live

if TYPE_CHECKING:
    from fairq_ryu.rest.operations import Operation, Resource

VERSION = "3.1.0"
_REF = "#/components/schemas/{model}"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
# Errors that any operation, any with a body and any write may answer.
_ALL = {
    HTTPStatus.BAD_REQUEST: "a parameter is unknown, wrong or given twice",
    HTTPStatus.FORBIDDEN: "the `Host` header has a name that is not the controller's",
    HTTPStatus.NOT_FOUND: "no such resource",
    HTTPStatus.METHOD_NOT_ALLOWED: "this path does not support the method",
}
_WRITE = {
    HTTPStatus.UNAUTHORIZED: "the token is missing or wrong",
    HTTPStatus.FORBIDDEN: "the controller has no token, or the request comes from a page of another origin",
}
_BODY = {
    HTTPStatus.BAD_REQUEST: "a parameter or field is unknown, wrong or given twice; the body is not JSON",
    HTTPStatus.REQUEST_TIMEOUT: "the body was not received in time",
    HTTPStatus.LENGTH_REQUIRED: "the request has a body but no Content-Length",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "the body is too large",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "Content-Type is not application/json",
}


def errors_of(method: str, operation: Operation) -> dict[HTTPStatus, str]:
    """All errors that an operation may answer, with their meaning."""
    found = dict(_ALL)
    if method in WRITES:
        found |= _WRITE
    if operation.body is not None:
        found |= _BODY
    return dict(sorted({**found, **operation.errors}.items()))


@lru_cache(maxsize=4)
def document(resources: tuple[Resource, ...]) -> dict[str, Any]:
    """The document."""
    modes: list[tuple[Any, JsonSchemaMode]] = [
        (Problem, "serialization"),
        (Live, "serialization"),
        (EventRow, "serialization"),
    ]
    for resource in resources:
        for operation in resource.operations.values():
            if operation.answers is not None:
                modes.append((operation.answers, "serialization"))
            if operation.body is not None:
                modes.append((operation.body, "validation"))
    refs, found = models_json_schema(list(dict.fromkeys(modes)), ref_template=_REF)
    made = _Maker({model: ref for (model, _), ref in refs.items()})
    return {
        "openapi": VERSION,
        "info": {
            "title": "fairq_ryu",
            "version": __version__,
            "description": "State of queues, flows and windows, and changes of the policy.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {resource.path: made.item(resource.operations, resource.parts) for resource in resources},
        "components": {
            "schemas": found["$defs"],
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "token of the controller"}
            },
        },
    }


@lru_cache(maxsize=4)
def encoded(resources: tuple[Resource, ...]) -> bytes:
    """The document as JSON."""
    return encode(document(resources))


class _Maker:
    def __init__(self, refs: Mapping[Any, Any]) -> None:
        self._refs = refs

    def item(self, operations: Mapping[str, Operation], parts: type[RequestModel]) -> dict[str, Any]:
        return {
            method.lower(): self._operation(method, operation, parts)
            for method, operation in operations.items()
        }

    def _operation(self, method: str, operation: Operation, parts: type[RequestModel]) -> dict[str, Any]:
        made: dict[str, Any] = {
            "operationId": operation.id,
            "summary": operation.summary,
            "parameters": [
                *self._parameters("path", parts),
                *self._parameters("query", operation.query),
            ],
            "responses": {
                str(int(operation.status)): self._answer(operation),
                **{
                    str(int(status)): {
                        "description": words,
                        "content": {"application/problem+json": {"schema": self._refs[Problem]}},
                    }
                    for status, words in errors_of(method, operation).items()
                },
                **{str(int(status)): {"description": words} for status, words in operation.bare.items()},
            },
        }
        if operation.body is not None:
            made["requestBody"] = {
                "required": True,
                "content": {"application/json": {"schema": self._refs[operation.body]}},
            }
        if method in WRITES:
            made["security"] = [{"token": []}]
        return made

    def _answer(self, operation: Operation) -> dict[str, Any]:
        content: dict[str, Any] = {}
        if operation.answers is not None:
            content["application/json"] = {"schema": self._refs[operation.answers]}
        for kind in operation.media:
            content[kind] = {} if kind == "application/json" else {"schema": {"type": "string"}}
        words = "; ".join(operation.media.values()) or operation.status.phrase
        return {"description": words, **({"content": content} if content else {})}

    def _parameters(self, place: str, model: type[RequestModel]) -> Iterable[dict[str, Any]]:
        schema = model.model_json_schema()
        for name, about in schema.get("properties", {}).items():
            about = _bare(about)
            yield {
                "name": name,
                "in": place,
                "required": place == "path",
                "description": about.pop("description", ""),
                "schema": about,
            }


def _bare(about: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a parameter without null: a query leaves a parameter out instead."""
    made = {name: value for name, value in about.items() if name not in ("title", "anyOf")}
    if "anyOf" in about:
        kinds = [kind for kind in about["anyOf"] if kind.get("type") != "null"]
        made |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if made.get("default", ...) is None:
        del made["default"]
    return made
