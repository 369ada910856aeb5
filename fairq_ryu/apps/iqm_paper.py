"""``ryu-manager fairq_ryu.apps.iqm_paper``: the controller with the policy IQM as published."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class IqmPaperApp(Controller):
    """IQM as published (:mod:`fairq_ryu.laws.iqm_paper`)."""

    policy_name = "iqm-paper"
