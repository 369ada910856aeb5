"""``ryu-manager fairq_ryu.apps.afq``: the controller with the policy AFQ."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class AfqApp(Controller):
    """AFQ (:mod:`fairq_ryu.laws.afq`)."""

    policy_name = "afq"
