"""Section ``[ports]``: the policies of ports, by pattern."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fairq_ryu.errors import UserError

PORTS = "ports"
ROLES = ("role:host", "role:link")


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
        if policy not in policies:
            raise UserError(
                f"{where}: [ports] {pattern}: there is no policy {policy!r}",
                f"known are {', '.join(policies)}",
            )
    return tuple(lines.items())
