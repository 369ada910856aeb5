"""The query strings of the REST interface: what a parameter may be, and what is said of one that is wrong."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from fairq_ryu.apps.rest_answer import Refused, quoted
from fairq_ryu.fabric.flows import FlowState

Query = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a query. ``parse`` raises ValueError, saying what is wrong with a text;
    ``default`` is the value without it (None: it is as if it were not there).
    """

    name: str
    parse: Callable[[str], Any]
    help: str
    default: Any = None


def whole(least: int, most: int) -> Callable[[str], int]:
    """A whole number with bounds."""

    def read(text: str) -> int:
        # int() alone would take blanks, signs, underscores and the digits of other scripts.
        if not re.fullmatch(r"[0-9]{1,12}", text):
            raise ValueError(f"{quoted(text)} is not a whole number from {least} to {most}")
        value = int(text)
        if value < least:
            raise ValueError(f"{value} is less than {least}")
        if value > most:
            raise ValueError(f"{value} is more than {most}")
        return value

    return read


def address(text: str) -> str:
    """An IP address, in the form that the controller has it."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{quoted(text)} is not an IP address") from None


def state(text: str) -> str:
    """A state of a connection."""
    states = [str(state) for state in FlowState]
    if text not in states:
        raise ValueError(f"{quoted(text)} is none of {', '.join(states)}")
    return text


TcpOrSwitchPort = int | tuple[str, int]


def port(text: str) -> TcpOrSwitchPort:
    """A TCP port (``5001``) or a switch's (``1:3`` or ``0000000000000001:3``)."""
    found = re.fullmatch(r"(?:([0-9a-fA-F]{1,16}):)?([0-9]{1,10})", text)
    if found is None:
        raise ValueError(f"{quoted(text)} is neither a TCP port nor DPID:PORT")
    dpid, number = found[1], int(found[2])
    if dpid is not None:
        return f"{int(dpid, 16):016x}", number
    if number > 0xFFFF:
        raise ValueError(f"{number} is more than 65535")
    return number


def parse(path: str, parameters: tuple[Parameter, ...], text: str) -> Query:
    """The query string of ``path`` as its parameters have it. Raises :class:`Refused` with 400."""
    known = {parameter.name: parameter for parameter in parameters}
    values = {name: parameter.default for name, parameter in known.items()}
    given: set[str] = set()
    try:
        # One more than there can be: repeated ones get their own complaint, thousands get this one.
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=len(known) + 32)
    except UnicodeDecodeError:
        raise Refused(HTTPStatus.BAD_REQUEST, "the query is not UTF-8") from None
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, "the query has too many parameters") from None
    for name, value in pairs:
        if name not in known:
            there = f"known are {', '.join(known)}" if known else f"{path} takes none"
            raise Refused(HTTPStatus.BAD_REQUEST, f"unknown parameter {quoted(name)}: {there}")
        if name in given:
            raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: given more than once")
        given.add(name)
        try:
            values[name] = known[name].parse(value)
        except ValueError as error:
            raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: {error}") from None
    return values
