"""``ryu-manager fairq_ryu.apps.policy``: the controller with the policy that the configuration names."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class PolicyApp(Controller):
    """The policy of the setting ``[fairq_ryu] policy`` (:mod:`fairq_ryu.policies`)."""
