"""Baselines: policies with changed host settings, or with a qdisc of the kernel at the bottleneck, for
comparison with other policies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import cycle
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.kernel_qdiscs import DEFAULTS, QDISCS, KernelQdisc
from fairq_ryu.experiments.settings import Scenario, belongs
from fairq_ryu.policies import base
from fairq_ryu.setting import Value


@dataclass(frozen=True)
class Baseline:
    """A name for ``--policy``: a policy, the settings of the scenario and of the policy that it replaces, and
    the qdisc of its shallow ports (None: a FIFO).
    """

    policy: str
    help: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    qdisc: KernelQdisc | None = None
    kernel_control: bool = False
    """the hosts' congestion control must be the kernel's"""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    """the settings of the policy"""
    buffer_times: int = 1
    """how many times the scenario's buffer the buffer is"""
    coupled: str = ""
    """the control that couples the flows of each host; where there are tenants, other senders keep theirs"""

    @property
    def changes(self) -> dict[str, Any]:
        """What it changes of the scenario, for people."""
        return {**self.settings, **({"cc": self.coupled} if self.coupled else {})}

    def applied(self, scenario: Scenario) -> Scenario:
        """The scenario with the baseline's settings. `UserError` if its topology does not have them."""
        for each in fields(scenario):
            if each.name in self.settings and not belongs(each, scenario.topology):
                raise UserError(
                    f"policy {self.policy} with {each.name} = {self.settings[each.name]}: topology "
                    f"{scenario.topology} has no setting {each.name}",
                    f"leave it out, or choose a scenario with topology {each.metadata['topologies'][0]}",
                )
        settings = {**self.settings, **self._coupling(scenario)}
        return replace(scenario, buffer_bytes=scenario.buffer_bytes * self.buffer_times, **settings)

    def _coupling(self, scenario: Scenario) -> dict[str, Any]:
        if not self.coupled:
            return {}
        owned = {host for hosts in scenario.tenants.values() for host in hosts}
        senders = scenario.plan.senders(scenario.senders)
        if owned.issuperset(senders) or not owned:
            return {"cc": self.coupled, "sender_cc": ()}
        others = scenario.sender_cc or (scenario.cc,)
        controls = zip(senders, cycle(others), strict=False)
        return {"sender_cc": tuple(self.coupled if host in owned else own for host, own in controls)}


def _coupled(control: str, words: str) -> Baseline:
    """The flows of each host share the window of one flow."""
    return Baseline(
        "droptail",
        f"DropTail, and the flows of each host behave together as one of {words} (ctrlTCP)",
        coupled=control,
    )


def _marking(control: str, words: str, kernel: bool = False) -> Baseline:
    """Ports mark packets above a threshold, and every host runs this congestion control."""
    return Baseline(
        "mark",
        f"{words}: bottleneck ports mark packets above a threshold, and every host runs it",
        {"cc": control, "sender_cc": ()},
        kernel_control=kernel,
    )


def _begins_with(segments: int) -> Baseline:
    """Hosts begin with a smaller window than the kernel's 10 segments."""
    return Baseline(
        "droptail",
        f"DropTail, and connections begin with {segments} segments, by the routes of every host",
        {"initcwnd": segments},
    )


def _deeper(times: int) -> Baseline:
    """A larger buffer."""
    return Baseline("droptail", f"DropTail with {times} times the buffer", buffer_times=times)


def _shaped(policy: str, words: str, percent: int) -> Baseline:
    """The ports behind a switch that is not ours are slower than its own."""
    return Baseline(
        policy,
        f"{words} at the receiver's port, shaped to {percent} % of the port above, which has no far queue",
        {"shaped": percent / 100},
    )


def _ecn(policy: str, words: str) -> Baseline:
    """The queue marks where it would drop, and hosts ask for that; they keep their congestion control."""
    return Baseline(
        policy,
        f"{words} that marks instead of dropping, and every host asks for ECN",
        {"ecn": True},
        parameters={"ecn": True},
    )


def _queue(kind: str, words: str) -> Baseline:
    """Windows as they are, and a qdisc of the kernel at every shallow port."""
    return Baseline("droptail", f"{words}, of the kernel, at the bottleneck", qdisc=QDISCS[kind])


