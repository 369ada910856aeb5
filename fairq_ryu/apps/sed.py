"""``ryu-manager fairq_ryu.apps.sed``: the controller with the policy SED."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class SedApp(Controller):
    """SED (:mod:`fairq_ryu.laws.sed`)."""

    policy_name = "sed"
