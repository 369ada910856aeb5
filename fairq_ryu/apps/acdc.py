"""``ryu-manager fairq_ryu.apps.acdc``: the controller with the policy AC/DC."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class AcdcApp(Controller):
    """AC/DC (:mod:`fairq_ryu.laws.acdc`)."""

    policy_name = "acdc"