def _default_queue(kind: str, words: str) -> Baseline:
    """The same with the buffer that the kernel gives it."""
    return Baseline("droptail", f"the same with its own buffer: {words}", qdisc=DEFAULTS[kind])


BASELINES = {
    "droptail-rto5": Baseline(
        "droptail",
        "DropTail, and every host has a minimum retransmission timeout of 5 ms",
        {"rto_min_ms": 5.0},
    ),
    "droptail-iw2": _begins_with(2),
    "droptail-iw4": _begins_with(4),
    "droptail-clamp": Baseline(
        "droptail",
        "DropTail, and every connection has a receive buffer of 6,000 bytes: a window of two segments",
        {"receive_buffer": 6000},
    ),
    "droptail-x2": _deeper(2),
    "droptail-x4": _deeper(4),
    "droptail-x16": _deeper(16),
    "droptail-shared": Baseline(
        "droptail",
        "DropTail in a memory of 8 times the buffer, which the ports of a switch share by dynamic thresholds",
        {"shared_buffer": True},
        buffer_times=8,
    ),
    "fairq-shaped95": _shaped("fairq", "FairQ", 95),
    "fairq-shaped98": _shaped("fairq", "FairQ", 98),
    "las-shaped95": _shaped("las", "LAS", 95),
    "droptail-bbr": Baseline(
        "droptail",
        "DropTail, and every host runs BBR of the kernel",
        {"cc": "bbr", "sender_cc": ()},
        kernel_control=True,
    ),
    "red-ecn": _ecn("red", "RED"),
    "codel-ecn": _ecn("codel", "CoDel"),
    "droptail-dctcp": Baseline(
        "droptail",
        "DropTail, and every host runs DCTCP, although nothing marks packets",
        {"cc": "dctcp", "sender_cc": ()},
    ),
    "droptail-ctrl-reno": _coupled("ctrl_reno", "Reno"),
    "droptail-ctrl-cubic": _coupled("ctrl_cubic", "CUBIC"),
    "mark-dctcp": _marking("dctcp", "DCTCP"),
    "mark-dctcp-rto5": replace(
        _marking("dctcp", "DCTCP with a minimum retransmission timeout of 5 ms"),
        settings={"cc": "dctcp", "sender_cc": (), "rto_min_ms": 5.0},
    ),
    "mark-d2tcp": _marking("d2tcp", "D2TCP"),
    "kernel-dctcp": _marking("dctcp", "DCTCP of the kernel", kernel=True),
    "ebpf-dctcp": _marking("fairq_dctcp", "DCTCP of this project, also where the kernel has its own"),
    "fq_codel": _queue("fq_codel", "FQ-CoDel: a queue for each flow, and CoDel"),
    "fq_codel-default": _default_queue("fq_codel", "10,240 packets"),
    "cake": _queue("cake", "CAKE: fair to hosts and flows, CoDel and BLUE; it shapes by itself"),
    "cake-default": _default_queue("cake", "4 MiB of memory, above 84 Mbit/s what leaves in 0.4 s"),
    "fq": _queue("fq", "fq: a queue for each flow"),
    "fq-default": _default_queue("fq", "10,000 packets, 100 of a flow"),
    "pie": _queue("pie", "PIE: proportional integral controller of the delay"),
    "pie-default": _default_queue("pie", "1,000 packets"),
    "kernel-red": _queue("red", "RED with the settings of the policy red"),
    "kernel-codel": _queue("codel", "CoDel with the settings of the policy codel"),
    "kernel-sfb": _queue("sfb", "SFB with the settings of the policy sfb"),
}
"""By name. An operator would first try a shorter timeout, which needs access to every host."""


def of(name: str) -> Baseline:
    """The baseline of this name; any other name is a policy without changed settings."""
    return BASELINES.get(name) or Baseline(name)


_FOR_COMPARISON = frozenset({"codel", "droptail", "fixed", "mark", "red", "sfb"})
"""Policies of this package with which ours are compared."""


def is_ours(name: str) -> bool:
    """Whether a policy of a run, its brackets included, is a law of this package and no rival."""
    # By the entry points: nothing is loaded, so a broken policy costs no table.
    own = {entry.name for entry in base.installed() if base.is_own(entry)}
    return of(name.partition("[")[0].strip()).policy in own - _FOR_COMPARISON
