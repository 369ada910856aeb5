"""``ryu-manager fairq_ryu.apps.afq_paper``: the controller with the policy AFQ as published."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class AfqPaperApp(Controller):
    """AFQ as published (:mod:`fairq_ryu.laws.afq`)."""

    policy_name = "afq-paper"
