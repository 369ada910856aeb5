"""``ryu-manager fairq_ryu.apps.tenants``: the controller with the policy of tenants."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class TenantsApp(Controller):
    """Tenants (:mod:`fairq_ryu.laws.tenants`)."""

    policy_name = "tenants"
