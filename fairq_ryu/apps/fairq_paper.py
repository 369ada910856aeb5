"""``ryu-manager fairq_ryu.apps.fairq_paper``: the controller with the policy FairQ as published."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class FairQPaperApp(Controller):
    """FairQ as published (:mod:`fairq_ryu.laws.fairq_paper`)."""

    policy_name = "fairq-paper"
