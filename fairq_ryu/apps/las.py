"""``ryu-manager fairq_ryu.apps.las``: the controller with the policy LAS."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class LasApp(Controller):
    """LAS (:mod:`fairq_ryu.laws.las`)."""

    policy_name = "las"
