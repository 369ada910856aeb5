"""``ryu-manager fairq_ryu.apps.sed_paper``: the controller with the policy SED as published."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class SedPaperApp(Controller):
    """SED as published (:mod:`fairq_ryu.laws.sed_paper`)."""

    policy_name = "sed-paper"
