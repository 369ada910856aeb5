"""``ryu-manager fairq_ryu.apps.iqm``: the controller with the policy IQM."""

from __future__ import annotations

from fairq_ryu.apps.controller import Controller


class IqmApp(Controller):
    """IQM (:mod:`fairq_ryu.laws.iqm`)."""

    policy_name = "iqm"
