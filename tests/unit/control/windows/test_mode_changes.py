"""Modes at work: a controller and a real agent's server, without sockets and without eBPF.

What must never happen: a rule of an observed port in force while the agent does not know that it is observed.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.channel import port_mode, recovery, waking
from fairq_ryu.config.loader import Config
from fairq_ryu.control.windows.disables import Scope
from fairq_ryu.model import PortMode, Thresholds, WindowKind, WindowPlan
from fairq_ryu.policies.base import Recovery
from fairq_ryu.policies.choice import PolicyChoice
from tests.support.flownet import KEY, A, B, C
from tests.support.law_network import Network, policy
from tests.support.site import Obedient

OBSERVE = Config({("fairq_ryu", "mode"): "observe"})
ONLY_B = Config(modes=(("s1-eth2", PortMode.OBSERVE),))


class Watched(Network):
    """At every rule that is installed, and every law, the agent's modes are noted."""

    def __init__(self, chosen: Any = None, config: Config | None = None) -> None:
        self.acting: list[Any] = []
        super().__init__(chosen, config)

    def connect(self) -> None:
        super().connect()
        data = self.data
        install_rule, install_law = type(data).install_rule, type(data).install_law

        def noted_rule(target: Any, *rest: Any) -> None:
            if target == B.port and B.port not in data.observed:
                self.acting.append(target)
            install_rule(data, target, *rest)

        def noted_law(port: int, *rest: Any) -> None:
            if port == B.port and B.port not in data.observed:
                self.acting.append(port)
            install_law(data, port, *rest)

        data.install_rule, data.install_law = noted_rule, noted_law  # type: ignore[method-assign]

    def sent(self, kind: int) -> list[bytes]:
        return [
            bytes(message.data)
            for message in self.site.agent.sent
            if type(message).__name__ == "OFPExperimenter" and message.exp_type == kind
        ]

    def refuse_modes(self) -> None:
        """The agent's kernel fails to set a mode."""

        def fail(*_: Any) -> None:
            raise BpfError("cannot write")

        self.data.observe = fail  # type: ignore[method-assign]


@pytest.mark.parametrize("config", [OBSERVE, ONLY_B])
@pytest.mark.parametrize("chosen", ["fairq", "fixed"])
def test_an_observed_port_has_rules_and_the_agent_knows_before_the_first(config, chosen):
    network = Watched(policy(chosen), config)
    network.site.open(now=network.now)
    for _ in range(20):
        network.read(A, B)
    assert network.rule(B) is {"fairq": WindowKind.LAW, "fixed": WindowKind.POOL}[chosen]
    assert network.acting == []
    assert network.data.observed == ({1, 2, 3} if config is OBSERVE else {2})
    # Again with another agent, which knows nothing of it.
    network.connect()
    network.data.observed = frozenset()
    for _ in range(20):
        network.read(A, B)
    assert network.rule(B) is not None


def test_a_controller_that_dies_leaves_the_port_observed_and_one_that_acts_changes_that():
    network = Watched(config=OBSERVE)
    network.site.open(now=network.now)
    network.read(B)
    network.windows.agent_disconnected(network.site.link)
    network.server.expire_rules(2**62)
    assert network.data.observed >= {B.port} and not network.data.installed
    # Another controller, which acts, finds the mode of the one before.
    other = Network(policy())
    other.data.observed = frozenset({B.port})
    other.connect()
    other.site.open(now=other.now)
    other.read(B)
    assert other.rule(B) is WindowKind.LAW and other.data.observed == frozenset()


def test_the_name_of_the_bridge_decides_when_it_is_known():
    network = Watched(config=Config(modes=(("bridge:s2", PortMode.ACT), ("*", PortMode.OBSERVE))))
    network.site.open(now=network.now)
    network.read(B)
    assert network.rule(B) is WindowKind.LAW and network.data.observed == {1, 2, 3}
    assert network.windows.modes.bridge(1) == "s1"


def test_an_agent_that_cannot_observe_gets_no_rules_for_observed_ports(caplog):
    network = Watched(config=ONLY_B)
    network.data.observed = frozenset()
    network.refuse_modes()
    with caplog.at_level("WARNING", logger="laws"):
        network.connect()
        network.connect()
    assert len([line for line in caplog.messages if "refuses to observe" in line]) == 2
    network.site.open(now=network.now)
    for _ in range(20):
        network.read(A, B)
    assert network.rule(A) is WindowKind.LAW and network.rule(B) is None
    assert network.acting == []


def test_a_policy_of_an_observed_port_acts_only_after_the_mode_has_changed():
    """``policy:`` patterns: the rules of the new policy must not come in the mode of the old one."""
    config = Config(modes=(("policy:fixed", PortMode.OBSERVE),))
    network = Watched(policy("fairq"), config)
    network.site.open(now=network.now)
    network.read(B)
    assert network.rule(B) is WindowKind.LAW and network.data.observed == frozenset()
    network.acting.clear()
    network.windows.use(PolicyChoice(policy("fixed")))
    network.deliver()
    for _ in range(20):
        network.read(B)
    assert network.rule(B) is WindowKind.POOL
    assert network.acting == [] and network.data.observed >= {B.port}
    network.windows.use(PolicyChoice(policy("fairq")))
    network.deliver()
    for _ in range(20):
        network.read(B)
    assert network.rule(B) is WindowKind.LAW and network.data.observed == frozenset()


