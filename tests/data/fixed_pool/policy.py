"""A fixed pool of ``alpha`` times the buffer, in the switch where possible."""

from fairq_ryu.law_spec import LawKind, LawSpec
from fairq_ryu.model import NO_WINDOWS, WindowPlan
from fairq_ryu.policies.base import PortLaw
from fairq_ryu.setting import Setting


class FixedPoolPort(PortLaw):
    """The same law in the controller, for ports where the switch cannot run it."""

    def __init__(self, alpha):
        self.alpha = alpha

    def queue_sampled(self, sample, flows, now):
        return WindowPlan(pool=int(self.alpha * sample.limit)) if sample.limit else NO_WINDOWS


class FixedPool:
    name = "fixedpool"
    interval = 0.1
    settings = (Setting("fixedpool", "alpha", 0.5, "", "The pool as a fraction of the buffer.", 0.01, 1),)

    def __init__(self, parameters):
        self.parameters = dict(parameters)

    def switch_law(self, port):
        return LawSpec(LawKind.FIXED_POOL, target_ppm=round(self.parameters["alpha"] * 1e6))

    def port_law(self, port):
        return FixedPoolPort(self.parameters["alpha"])
