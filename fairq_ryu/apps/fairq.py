"""``ryu-manager fairq_ryu.apps.fairq``: the controller with the policy FairQ."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class FairQApp(Controller):
    """FairQ (:mod:`fairq_ryu.laws.fairq`)."""

    policy_name = "fairq"