def test_a_port_with_another_name_has_another_mode():
    network = Watched(config=ONLY_B)
    network.site.open(now=network.now)
    network.read(B)
    assert network.data.observed == {B.port}
    link = network.site.link
    network.windows.mode_changes.port_named(link, B.port, b"tap9\0", network.now)
    network.deliver()
    network.read(B, after=1.0)
    assert network.data.observed == frozenset() and network.rule(B) is WindowKind.LAW


# What is sent in a connection's name


def thresholds_of(network: Network) -> Thresholds | None:
    return network.data.thresholds.get(B.port)


@pytest.mark.parametrize("config", [Config(), OBSERVE])
def test_recovery_and_drop_reports_only_where_the_port_acts(config):
    chosen = Obedient(recovery=Recovery(False, True, 1 << 20, 0.5))
    chosen.wanted = Thresholds(30_000, 20_000, True)
    network = Network(chosen, config)
    network.site.open(now=network.now)
    network.read(B)
    acts = config is not OBSERVE
    assert (network.server.recovery.settings(B.port) is not None) is acts
    # The recovery itself watches the drops.
    assert thresholds_of(network) == Thresholds(30_000, 20_000, acts)


def test_a_flow_that_was_only_said_to_be_paused_is_not_woken():
    chosen = Obedient()
    network = Network(chosen, OBSERVE)
    network.site.open(now=network.now)
    chosen.plan = WindowPlan(flows={KEY: 0})
    network.read(B)
    assert KEY.reversed in network.data.installed
    network.site.log.clear()
    chosen.plan = WindowPlan(flows={KEY: 3000})
    sent: list[int] = []
    network.site.agent.send_msg = lambda message: sent.append(getattr(message, "exp_type", 0))
    network.read(B)
    assert sent and waking.EXP_TYPE_WAKE not in sent


def test_a_pause_ends_with_a_window_update_when_the_port_is_disabled_or_observed():
    chosen = Obedient()
    network = Network(chosen)
    network.site.open(now=network.now)
    chosen.plan = WindowPlan(flows={KEY: 0})
    network.read(B)
    names: list[Any] = []
    network.site.agent.send_msg = lambda message: names.append(
        getattr(message, "exp_type", type(message).__name__)
    )
    network.windows.modes.disables.disable(Scope())
    network.windows.mode_changes.apply(network.now)
    # The rule goes, then its sender is told, and only then may the agent write nothing more.
    assert names == ["OFPFlowMod", waking.EXP_TYPE_WAKE, *[port_mode.EXP_TYPE_PORT_MODE] * 3]


def test_disabling_takes_rules_laws_and_recoveries_at_once_and_enabling_brings_them_back():
    network = Network(policy("rsed"))
    network.site.open(now=network.now)
    network.read(B)
    assert network.rule(B) is WindowKind.LAW and network.data.laws
    had = network.server.recovery.settings(B.port)
    disables, changes = network.windows.modes.disables, network.windows.mode_changes
    disables.disable(Scope(1, B.port))
    changes.apply(network.now)
    network.deliver()
    assert network.rule(B) is None and not network.data.laws
    assert network.server.recovery.settings(B.port) is None
    assert network.data.observed == {B.port}
    for _ in range(20):
        network.read(A, B, C)
    assert network.rule(B) is None
    assert not network.windows.engine.view()[B].plan
    disables.enable(Scope())
    changes.apply(network.now)
    network.deliver()
    assert network.rule(B) is WindowKind.LAW and network.data.observed == frozenset()
    network.read(B)
    assert network.server.recovery.settings(B.port) == had is not None


def test_a_controller_that_starts_again_knows_no_disables_and_lets_every_port_act():
    network = Network()
    network.windows.modes.disables.disable(Scope(1, B.port))
    network.windows.mode_changes.apply(network.now)
    network.deliver()
    assert network.data.observed == {B.port}
    other = Network()
    other.data.observed = network.data.observed
    other.connect()
    # Without a rule, which would bring the mode, too.
    assert other.data.observed == frozenset()


def test_the_agent_refuses_a_recovery_of_an_observed_port():
    network = Network(policy())
    network.data.observed = frozenset({2})
    wanted = recovery.SetRecovery(2, recovery.REINJECT, 1 << 20, 1000, 30_000, 2)
    message = recovery.set_recovery(network.site.agent, wanted)
    assert network.peer.refusal(message) == (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM)
    assert network.server.recovery.settings(2) is None


def test_an_error_about_a_port_that_has_just_gone_is_no_reason_to_trust_the_agent_less():
    network = Network(policy(), OBSERVE)
    message = port_mode.set_port_mode(network.site.agent, 9, port_mode.OBSERVE)
    message.xid = 5
    message.serialize()
    error = SimpleNamespace(
        datapath=network.site.agent,
        type=ofp.OFPET_BAD_REQUEST,
        code=ofp.OFPBRC_BAD_PORT,
        xid=5,
        data=bytes(message.buf)[:64],
    )
    network.refusals.refused(error)
    assert network.site.link.modes.known
