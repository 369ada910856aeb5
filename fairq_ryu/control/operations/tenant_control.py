"""The tenants of a running controller: reading what they have, adding, changing and removing them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fairq_ryu.control.operations.requests import WRONG, Key, Requests
from fairq_ryu.control.reports.events import Kind, Occurrence
from fairq_ryu.control.windows.window_controller import WindowController
from fairq_ryu.errors import UserError
from fairq_ryu.model import dpid_text
from fairq_ryu.tenants import OTHERS, Tenant, check, read_tenant

_TENANT = "tenant"


@dataclass(eq=False)
class TenantOperations:
    """``requests`` has the changes, which are not written to a file."""

    windows: WindowController
    requests: Requests
    report: Callable[[Occurrence], object]
    log: logging.Logger

    def __post_init__(self) -> None:
        self._first = {each.name: each for each in self.windows.tenants.tenants()}
        self.requests.follow(_TENANT, self._requested)

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
        before = {each.name: each for each in self.windows.tenants.tenants()}
        check((before | {name: tenant}).values())
        value = {"hosts": [str(each) for each in tenant.hosts], "weight": weight}
        self.requests.store({Key(_TENANT, name): value})
        return name not in before

    def remove(self, name: str) -> bool:
        """Remove a tenant. False if there is none of this name."""
        if name not in (each.name for each in self.windows.tenants.tenants()):
            return False
        # One of the configuration must be remembered as removed.
        self.requests.store({Key(_TENANT, name): {} if name in self._first else None})
        return True

    def _requested(self, names: Iterable[str]) -> None:
        """Tenants are others than before."""
        tenants, wanted = self.windows.tenants, self.requests.of(_TENANT)
        there = {each.name: each for each in tenants.tenants()}
        found: dict[str, Tenant | None] = {}
        for name in sorted(names):
            value = wanted.get(name)
            if value is None or value == {}:
                found[name] = self._first.get(name) if value is None else None
                continue
            try:
                found[name] = read_tenant(f"tenant {name}", name, value["hosts"], value["weight"])
            except WRONG as error:
                self.log.error("tenant %r cannot be as it was requested: %s", name, error)
        for name, tenant in found.items():
            if tenant is None and tenants.remove(name):
                self._tell(f"tenant {name}: removed")
        for name, tenant in found.items():
            if tenant is not None and there.get(name) != tenant:
                self._put(tenant)

    def _put(self, tenant: Tenant) -> None:
        try:
            new = self.windows.tenants.put(tenant)
        except UserError as error:
            # Two controllers were asked at the same time.
            self._tell(f"tenant {tenant.name}: not changed as it was requested: {error}")
            return
        listed, change = " ".join(map(str, tenant.hosts)), "added" if new else "changed"
        self._tell(f"tenant {tenant.name}: {change}, weight {tenant.weight}, hosts {listed}")

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
