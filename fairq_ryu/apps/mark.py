"""``ryu-manager fairq_ryu.apps.mark``: the controller with the policy step marking."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class MarkApp(Controller):
    """Step marking (:mod:`fairq_ryu.laws.mark`)."""

    policy_name = "mark"
