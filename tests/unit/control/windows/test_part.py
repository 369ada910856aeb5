"""The window controller calls the hooks of its parts, and sends what they return."""

from __future__ import annotations

from typing import Any

from fairq_ryu.channel import oxm, segment_counts
from fairq_ryu.channel.description import Description
from fairq_ryu.channel.queue_depth import QueueDepth
from fairq_ryu.control.windows.part import WindowPart
from fairq_ryu.model import PortKey
from fairq_ryu.policies.choice import PolicyChoice
from tests.support.flownet import B
from tests.support.site import Site


class Part(WindowPart):
    """It notes the calls. ``answer``: what it returns for a reading of a queue."""

    def __init__(self, name: str, calls: list[Any], answer: Any) -> None:
        self.name, self.calls, self.answer = name, calls, answer

    def agent_connected(self, dpid: int) -> None:
        self.calls.append((self.name, "connected", dpid))

    def agent_disconnected(self, dpid: int) -> None:
        self.calls.append((self.name, "disconnected", dpid))

    def queue_read(self, link: Any, key: PortKey, sample: Any, now: float) -> list[Any]:
        self.calls.append((self.name, "read", key, sample.backlog, now))
        return [self.answer]

    def policies_changed(self, ports: Any) -> None:
        self.calls.append((self.name, "policies", sorted(ports)))

    def port_removed(self, key: PortKey) -> None:
        self.calls.append((self.name, "removed", key))


def test_every_part_is_called_in_order_and_its_messages_are_sent():
    site = Site()
    answers = [segment_counts.request(site.agent) for _ in range(2)]
    calls: list[Any] = []
    site.windows._parts = tuple(Part(*each) for each in zip("xy", (calls, calls), answers, strict=True))
    site.windows.queues_read(site.link, [QueueDepth(B.port, 0, 7, 7, 1000, 0, 0, 0, 0)], 1.0)
    assert [each for each in site.agent.sent if each in answers] == answers
    site.windows.use(PolicyChoice(site.windows.engine.policy))
    site.windows.port_removed(B)
    site.windows.agent_disconnected(site.link)
    site.windows.agent_connected(site.agent, Description("s1"))
    dpid = oxm.bridge_dpid(site.agent.id)
    whats: list[tuple[Any, ...]] = [
        ("read", B, 7, 1.0),
        ("policies", [B]),
        ("removed", B),
        ("disconnected", dpid),
        ("connected", dpid),
    ]
    assert calls == [(name, *what) for what in whats for name in "xy"]


def test_a_part_that_has_no_hooks_does_nothing():
    site = Site()
    part = WindowPart()
    part.agent_connected(1)
    part.policies_changed([B])
    part.port_removed(B)
    part.agent_disconnected(1)
    sample: Any = None
    assert not list(part.queue_read(site.link, B, sample, 1.0))
