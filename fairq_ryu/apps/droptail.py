"""``ryu-manager fairq_ryu.apps.droptail``: the controller with the policy DropTail."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class DropTailApp(Controller):
    """DropTail (:mod:`fairq_ryu.laws.droptail`)."""

    policy_name = "droptail"
