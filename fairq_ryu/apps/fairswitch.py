"""``ryu-manager fairq_ryu.apps.fairswitch``: the controller with the policy FairSwitch."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class FairSwitchApp(Controller):
    """FairSwitch (:mod:`fairq_ryu.laws.fairswitch`)."""

    policy_name = "fairswitch"
