"""The far queues that a bridge should have: those of the configuration, and what controllers change in them.

What controllers have told stays until they tell otherwise or the agent ends; rates that they lease end by
themselves. Names are those of interfaces. Pure: time is an argument, in ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fairq_ryu.agent.law_objects import refused
from fairq_ryu.channel.far_queues import ERROR_FAR_QUEUE, FarQueueState, RateLease, Told
from fairq_ryu.far_queue import LEAST_RATE, MOST_RATE, FarQueue, far_name

_NS = 1_000_000_000


class FarTable:
    """``configured``: the far queues of the configuration, of whatever bridge of the agent."""

    def __init__(self, configured: Iterable[FarQueue] = ()) -> None:
        self._configured = {each.port: each for each in configured}
        self._told: Told = {}
        self._rates: Mapping[str, int] = {}
        self._rates_end_ns = 0

    @property
    def told(self) -> Told:
        """What controllers change."""
        return self._told

    @property
    def queues(self) -> dict[str, FarQueue]:
        """The far queues that ports should have now, by interface, with the rates in force."""
        return {
            port: replace(queue, leased=self._rates[port]) if port in self._rates else queue
            for port, queue in self._own().items()
        }

    def _own(self) -> dict[str, FarQueue]:
        """With their own rates."""
        own = {**self._configured, **self._told}
        return {port: queue for port, queue in own.items() if queue is not None}

    def tell(self, told: Told) -> None:
        """A controller changes this, and nothing else any more. Raises
        :class:`~fairq_ryu.channel.refusal.OpenFlowError`, and changes nothing then.
        """
        own = {port: queue for port, queue in {**self._configured, **told}.items() if queue is not None}
        named: dict[str, str] = {}
        for port in own:
            queue = told.get(port)
            wrong = queue.wrong() if queue is not None else None
            other = named.setdefault(far_name(port), port)
            if other != port:
                wrong = f"the far queues of {other} and {port} would both be {far_name(port)}"
            if wrong is not None:
                raise refused(ERROR_FAR_QUEUE, wrong)
        self._told = dict(told)

    def lease(self, lease: RateLease, now_ns: int) -> bool:
        """A controller leases rates; earlier ones end. Returns whether a rate in force has changed. Raises
        :class:`~fairq_ryu.channel.refusal.OpenFlowError`, and changes nothing then.
        """
        for port, rate in lease.rates.items():
            if not LEAST_RATE <= rate <= MOST_RATE:
                raise refused(ERROR_FAR_QUEUE, f"{port}: rate {rate} bytes/s")
        self._rates_end_ns = now_ns + lease.seconds * _NS
        return self._use(lease.rates if lease.seconds else {})

    def expire(self, now_ns: int) -> bool:
        """End the leases that are over. Returns whether a rate in force has changed."""
        return now_ns >= self._rates_end_ns and self._use({})

    def _use(self, rates: Mapping[str, int]) -> bool:
        before = self.queues
        self._rates = dict(rates)
        return self.queues != before

    def states(self, ports: Mapping[str, int]) -> list[FarQueueState]:
        """The far queues of these ports: OpenFlow numbers by interface."""
        return [
            FarQueueState(queue, port in self._told, ports[port], self._rates.get(port, 0))
            for port, queue in self._own().items()
            if port in ports
        ]
