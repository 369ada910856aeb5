"""``ryu-manager fairq_ryu.apps.fairq``: the controller with the policy LAS."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class LASApp(Controller):
    """LAS (:mod:`X`)."""

    policy_name = "las"
