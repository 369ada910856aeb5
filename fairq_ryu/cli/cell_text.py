"""The text of one cell of a table: ports, addresses, sizes, rates and durations."""

from __future__ import annotations

from typing import Any


def port_text(dpid: str, number: int) -> str:
    """A port of a switch: ``1:3``, the dpid without leading zeros."""
    return f"{int(dpid, 16):x}:{number:d}"


def endpoint(address: str, port: int) -> str:
    """An end of a connection: ``10.0.0.1:80``, ``[fe80::1]:80``."""
    return f"[{address}]:{port:d}" if ":" in address else f"{address}:{port:d}"


def or_dash(number: int | None) -> str:
    """A number; ``-``: it is not known."""
    return "-" if number is None else f"{number:d}"


def size(count: int) -> str:
    """Bytes in at most five characters: 999, 1.2k, 34.5M (powers of 1000)."""
    if count < 1000:
        return f"{count:d}"
    value = float(count)
    for unit in "kMGTPE":
        value /= 1000
        # Not 100: 99.95 would be rounded to 100.0.
        if value < 99.95:
            return f"{value:.1f}{unit}"
        if value < 999.5:
            return f"{value:.0f}{unit}"
    return f"{value:.0f}{unit}"


def mbit(bps: float) -> str:
    """Bits per second as Mbit/s, with at most two digits below ten."""
    rate = bps / 1e6
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"


def span(seconds: float) -> str:
    """A duration in at most six characters: 0.3s, 59s, 12m03s, 5h07m, 12d."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d"


def place(dpid: str, port: int | None) -> str:
    """A switch, or a port of it."""
    return f"{int(dpid, 16):x}" if port is None else port_text(dpid, port)


def deadline(seconds: float) -> str:
    """A deadline, in ms if it is short: 0.8s, 25ms."""
    return f"{seconds * 1000:.3g}ms" if seconds < 0.1 else span(seconds)


def due(seconds: float | None) -> str:
    """The time until a deadline, negative when it has passed; ``-``: there is none."""
    if seconds is None:
        return "-"
    return f"-{span(-seconds)}" if seconds < 0 else span(seconds)


def field_text(name: str, value: Any) -> str:
    """Any field of an answer of the controller."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "dpid":
        return f"{int(value, 16):x}"
    if name in ("addresses", "flows"):
        return " ".join(map(str, value)) or "-"
    if isinstance(value, list):
        return port_text(*value)
    return str(value)
