"""Parses and checks requests with their models, and turns errors into text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar, get_args
from urllib.parse import parse_qsl

from pydantic import ValidationError

from fairq_ryu.rest.schema.base import RequestModel, quoted

M = TypeVar("M", bound=RequestModel)


class InvalidRequest(ValueError):
    """The request is not valid; ``str()`` is the reason."""


def query(model: type[M], path: str, text: str) -> M:
    """The query string of ``path`` as an object of its model. Raises :class:`InvalidRequest`."""
    known = model.model_fields
    try:
        # More parameters than exist, so that a few repeated ones get an error message of their own.
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=len(known) + 32)
    except UnicodeDecodeError:
        raise InvalidRequest("the query is not UTF-8") from None
    except ValueError:
        raise InvalidRequest("the query has too many parameters") from None
    given: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            there = f"known are {', '.join(known)}" if known else f"{path} takes none"
            raise InvalidRequest(f"unknown parameter {quoted(name)}: {there}")
        if name in given:
            raise InvalidRequest(f"{name}: given more than once")
        given[name] = value
    return checked(model, given)


def body(model: type[M], data: bytes) -> M:
    """The body of a request as an object of its model. Raises :class:`InvalidRequest`."""
    try:
        found = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except InvalidRequest:
        raise
    except (ValueError, RecursionError):
        raise InvalidRequest("the body is not JSON in UTF-8") from None
    if not isinstance(found, dict):
        raise InvalidRequest("the body is not a JSON object")
    return checked(model, found)


def checked(model: type[M], given: Mapping[str, Any]) -> M:
    """The values as an object of the model. Raises :class:`InvalidRequest`."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise InvalidRequest(_message(model, error)) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidRequest("a field is given more than once")
    return found


def _no_number(text: str) -> None:
    raise InvalidRequest(f"{text} is not a number in JSON")


def _message(model: type[RequestModel], error: ValidationError) -> str:
    """The first error as text. For a union of types, the error of the value has precedence."""
    found = error.errors(include_url=False)
    # An unknown name may be a misspelling of the missing one, so it is reported first.
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    name, *inner = first["loc"] or ("the body",)  # a name that is no Unicode has no place
    where = f"{name}.{inner[0]}" if inner and _is_mapping(model, name) else str(name)
    value, kind, about = first["input"], first["type"], first.get("ctx", {})
    shown = quoted(value)
    match kind:
        case "extra_forbidden":
            return f"unknown field {quoted(str(name))}: known are {', '.join(model.model_fields)}"
        case "missing":
            return f"{where} is missing"
        case "value_error":
            return f"{where}: {about['error']}"
        case "greater_than_equal":
            return f"{where}: {shown} is less than {about['ge']:g}"
        case "greater_than":
            return f"{where}: {shown} is not more than {about['gt']:g}"
        case "less_than_equal":
            return f"{where}: {shown} is more than {about['le']:,}"
        case "literal_error":
            choices = [str(choice) for choice in _choices(model, str(name))]
            return f"{where}: {shown} is none of {', '.join(choices)}"
        case "int_type":
            return f"{where}: {shown} is not a whole number"
        case "float_type" | "finite_number":
            return f"{where}: {shown} is not a number"
        case "string_type":
            return f"{where}: {shown} is not a text"
        case "dict_type":
            return f"{where}: {shown} is not a JSON object"
    return f"{where}: {shown} is not valid: {first['msg']}"


def _is_mapping(model: type[RequestModel], name: Any) -> bool:
    field = model.model_fields.get(str(name))
    return field is not None and "dict[" in str(field.annotation)


def _choices(model: type[RequestModel], name: str) -> list[Any]:
    found: list[Any] = []
    for inner in get_args(model.model_fields[name].annotation):
        found += get_args(inner) or [inner]
    return [each for each in found if isinstance(each, str)]
