"""``ryu-manager fairq_ryu.apps.rsed_paper``: the controller with the policy RSED as published."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class RsedPaperApp(Controller):
    """RSED as published (:mod:`fairq_ryu.laws.rsed_paper`)."""

    policy_name = "rsed-paper"
