"""``ryu-manager fairq_ryu.apps.relay``: the controller with the policy Relay."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class RelayApp(Controller):
    """Relay (:mod:`fairq_ryu.laws.relay`)."""

    policy_name = "relay"
