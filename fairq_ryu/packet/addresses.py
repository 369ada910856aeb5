"""IP addresses as text and as bytes, cached: the same addresses recur, and ``ipaddress`` is slow."""

from __future__ import annotations

import ipaddress
from functools import lru_cache


@lru_cache(maxsize=8192)
def text(packed: bytes) -> str:
    """An address as text. Raises ValueError unless there are 4 or 16 bytes."""
    if len(packed) == 4:  # ipaddress takes ten times as long, and an agent may report very many hosts
        return ".".join(map(str, packed))
    return str(ipaddress.ip_address(packed))


@lru_cache(maxsize=8192)
def packed(address: str) -> bytes:
    """An address as bytes. Raises ValueError if the text is not an address."""
    return ipaddress.ip_address(address).packed


def padded(address: str) -> bytes:
    """An address as 16 bytes; IPv4 in the first 4, the rest 0."""
    return packed(address).ljust(16, b"\0")


@lru_cache(maxsize=8192)
def unpadded(field: bytes, version: int) -> str:
    """The address of an IP version in a field of 16 bytes. Raises ValueError if the version is not 4 or 6."""
    if version not in (4, 6):
        raise ValueError(f"IP version {version}")
    return text(field[:4] if version == 4 else field)
