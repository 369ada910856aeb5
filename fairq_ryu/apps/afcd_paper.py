"""``ryu-manager fairq_ryu.apps.afcd_paper``: the controller with the policy AFCD as published."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class AfcdPaperApp(Controller):
    """AFCD as published (:mod:`fairq_ryu.laws.afcd`)."""

    policy_name = "afcd-paper"
