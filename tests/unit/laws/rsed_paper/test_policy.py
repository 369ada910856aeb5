"""The policy rsed-paper: SED's windows, and the packet-loss message of Fig. 7.

What becomes of a message is tested with the controller (control/windows/test_window_controller_injection.py),
when duplicates are sent with fabric/recovery, and what they contain with packet/tcp_build.
"""

from __future__ import annotations

from fairq_ryu.config.loader import Config
from fairq_ryu.laws.rsed_paper.algorithm import ON_PACKET_LOSS
from fairq_ryu.laws.rsed_paper.policy import RsedPaper
from fairq_ryu.laws.sed_paper.policy import SedPaper, SedPaperParameters
from fairq_ryu.model import Congestion, FlowKey, PortKey, QueueSample, Thresholds, WindowPlan
from fairq_ryu.policies import base
from fairq_ryu.policies.choice import make
from tests.support.fakes import info

PORT = PortKey(1, 1)
DATA = FlowKey("10.0.0.1", "10.0.0.2", 1, 80)


def test_it_is_sed_with_packet_loss_messages() -> None:
    policy = RsedPaper(Config({("sed-paper", "threshold"): 0.5}).section("rsed-paper"))
    assert policy.parameters == SedPaperParameters(threshold=0.5, rtt=0.001)
    assert isinstance(policy, SedPaper) and base.find("rsed-paper") is RsedPaper
    law = policy.port_law(PORT)
    law.queue_sampled(QueueSample(0, 0, 100_000, 10_000_000, 0, 0, 0), 0, 0.0)
    assert law.thresholds() == Thresholds(50_000, 49_999, drops=True)
    law.flow_started(info(DATA, 1000), 1, 0.0)
    assert law.congestion(Congestion.CNG, 50_000, 0.1) == WindowPlan(flows={DATA: 60_000})


def test_the_controller_sends_three_duplicates_and_nothing_else() -> None:
    recovery = base.recovery_of(make("rsed-paper", Config()))
    assert recovery is not None and recovery is ON_PACKET_LOSS
    assert (recovery.dupack, recovery.reinject, recovery.by_agent) == (True, False, False)


def test_the_settings_are_those_of_sed() -> None:
    assert RsedPaper.settings is SedPaper.settings
