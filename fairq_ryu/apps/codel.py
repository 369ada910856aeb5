"""``ryu-manager fairq_ryu.apps.codel``: the controller with the policy CoDel."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class CodelApp(Controller):
    """CoDel (:mod:`fairq_ryu.laws.codel`)."""

    policy_name = "codel"
