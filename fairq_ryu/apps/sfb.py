"""``ryu-manager fairq_ryu.apps.sfb``: the controller with the policy SFB."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class SfbApp(Controller):
    """SFB (:mod:`fairq_ryu.laws.sfb`)."""

    policy_name = "sfb"
