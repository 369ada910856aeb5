"""The types of the REST interface's models: text with a format, and fields with unit and meaning.

The models check requests and describe answers. Answers are not checked with them when they are sent, because
that would take longer than to make them; tests check them.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema

from fairq_ryu.model import dpid_text

# The maximum number of characters of a request that an answer quotes.
_QUOTED = 60


def quoted(text: object) -> str:
    """Text of the request, shortened and quoted for an answer."""
    whole = text if isinstance(text, str) else repr(text)
    shown = whole if len(whole) <= _QUOTED else whole[:_QUOTED] + "..."
    return repr(shown) if isinstance(text, str) else shown


class Row(BaseModel):
    """A model of an answer."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RequestModel(BaseModel):
    """A model of the parameters or the body of a request. Unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def described(help: str, unit: str = "", **more: Any) -> Any:
    """A field with its meaning and its unit, which the documents contain."""
    return Field(description=help, json_schema_extra={"x-unit": unit} if unit else None, **more)


# Types of answers

Dpid = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
PortNumber = Annotated[int, Field(ge=0, le=0xFFFFFFFF)]
TcpPort = Annotated[int, Field(ge=0, le=0xFFFF)]
Count = Annotated[int, Field(ge=0)]
Span = Annotated[float, Field(ge=0)]
# A port of a switch. A list, because JSON has no tuples and rows are checked before they are encoded.
PortOf = Annotated[
    list[Any],
    BeforeValidator(lambda pair: _port_of(pair)),
    WithJsonSchema(
        {
            "type": "array",
            "prefixItems": [
                {"type": "string", "pattern": "^[0-9a-f]{16}$"},
                {"type": "integer", "minimum": 0},
            ],
            "minItems": 2,
            "maxItems": 2,
            "description": "a port of a switch: dpid and number",
        }
    ),
]


def _port_of(pair: Any) -> Any:
    if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and type(pair[1]) is int):
        raise ValueError("not a dpid and a number")
    if not re.fullmatch("[0-9a-f]{16}", pair[0]):
        raise ValueError("not a dpid of 16 hexadecimal digits")
    return pair


class FlowRef(Row):
    """A direction of a connection."""

    src: str = described("IP address that sends the data")
    dst: str = described("IP address that receives it")
    sport: TcpPort = described("TCP port of `src`")
    dport: TcpPort = described("TCP port of `dst`")
    vlan: Count = described("VLAN of the connection; 0: none")


# Types of requests


def _digits(text: Any) -> int:
    # pydantic alone would accept spaces, signs, underscores and the digits of other scripts.
    if isinstance(text, int):
        return text
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise ValueError(f"{quoted(text)} is not a whole number")
    return int(text)


def _whole(number: Any) -> Any:
    # JSON has one type of number, so 5001.0 is a whole number.
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _address(text: Any) -> str:
    try:
        if not isinstance(text, str):  # ip_address would accept numbers
            raise ValueError
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{quoted(text)} is not an IP address") from None


# A whole number from the text of a query or a path.
Digits = BeforeValidator(_digits)
# A whole number from a number in a JSON body.
Whole = BeforeValidator(_whole)
# An IP address in the controller's format.
Address = Annotated[
    str,
    BeforeValidator(_address),
    WithJsonSchema({"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}),
]

_PORT = (
    r"[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
    r"|[0-9a-fA-F]{1,16}:[0-9]{1,10}"
)
TcpOrSwitchPort = int | tuple[str, int]


def _port(text: Any) -> str:
    if not isinstance(text, str) or not re.fullmatch(_PORT, text):
        raise ValueError(f"{quoted(text)} is neither a TCP port (0 to 65535) nor DPID:PORT")
    return text


PortText = Annotated[
    str, BeforeValidator(_port), WithJsonSchema({"type": "string", "pattern": f"^({_PORT})$"})
]


def port_of(text: str) -> TcpOrSwitchPort:
    """A TCP port (``5001``) or a port of a switch (``1:3`` or ``0000000000000001:3``), from a
    :data:`PortText`.
    """
    dpid, sign, number = text.rpartition(":")
    return (dpid_text(int(dpid, 16)), int(number)) if sign else int(number)
