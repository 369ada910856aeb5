"""Holds answers that tests make up to the schema of the REST interface.

The models are those of openapi.json: no field is missing or unknown, and each has its type.
"""

from __future__ import annotations

from typing import Any, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from fairq_ryu.rest.resources import RESOURCES
from fairq_ryu.rest.schema.responses import Problem
from fairq_ryu.rest.schema.state import EventRow, Live

_GET = {resource.path: resource.operations["GET"] for resource in RESOURCES if "GET" in resource.operations}
STREAMED: dict[str, type[BaseModel]] = {"state": Live, "event": EventRow}
"""The models of what /v1/live sends, by the name of the event."""


def row(model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """A row with these values, in the order of its model. A field that is not given is null where it may be:
    nothing is known, or the feature is not used.
    """
    fields = model.model_fields.items()
    there = [name for name, each in fields if name in values or type(None) in get_args(each.annotation)]
    return dict.fromkeys(there) | values


def fault(path: str, answer: Any, status: int = 200) -> str:
    """What is wrong with the answer to a GET, as one line; "" if nothing is."""
    if status != 200:
        return unlike(Problem, answer)
    operation = _GET.get(urlsplit(path).path)
    if operation is None or operation.answers is None:
        return f"{path}: the controller answers nothing there"
    return unlike(operation.answers, answer)


def unlike(model: type[BaseModel], answer: Any) -> str:
    """How the answer differs from its model, as one line; "" if it does not."""
    try:
        model.model_validate(answer)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        return f"{model.__name__}: " + "; ".join(found)
    return ""
