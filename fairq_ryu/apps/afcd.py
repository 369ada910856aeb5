"""``ryu-manager fairq_ryu.apps.afcd``: the controller with the policy AFCD."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class AfcdApp(Controller):
    """AFCD (:mod:`fairq_ryu.laws.afcd`)."""

    policy_name = "afcd"
