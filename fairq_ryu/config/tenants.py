"""Section ``[tenant.NAME]``: the hosts of a tenant, and its weight."""

from __future__ import annotations

from collections.abc import Mapping

from fairq_ryu.setting import Setting, Value, read_value
from fairq_ryu.tenants import MOST_WEIGHT, Tenant, read_tenant

TENANT = "tenant."

TENANT_SETTINGS: tuple[Setting, ...] = (
    Setting("tenant.NAME", "hosts", "", "", "IP addresses and networks of the tenant, separated by spaces."),
    Setting(
        "tenant.NAME",
        "weight",
        1,
        "",
        "Its part of a port is this divided by the sum over the tenants that send there.",
        1,
        MOST_WEIGHT,
    ),
)
_BY_NAME = {setting.name: setting for setting in TENANT_SETTINGS}


def read_tenant_section(where: str, section: str, lines: Mapping[str, str]) -> Tenant:
    """The tenant of a section ``[tenant.NAME]``. Raises :class:`UserError`."""
    values: dict[str, Value] = {name: setting.default for name, setting in _BY_NAME.items()}
    values |= {name: read_value(where, _BY_NAME, section, name, text) for name, text in lines.items()}
    name = section.removeprefix(TENANT)
    return read_tenant(f"{where}: [{section}]", name, str(values["hosts"]).split(), values["weight"])
