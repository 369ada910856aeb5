"""Invented results of experiments for tests."""

from fairq_ryu.experiments.workloads.common.outcomes import Flow, Outcome


def once(policies):
    """A single repetition."""
    return [{"order": [each["policy"] for each in policies], "floor": None, "policies": policies}]


def outcome(ms, deadline=None, size=1000, rto=0, retrans=0):
    error = "timeout" if ms is None else None
    return Outcome(Flow(0, 0, size, 1, deadline), ms, size - 12 if ms else 0, error, retrans, rto)
