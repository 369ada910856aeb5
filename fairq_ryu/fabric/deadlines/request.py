"""The contents of an announcement, with their checks. Pure."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import KW_ONLY, dataclass

from fairq_ryu.model import MOST_PRIORITY

DEFAULT_TTL = 60.0
MAX_SIZE = 1 << 62
MAX_SECONDS = 86400.0
MAX_COUNT = 1_000_000
MAX_VLAN = 4095


@dataclass(frozen=True, slots=True)
class Request:
    """The contents of an announcement, checked: ``size`` in bytes, ``deadline`` in seconds after the flow's
    start, ``priority`` within its tenant, ``ttl`` in seconds; ``vlan`` 0: the flow is in no VLAN, None: it
    may be in any. Raises ValueError with the reason.
    """

    src: str
    dst: str
    dport: int
    _: KW_ONLY
    sport: int | None = None
    size: int | None = None
    deadline: float | None = None
    priority: int | None = None
    ttl: float = DEFAULT_TTL
    count: int = 1
    vlan: int | None = None

    def __post_init__(self) -> None:
        ends = [_address("src", self.src), _address("dst", self.dst)]
        if ends[0].version != ends[1].version:
            raise ValueError("src and dst are not of the same IP version")
        if ends[0] == ends[1]:
            raise ValueError("src and dst are the same: such a flow does not leave its host")
        _whole("dport", self.dport, 65535)
        if self.sport is not None:
            _whole("sport", self.sport, 65535)
        if self.vlan is not None:
            _whole("vlan", self.vlan, MAX_VLAN, least=0)
        if self.size is None and self.deadline is None and self.priority is None:
            raise ValueError("no size, deadline or priority is given: there is nothing to announce")
        if self.size is not None:
            _whole("size", self.size, MAX_SIZE)
        if self.deadline is not None:
            _seconds("deadline", self.deadline)
        if self.priority is not None:
            _whole("priority", self.priority, MOST_PRIORITY)
        _seconds("ttl", self.ttl)
        _whole("count", self.count, MAX_COUNT)
        if self.sport is not None and self.count != 1:
            raise ValueError("count is for announcements without sport: with one there is just one flow")
        # The controller compares addresses as texts: they are stored in their usual form.
        for name, address in zip(("src", "dst"), ends, strict=True):
            object.__setattr__(self, name, str(address))


def _address(name: str, text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        if not isinstance(text, str) or "%" in text:  # ip_address would accept numbers
            raise ValueError
        return ipaddress.ip_address(text)
    except ValueError:
        shown = repr(text)
        shown = shown if len(shown) <= 60 else shown[:60] + "..."
        raise ValueError(f"{name}: {shown} is not an IP address") from None


def _whole(name: str, number: int, maximum: int, least: int = 1) -> None:
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"{name}: not a whole number")
    if not least <= number <= maximum:
        raise ValueError(f"{name}: not a number from {least} to {maximum}")


def _seconds(name: str, number: float) -> None:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"{name}: not a number of seconds")
    if not (0 < number <= MAX_SECONDS and math.isfinite(number)):
        raise ValueError(f"{name}: not more than 0 and at most {MAX_SECONDS:g} seconds")
