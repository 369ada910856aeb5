"""The tenants of a running controller: reading what they have, adding, changing and removing them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.model import dpid_text
from fairq_ryu.tenants import OTHERS, Tenant, read_tenant


@dataclass(eq=False)
class TenantOperations:
    """Changes last until the controller ends, and are not written to a file."""

    windows: WindowController
    report: Callable[[Occurrence], object]
    log: logging.Logger

    def rows(self) -> list[dict[str, Any]]:
        """As :func:`tenant_rows`."""
        return tenant_rows(self.windows)

    def row(self, name: str) -> dict[str, Any] | None:
        """One tenant; None: there is none of this name."""
        return next((row for row in self.rows() if row["name"] == name), None)

    def put(self, name: str, hosts: Iterable[str], weight: int) -> bool:
        """Add a tenant, or change it. Returns whether it is new. Raises :class:`UserError`, and changes
        nothing then.
        """
        tenant = read_tenant(f"tenant {name}", name, hosts, weight)
        new = self.windows.tenants.put(tenant)
        listed = " ".join(map(str, tenant.hosts))
        self._tell(f"tenant {name}: {'added' if new else 'changed'}, weight {weight}, hosts {listed}")
        return new

    def remove(self, name: str) -> bool:
        """Remove a tenant. False if there is none of this name."""
        removed = self.windows.tenants.remove(name)
        if removed:
            self._tell(f"tenant {name}: removed")
        return removed

    def _tell(self, words: str) -> None:
        self.log.info("REST: %s", words)
        self.report(Occurrence(Kind.POLICY, words))


def tenant_rows(windows: WindowController) -> list[dict[str, Any]]:
    """The tenants by name, and last the one of all other hosts."""
    return [_row(windows, each) for each in (*windows.tenants.tenants(), Tenant(OTHERS, ()))]


def _row(windows: WindowController, tenant: Tenant) -> dict[str, Any]:
    shares = windows.tenants.shares(tenant.name)
    ports = [
        {
            "dpid": dpid_text(port.dpid),
            "port": port.port,
            "name": windows.inventory.name(port),
            "flows": found.flows,
            "goodput_bps": round(found.goodput * 8),
            "share": round(found.share, 4),
            "pool_bytes": found.pool,
            "bytes": found.bytes,
            "acks": found.acks,
            "floor_broken": found.floored,
        }
        for port, found in shares.items()
    ]
    return {
        "name": tenant.name,
        "hosts": [str(each) for each in tenant.hosts],
        "weight": tenant.weight,
        "flows": sum(each["flows"] for each in ports),
        "goodput_bps": sum(each["goodput_bps"] for each in ports),
        "bytes": sum(each["bytes"] for each in ports),
        "floor_broken": sum(each["floor_broken"] for each in ports),
        "ports": ports,
    }
