"""Queue laws at work: which law judges the packets of which port.

The law of a port is that of its policy (``queue_law``) or else that of the policy which the setting
``queue_law`` names: so a port may have the windows of one policy and the queue law of another. A law is asked
for on every port that acts and whose queue has a known size and rate, also without flows: it judges packets
of all kinds.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.channel.window_law import RefusedLaw
from fairq_ryu.config.loader import Config
from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.control.windows.part import WindowPart
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import is_far
from fairq_ryu.laws.registry import queue_laws
from fairq_ryu.model import PortKey, PortMode, QueueSample
from fairq_ryu.openflow.pipeline import Message
from fairq_ryu.policies.base import Policy, queue_law
from fairq_ryu.policies.choice import make
from fairq_ryu.policies.engine import PolicyEngine
from fairq_ryu.queue_law_spec import QueueLawSpec

log = logging.getLogger(__name__)

# Seconds between two requests for the states of laws, which are for displays.
_LOOK_INTERVAL = 0.25


def beside(config: Config) -> Policy | None:
    """The policy whose queue law ports have if their own policy has none; None: there is none. Raises
    :class:`UserError`.
    """
    name = str(config.value("fairq_ryu", "queue_law"))
    if not name:
        return None
    policy = make(name, config)
    if queue_law(policy, PortKey(0, 0)) is None:
        raise UserError(
            f"policy {name} has no queue law, but [fairq_ryu] queue_law = {name}",
            f"name a policy that has one: {', '.join(law.name for law in queue_laws().values())}",
        )
    return policy


@dataclass(slots=True)
class _Port:
    """``policy``: whose law it is; ``queue``: buffer and rate; ``refused``: why the agent refused the law on
    this queue.
    """

    policy: Policy
    spec: QueueLawSpec
    queue: tuple[int, int]
    refused: str | None = None


class QueueLaws(WindowPart):
    """The queue laws of all agents. Times in seconds."""

    def __init__(self, engine: PolicyEngine, lease: int, beside: Policy | None) -> None:
        self._engine, self._lease, self._beside = engine, lease, beside
        self._ports: dict[int, dict[PortKey, _Port]] = {}  # by switch
        self._failed: list[Policy] = []  # whose methods have raised an error: they are not called any more

    def use(self, beside: Policy | None) -> None:
        """From now on, this policy's law is that of ports whose own policy has none (:func:`beside`)."""
        self._beside = beside

    # Events

    def queue_read(self, link: AgentLink, key: PortKey, sample: QueueSample, now: float) -> list[Message]:
        """Install, renew or remove the law of the port."""
        port = self._wanted(key, sample)
        if port is None:
            return link.queue_laws.end(key.port) if self._forget(key) else []
        if port.refused is not None:
            return []
        # The agent must know that it may write before the law does.
        messages = link.modes.ensure(key.port, PortMode.ACT)
        renew_after = 0.9 * self._engine.renew_after
        return messages + link.queue_laws.ensure(key.port, port.spec, self._lease, renew_after, now)

    def _wanted(self, key: PortKey, sample: QueueSample) -> _Port | None:
        """The law that a port should have; None: none."""
        if not self._engine.acts(key) or not sample.limit or not sample.rate:
            return None
        if is_far(key.port):
            return None  # its packets have left it
        policy = self._engine.policy_of(key)
        spec = self._law_of(policy, key)
        if spec is None and self._beside is not None:
            policy = self._beside
            spec = self._law_of(policy, key)
        if spec is None:
            return None
        known, queue = self._known(key), (sample.limit, sample.rate)
        if known is None or known.policy is not policy or known.spec != spec:
            known = _Port(policy, spec, queue)
            self._ports.setdefault(key.dpid, {})[key] = known
        elif known.queue != queue:
            known.queue, known.refused = queue, None  # on another queue, the agent may run the law
        return known

    def _known(self, key: PortKey) -> _Port | None:
        return self._ports.get(key.dpid, {}).get(key)

    def _forget(self, key: PortKey) -> bool:
        """Returns whether the port had a law."""
        return self._ports.get(key.dpid, {}).pop(key, None) is not None

    def _law_of(self, policy: Policy, key: PortKey) -> QueueLawSpec | None:
        """None also if the policy fails: others write policies, and other ports need the answer."""
        if any(each is policy for each in self._failed):
            return None
        try:
            return queue_law(policy, key)
        except Exception:
            log.exception(
                "policy %s failed on port %s: its ports have no queue law until the policy is changed",
                policy.name,
                key,
            )
            self._failed.append(policy)
            return None

    @property
    def failures(self) -> int:
        """How many policies have failed to say what queue law a port has."""
        return len(self._failed)

    def reported(self, link: AgentLink, states: Sequence[QueueLawState]) -> None:
        """An agent has reported the states of its queue laws."""
        link.queue_laws.reported(states)

    def refused(self, link: AgentLink, refused: RefusedLaw) -> str | None:
        """An agent has refused a queue law. Returns a line for the log; None: it was logged, or nobody wants
        a law there.
        """
        key = PortKey(link.dpid, refused.law)
        port = self._known(key)
        if port is None or port.refused is not None:
            return None
        if refused.others and link.queue_laws.conflict(refused.law):
            return None
        port.refused = refused.reason
        link.send(link.queue_laws.end(refused.law))
        return f"no queue law on port {refused.law}: {refused.reason}"

    def port_removed(self, key: PortKey) -> None:
        """Its law goes with it."""
        self._forget(key)

    def agent_connected(self, dpid: int) -> None:
        """What an earlier agent has refused may be accepted now."""
        self._ports.pop(dpid, None)

    def agent_disconnected(self, dpid: int) -> None:
        """Its laws end with it."""
        self._ports.pop(dpid, None)

    # Displays

    def request(self, link: AgentLink, now: float) -> list[Message]:
        """Request the states of a switch's laws, if that is due."""
        return link.queue_laws.request(_LOOK_INTERVAL, now)

    def shown(self, key: PortKey) -> tuple[QueueLawSpec | None, str | None]:
        """The law that a port should have, and why the agent does not run it; None: it does, or there is
        none.
        """
        port = self._known(key)
        return (None, None) if port is None else (port.spec, port.refused)
