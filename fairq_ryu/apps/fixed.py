"""``ryu-manager fairq_ryu.apps.fixed``: the controller with the policy Fixed."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class FixedApp(Controller):
    """Fixed (:mod:`fairq_ryu.laws.fixed`)."""

    policy_name = "fixed"
