"""Sections ``[ports]`` and ``[modes]``: the policies and the modes of ports, by pattern."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fairq_ryu.errors import UserError
from fairq_ryu.model import PortMode

PORTS, MODES = "ports", "modes"
ROLES = ("role:host", "role:link")
BRIDGE, POLICY = "bridge:", "policy:"
SETTABLE_MODES = (PortMode.ACT, PortMode.OBSERVE)
_PREFIXES = ("role:", BRIDGE, POLICY)


def read_ports(
    where: str, lines: Mapping[str, str], policies: Collection[str]
) -> tuple[tuple[str, str], ...]:
    """The ``pattern = policy`` lines of section ``[ports]``, in order. Raises :class:`UserError`."""
    for pattern, policy in lines.items():
        if pattern.partition(":")[0] == "role" and pattern not in ROLES:
            raise UserError(
                f"{where}: [ports] {pattern} = {policy}: there is no such role",
                f"write {' or '.join(ROLES)}, or a pattern on the interface's name",
            )
        _refuse_prefix(where, PORTS, pattern, "role:")
        if policy not in policies:
            raise UserError(
                f"{where}: [ports] {pattern}: there is no policy {policy!r}",
                f"known are {', '.join(policies)}",
            )
    return tuple(lines.items())


def read_modes(
    where: str, lines: Mapping[str, str], policies: Collection[str]
) -> tuple[tuple[str, PortMode], ...]:
    """The ``pattern = mode`` lines of section ``[modes]``, in order. Raises :class:`UserError`."""
    found = []
    for pattern, mode in lines.items():
        _refuse_prefix(where, MODES, pattern, BRIDGE, POLICY)
        if pattern.startswith(POLICY) and pattern.removeprefix(POLICY) not in policies:
            raise UserError(
                f"{where}: [modes] {pattern}: there is no policy {pattern.removeprefix(POLICY)!r}",
                f"known are {', '.join(policies)}",
            )
        if mode not in SETTABLE_MODES:
            raise UserError(
                f"{where}: [modes] {pattern}: there is no mode {mode!r}",
                f"write {' or '.join(SETTABLE_MODES)}",
            )
        found.append((pattern, PortMode(mode)))
    return tuple(found)


def _refuse_prefix(where: str, section: str, pattern: str, *allowed: str) -> None:
    """Raise :class:`UserError` for a kind of pattern that this section does not have."""
    for prefix in _PREFIXES:
        if prefix not in allowed and pattern.startswith(prefix):
            kinds = " or ".join(f"{each}NAME" for each in allowed)
            raise UserError(
                f"{where}: [{section}] has no patterns that begin with {prefix}",
                f"write {kinds}, or a pattern on the interface's name",
            )
