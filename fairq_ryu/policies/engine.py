"""Runs the policies: chooses one for each port, and passes events to the ports' laws.

Pure: returns rule changes, sends nothing. What happens on one port is in :mod:`.governed_port`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from fairq_ryu import model
from fairq_ryu.policies.base import (
    Policy,
    Recovery,
    recovery_of,
    renewal_interval,
    same,
    takes_announcements,
)
from fairq_ryu.policies.choice import PolicyChoice
from fairq_ryu.policies.governed_port import GovernedPort, PortView
from fairq_ryu.policies.parts.deadline_table import GifTable
from fairq_ryu.policies.switch_port import LOOK_INTERVAL

# Rules are renewed after this part of a policy's longest interval between two readings of a queue, so that a
# reading that comes a little early renews them too: the next one may be that interval later.
_EARLY = 0.9


class PolicyEngine:
    """The policies on all ports. Times in seconds of any monotonic clock."""

    def __init__(
        self,
        choice: PolicyChoice | Policy,
        lease: float,
        mode_of: Callable[[model.PortKey], model.PortMode] = lambda _: model.PortMode.ACT,
    ) -> None:
        """``lease``: lifetime of a rule in the switch, seconds; see :func:`renewal_interval`. ``mode_of``:
        the mode that a port should have now.
        """
        self._mode_of = mode_of
        self.choice = choice if isinstance(choice, PolicyChoice) else PolicyChoice(choice)
        self.lease = lease
        self.renew_after = renewal_interval(lease)
        self.look_interval = LOOK_INTERVAL
        """Time between two readings of the queues whose laws run in the switch, seconds."""
        self._ports: dict[model.PortKey, GovernedPort] = {}
        self._names: dict[model.PortKey, tuple[str, str]] = {}
        # Counts of removed ports.
        self._lapsed = self._failures = 0

    # Which policy governs which port

    @property
    def policy(self) -> Policy:
        """The policy of ports that no pattern matches."""
        return self.choice.default

    def policy_of(self, key: model.PortKey) -> Policy:
        """The policy that governs a port, or would govern it."""
        port = self._ports.get(key)
        return port.policy if port is not None else self.chosen(key)

    def recovery(self, key: model.PortKey) -> Recovery | None:
        """How the port's losses are recovered; None: not at all, as on all ports that do not act."""
        return recovery_of(self.policy_of(key)) if self.acts(key) else None

    def interval(self, key: model.PortKey) -> float:
        """Time between two readings of the port's queue, seconds."""
        port = self._ports.get(key)
        return self.chosen(key).interval if port is None else self._interval(port)

    def _interval(self, port: GovernedPort) -> float:
        return max(LOOK_INTERVAL, self.look_interval) if port.decided_in_switch else port.policy.interval

    def poll_interval(self, keys: Iterable[model.PortKey]) -> float:
        """Time between two readings of these ports' queues, seconds; without ports, the default policy's."""
        return min((self.interval(key) for key in keys), default=self.policy.interval)

    def named(self, key: model.PortKey, name: str, role: str, now: float) -> list[model.RuleChange]:
        """The port's name, and what it leads to ("host", "link"; "": not known): its policy may change."""
        self._names[key] = (name, role)
        return self._govern(key, now)

    def known_as(self, key: model.PortKey) -> tuple[str, str] | None:
        """The name and the role that :meth:`named` was told last; None: none."""
        return self._names.get(key)

    def unnamed(self, key: model.PortKey) -> None:
        """The port's switch has gone: forget the name."""
        self._names.pop(key, None)

    def use(self, choice: PolicyChoice | Policy, now: float) -> list[model.RuleChange]:
        """Change the policies. A port keeps its law and its windows if its policy stays the same
        (:func:`~fairq_ryu.policies.base.same`); otherwise no rule of its former policy stays.
        """
        self.choice = choice if isinstance(choice, PolicyChoice) else PolicyChoice(choice)
        return [change for key in list(self._ports) for change in self._govern(key, now)]

    def chosen(self, key: model.PortKey) -> Policy:
        """The policy that should govern a port."""
        return self.choice.policy(key, *self._names.get(key, ("", "")))

    def _govern(self, key: model.PortKey, now: float) -> list[model.RuleChange]:
        port = self._ports.get(key)
        chosen = self.chosen(key)
        if port is None or same(port.policy, chosen):
            return []
        ended: list[model.RuleChange] = []
        if self._mode_of(key) is not port.installed.mode:
            # No rule of the new policy before the switch has learnt the new mode: see modes_changed().
            ended = port.installed.end_mode(model.PortMode.DISABLED, port.flows, now)
        return ended + port.govern(chosen, now)

    def _port(self, key: model.PortKey) -> GovernedPort:
        port = self._ports.get(key)
        if port is None:
            port = GovernedPort(
                key,
                self.chosen(key),
                _EARLY * self.renew_after,
                self.lease,
            )
            port.installed.mode = self._mode_of(key)
            self._ports[key] = port
        return port

    # Modes

    def mode(self, key: model.PortKey) -> model.PortMode:
        """The mode of a port that is in force, or would be."""
        port = self._ports.get(key)
        return self._mode_of(key) if port is None else port.installed.mode

    def acts(self, key: model.PortKey) -> bool:
        """Whether anything may be written in packets of the port, or sent for its flows."""
        return self.mode(key) is model.PortMode.ACT

    def modes_changed(self, now: float) -> tuple[list[model.RuleChange], list[model.PortKey]]:
        """The modes that ports should have may have changed. Returns the changes that end the rules of the
        ports that have another one now, and these ports. The changes are to be sent before the switch learns
        the new modes; those of :meth:`resumed` come after.
        """
        ended: list[model.RuleChange] = []
        changed: list[model.PortKey] = []
        for key, port in self._ports.items():
            mode = self._mode_of(key)
            if mode is not port.installed.mode:
                ended += port.installed.end_mode(mode, port.flows, now)
                changed.append(key)
        return ended, changed

    def resumed(self, keys: Iterable[model.PortKey], now: float) -> list[model.RuleChange]:
        """The rules of ports that have another mode now."""
        ports = [port for key in keys if (port := self._ports.get(key)) is not None]
        return [change for port in ports for change in port.installed.changes(port.plan, port.flows, now)]

    # Events

    def flow_started(self, key: model.PortKey, flow: model.FlowInfo, now: float) -> list[model.RuleChange]:
        """A flow whose data leaves by the port has started. A known flow changes nothing."""
        return self._port(key).flow_started(flow, now)

    def flow_starts(
        self, key: model.PortKey, flow: model.FlowInfo, now: float
    ) -> tuple[list[model.RuleChange], bool]:
        """The same, and whether the port's queue should be read now: the port was idle, or needs readings
        more often than before.
        """
        port = self._port(key)
        before = self._interval(port) if port.busy() else None
        changes = port.flow_started(flow, now)
        if before is None:
            return changes, True
        # Where the switch decides, another flow changes nothing: so it is at nearly all ports.
        return changes, not port.decided_in_switch and port.policy.interval < before

    def flow_ended(self, key: model.PortKey, flow: model.FlowKey, now: float) -> list[model.RuleChange]:
        """A flow has ended. An unknown flow changes nothing."""
        port = self._ports.get(key)
        return [] if port is None else port.flow_ended(flow, now)

    def announced(
        self, key: model.PortKey, flow: model.FlowKey, announcement: model.Announcement | None, now: float
    ) -> list[model.RuleChange]:
        """A flow's size and deadline were announced, or withdrawn (None). An unknown flow changes nothing."""
        port = self._ports.get(key)
        return [] if port is None else port.announced(flow, announcement, now)

    def congestion(
        self, key: model.PortKey, state: model.Congestion, backlog: int, now: float
    ) -> list[model.RuleChange]:
        """The switch reports that the port's queue has crossed a threshold."""
        return self._port(key).congestion(state, backlog, now)

    def progressed(
        self, key: model.PortKey, flows: Mapping[model.FlowKey, model.FlowProgress], now: float
    ) -> list[model.RuleChange]:
        """The switch has reported the progress of flows. An unknown port changes nothing."""
        port = self._ports.get(key)
        return [] if port is None else port.progressed(flows, now)

    def sampled(self, key: model.PortKey, sample: model.QueueSample, now: float) -> list[model.RuleChange]:
        """The port's queue was read. An unknown port without buffer and flows stays unknown."""
        if key not in self._ports and not sample.active and not sample.limit:
            return []
        return self._port(key).sampled(sample, now)

    def port_gone(self, key: model.PortKey) -> None:
        """The port was removed, with its rules."""
        port = self._ports.pop(key, None)
        if port is not None:
            self._lapsed += port.installed.lapsed
            self._failures += port.failures

    def switches(self) -> set[int]:
        """The dpids of the switches for whose ports anything is kept."""
        return {key.dpid for key in (*self._ports, *self._names)}

    def ports_of(self, dpid: int) -> set[model.PortKey]:
        """The ports of a switch for which anything is kept."""
        return {key for key in (*self._ports, *self._names) if key.dpid == dpid}

    def switch_gone(self, dpid: int) -> int:
        """A switch's agent has gone, with its rules: they are installed again when it is back, and flows that
        were paused are woken unless they still are. Returns how many rules were installed.
        """
        counts = [port.switch_gone() for key, port in self._ports.items() if key.dpid == dpid]
        return sum(counts)

    def not_woken(self, target: model.RuleTarget) -> None:
        """A change that was to wake a flow could not be sent: the port's next changes wake it."""
        port = self._ports.get(target.port)
        if port is not None and target.flow is not None:
            port.installed.not_woken(target.flow)

    # Laws that run in the switches

    def in_switch(self, key: model.PortKey) -> bool:
        """Whether the port's law runs in the switch, or is requested there."""
        port = self._ports.get(key)
        return port is not None and port.in_switch

    def decided_in_switch(self, key: model.PortKey) -> bool:
        """Whether the port's law runs in the switch, and no window waits for the controller."""
        port = self._ports.get(key)
        return port is not None and port.decided_in_switch

    def law_missing(self, key: model.PortKey) -> str | None:
        """Why the switch does not run the law of the port's policy; None: it does, or there is none."""
        port = self._ports.get(key)
        return None if port is None else port.missing

    def law_refused(self, key: model.PortKey, reason: str, now: float) -> list[model.RuleChange]:
        """The switch does not run the port's law: the port has no windows until the queue or the policy
        changes or the agent connects again.
        """
        port = self._ports.get(key)
        return [] if port is None else port.law_refused(reason, now)

    def law_lost(self, key: model.PortKey) -> None:
        """The switch does not have the port's law any more: it is requested again with the next event."""
        port = self._ports.get(key)
        if port is not None:
            port.law_lost()

    def law_reported(self, key: model.PortKey, limiting: bool, now: float) -> list[model.RuleChange]:
        """The switch has reported whether the port's law limits every flow, because of an incast or
        congestion.
        """
        port = self._ports.get(key)
        return [] if port is None else port.law_reported(limiting, now)

    # What the laws ask of the switches

    def wants_progress(self, key: model.PortKey) -> bool:
        """Whether :meth:`progressed` should be called with the port's samples."""
        port = self._ports.get(key)
        return port is not None and port.wants_progress()

    def thresholds(self, key: model.PortKey) -> model.Thresholds | None:
        """The thresholds that the switch should have now. None: it has none and was never given any."""
        port = self._ports.get(key)
        return None if port is None else port.thresholds()

    def announcements_ignored(self) -> str | None:
        """Why announcing a flow has no effect: no policy uses sizes and deadlines. None if one does."""
        policies = self.choice.policies
        try:
            if any(takes_announcements(policy) for policy in policies):
                return None
        except Exception:  # a law of another package that fails here: what it uses is not known
            return None
        return f"the policy in force ({self._policy_names()}) ignores sizes and deadlines"

    def priorities_ignored(self) -> str | None:
        """Why announcing a priority has no effect: no policy shares by tenant. None if one does."""
        if any(getattr(policy, "by_tenant", False) for policy in self.choice.policies):
            return None
        return f"the policy in force ({self._policy_names()}) ignores priorities: tenants uses them"

    def _policy_names(self) -> str:
        return ", ".join(dict.fromkeys(policy.name for policy in self.choice.policies))

    # State of the ports

    def busy(self, key: model.PortKey) -> bool:
        """Whether the port has flows or windows."""
        port = self._ports.get(key)
        return port is not None and port.busy()

    def flows(self, key: model.PortKey) -> int:
        """The number of flows of a port."""
        port = self._ports.get(key)
        return 0 if port is None else len(port.flows)

    def view(self) -> Mapping[model.PortKey, PortView]:
        """All known ports for displays."""
        return {key: port.view() for key, port in self._ports.items()}

    def incast(self, key: model.PortKey) -> bool | None:
        """Whether the port's law shows an incast; None: it does not detect any."""
        port = self._ports.get(key)
        return None if port is None else port.incast()

    def gif(self) -> Mapping[model.PortKey, GifTable]:
        """The tables of flows by priority, of the ports whose laws show one."""
        shown = ((key, port.shown().gif) for key, port in self._ports.items())
        return {key: table for key, table in shown if table is not None}

    def missed(self, flow: model.FlowKey, now: float) -> model.PortKey | None:
        """A port whose GIF table shows that the flow has missed its deadline; None: there is none."""
        for key, port in self._ports.items():
            table = port.shown().gif if flow in port.flows else None
            entry = None if table is None else table.get(flow)
            if entry is not None and entry.missed(now):
                return key
        return None

    def installed(self, key: model.PortKey) -> int:
        """Number of rules that the switch has for a port, as far as they were sent."""
        port = self._ports.get(key)
        return 0 if port is None else len(port.installed)

    def rules(self, now: float) -> Counter[int]:
        """Number of rules whose lease has not ended, by the dpid of their switch."""
        found: Counter[int] = Counter()
        for key, port in self._ports.items():
            found[key.dpid] += port.installed.alive(now)
        return found

    @property
    def lapsed(self) -> int:
        """Number of rules that were renewed or removed after their lease had ended."""
        return self._lapsed + sum(port.installed.lapsed for port in self._ports.values())

    @property
    def failures(self) -> int:
        """Number of times that a law has failed."""
        return self._failures + sum(port.failures for port in self._ports.values())
