"""``ryu-manager fairq_ryu.apps.rsed``: the controller with the policy RSED."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class RsedApp(Controller):
    """RSED (:mod:`fairq_ryu.laws.rsed`)."""

    policy_name = "rsed"
