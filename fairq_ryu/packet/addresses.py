"""IP addresses as text and as bytes: the same come all the time, and ``ipaddress`` takes a while."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=8192)
def text(packed: bytes) -> str:
    """As text. Raises ValueError for a length that is neither of IPv4 nor of IPv6."""
    return str(ipaddress.ip_address(packed))


@lru_cache(maxsize=8192)
def packed(address: str) -> bytes:
    """As bytes. Raises ValueError for what is no address."""
    return ipaddress.ip_address(address).packed
