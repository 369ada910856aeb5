"""Addresses of controllers, as agents and their configuration name them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairq_ryu.errors import UserError

DEFAULT_PORT = 6653
_TARGET = re.compile(r"^(tcp|ssl):(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+))(?::([0-9]{1,5}))?$")


@dataclass(frozen=True, slots=True)
class ControllerTarget:
    """The address on which a controller listens. ``text`` is as the user wrote it."""

    text: str
    host: str
    port: int
    secure: bool


def parse_target(text: str) -> ControllerTarget:
    """A controller's address: ``tcp:HOST[:PORT]`` or ``ssl:HOST[:PORT]``. Raises :class:`UserError`."""
    match = _TARGET.match(text)
    port = int(match.group(4) or DEFAULT_PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise UserError(
            f"{text!r} is not a controller's address",
            "write tcp:127.0.0.1:6653, or ssl: for an encrypted channel",
        )
    return ControllerTarget(text, match.group(2) or match.group(3), port, match.group(1) == "ssl")


def parse_targets(text: str) -> tuple[ControllerTarget, ...]:
    """Addresses that are separated by spaces. Raises :class:`UserError` for the first that is none."""
    return tuple(map(parse_target, text.split()))
