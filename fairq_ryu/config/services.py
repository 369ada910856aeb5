"""Section ``[service.NAME]``: sizes and deadlines of the flows of a service."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from fairq_ryu.errors import UserError
from fairq_ryu.model import Service
from fairq_ryu.setting import Setting, Value, read_value

SERVICE = "service."

SERVICE_SETTINGS: tuple[Setting, ...] = (
    Setting("service.NAME", "port", 0, "", "The server's TCP port (0: any; then give a host).", 0, 65535),
    Setting("service.NAME", "host", "", "", "The server's IP address (empty: any)."),
    Setting("service.NAME", "size", 0, "bytes", "Size of a flow (0: not known).", 0, 1 << 50),
    Setting(
        "service.NAME",
        "deadline",
        0.0,
        "s",
        "Time by which the last byte must have arrived, counted from the start of the flow (0: no deadline).",
        0,
        86400,
    ),
    Setting(
        "service.NAME",
        "direction",
        "to-client",
        "",
        "Direction of the data: to-client or to-server.",
        choices=("to-client", "to-server"),
    ),
)
_BY_NAME = {setting.name: setting for setting in SERVICE_SETTINGS}


def read_service(where: str, section: str, lines: Mapping[str, str]) -> Service:
    """The service of a section ``[service.NAME]``. Raises :class:`UserError`."""
    values: dict[str, Value] = {name: setting.default for name, setting in _BY_NAME.items()}
    values |= {name: read_value(where, _BY_NAME, section, name, text) for name, text in lines.items()}
    if not section.removeprefix(SERVICE):
        raise UserError(f"{where}: [{section}] has no name", "write [service.NAME]")
    host = str(values["host"])
    if host:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            address = None
        if address is None or "%" in host:
            raise UserError(
                f"{where}: [{section}] host: {host!r} is not an IP address",
                "give one, without a mask and without a zone",
            )
        host = str(address)
    if not host and not values["port"]:
        raise UserError(f"{where}: [{section}] covers all flows", "give it a port or a host")
    size, deadline = int(values["size"]), float(values["deadline"])
    if not size and not deadline:
        raise UserError(f"{where}: [{section}] has neither size nor deadline", "give it a size or a deadline")
    return Service(
        name=section.removeprefix(SERVICE),
        port=int(values["port"]),
        host=host,
        size=size or None,
        deadline=deadline or None,
        to_server=values["direction"] == "to-server",
    )
