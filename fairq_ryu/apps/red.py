"""``ryu-manager fairq_ryu.apps.red``: the controller with the policy RED."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class RedApp(Controller):
    """RED (:mod:`fairq_ryu.laws.red`)."""

    policy_name = "red"
