"""``ryu-manager fairq_ryu.apps.codel``: the controller with the policy CoDel."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class CodelApp(Controller):
    """CoDel (:mod:`fairq_ryu.policies.queue_peers`)."""

    policy_name = "codel"
