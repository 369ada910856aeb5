"""A fixed pool of ``alpha`` times the buffer, in the switch."""

from fairq_ryu.law_spec import LawKind, LawSpec
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from fairq_ryu.setting import Setting


class FixedPool:
    name = "fixedpool"
    interval = LOOK_INTERVAL
    settings = (Setting("fixedpool", "alpha", 0.5, "", "The pool as a fraction of the buffer.", 0.01, 1),)

    def __init__(self, parameters):
        self.parameters = dict(parameters)

    def switch_law(self, port):
        return LawSpec(LawKind.FIXED_POOL, target_ppm=round(self.parameters["alpha"] * 1e6))
