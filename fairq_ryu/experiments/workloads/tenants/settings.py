"""The settings of tenants."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.settings import setting
from fairq_ryu.experiments.workloads.common import settings as shared
from fairq_ryu.tenants import MOST_WEIGHT

MAX_FLOWS = 1000


@dataclass(frozen=True)
class TenantFlow:
    """A long flow of a tenant."""

    number: int
    """over all tenants"""
    tenant: str
    sender: str
    receiver: str
    stage: int
    """in which it starts, from 0"""


@dataclass(frozen=True, kw_only=True)
class TenantsScenario(shared.ShortScenario):
    """Long flows of tenants, all together or one more of each tenant in each stage."""

    tenant_flows: tuple[int, ...] = setting(
        "number of long flows of each tenant; they are assigned to its hosts in turn, and to the receivers",
        low=1,
        high=MAX_FLOWS,
        example=(1, 4),
    )
    tenant_hosts: tuple[int, ...] = setting(
        "number of sending hosts of each tenant; the first tenant has the first of them, and so on",
        low=1,
        high=250,
        default=(),
        default_text="1 each",
        example=(1, 1),
    )
    tenant_weights: tuple[int, ...] = setting(
        "the weight of each tenant under policy tenants; Jain's index is over goodputs divided by them",
        low=1,
        high=MOST_WEIGHT,
        default=(),
        default_text="1 each",
        example=(1, 2),
    )
    staged: bool = setting(
        "each tenant starts with one flow, and one more starts with each stage until it has all; no: there "
        "is one stage, and all flows start with it",
        default=False,
    )
    stage_s: float = setting("duration of a stage", unit="s", low=0.2, high=3600, default=60.0)
    settle_s: float = setting(
        "time at the beginning of each stage that is not measured", unit="s", low=0, high=3600, default=10.0
    )
    volley_flows: int = setting(
        "number of new flows in each volley of the last tenant with long flows; they start together, from "
        "its hosts in turn to the receivers; 0: no volleys",
        low=0,
        high=MAX_FLOWS,
        default=0,
    )
    volley_bytes: int = setting(
        "size of each flow of a volley", unit="bytes", low=64, high=100_000_000, default=40_000
    )
    volley_interval_s: float = setting(
        "least time from one volley to the next; what has not arrived so long after its start is unfinished",
        unit="s",
        low=0.1,
        high=3600,
        default=1.0,
    )
    short_tenant: bool = setting(
        "the senders of short flows are one more tenant, of weight 1; no: they are of no tenant",
        default=False,
    )
    receiver_delays_ms: tuple[float, ...] = setting(
        "delay added to the round trips of each receiver, in addition to rtt_ms; there are as many "
        "receivers; only with topology dumbbell",
        unit="ms",
        low=0,
        high=1000,
        default=(),
        default_text="one receiver, 0",
        example=(0, 100),
    )

    @property
    def applications(self) -> int:
        """One for each receiver."""
        return max(1, len(self.receiver_delays_ms))

    @property
    def receiver_rtts_ms(self) -> tuple[float, ...]:
        """The setting of that purpose."""
        return self.receiver_delays_ms

    @property
    def tenants(self) -> Mapping[str, tuple[str, ...]]:
        """The hosts of all tenants: of those with long flows, and of the one with the short flows."""
        owned = self.long_tenants
        short = {f"tenant{len(owned) + 1}": tuple(self.others)} if self.short_tenant else {}
        return {**owned, **short}

    @property
    def long_tenants(self) -> Mapping[str, tuple[str, ...]]:
        """The tenants with long flows are called tenant1, tenant2 and so on."""
        hosts = iter(self.plan.senders(self.senders))
        counts = self.tenant_hosts or (1,) * len(self.tenant_flows)
        return {
            f"tenant{number}": tuple(itertools.islice(hosts, count)) for number, count in enumerate(counts, 1)
        }

    @property
    def weights(self) -> Mapping[str, int]:
        """By the names of the tenants."""
        return dict(zip(self.tenants, self.tenant_weights, strict=False))

    @property
    def others(self) -> list[str]:
        """The senders of no tenant with long flows: they send the short flows."""
        owned = {host for hosts in self.long_tenants.values() for host in hosts}
        return [host for host in self.plan.senders(self.senders) if host not in owned]

    @property
    def flows(self) -> list[TenantFlow]:
        """All long flows, tenant after tenant."""
        found: list[TenantFlow] = []
        receivers = self.plan.receivers
        for (name, hosts), count in zip(self.long_tenants.items(), self.tenant_flows, strict=True):
            for place in range(count):
                sender, receiver = hosts[place % len(hosts)], receivers[place % len(receivers)]
                found.append(TenantFlow(len(found), name, sender, receiver, place if self.staged else 0))
        return found

    @property
    def volley(self) -> list[tuple[str, str]]:
        """Sender and receiver of each flow of a volley."""
        hosts, receivers = list(self.long_tenants.values())[-1], self.plan.receivers
        places = range(self.volley_flows)
        return [(hosts[place % len(hosts)], receivers[place % len(receivers)]) for place in places]

    @property
    def stages(self) -> int:
        """Number of stages."""
        return max(self.tenant_flows) if self.staged else 1

    def faults(self) -> Iterator[UserError]:
        """What contradicts in these settings."""
        yield from super().faults()
        counts = self.tenant_hosts or (1,) * len(self.tenant_flows)
        if len(counts) != len(self.tenant_flows):
            yield UserError(
                f"tenant_flows has {len(self.tenant_flows)} entries and tenant_hosts {len(counts)}",
                "give one entry of tenant_hosts for each tenant, or none",
            )
        if self.tenant_weights and len(self.tenant_weights) != len(self.tenant_flows):
            yield UserError(
                f"tenant_flows has {len(self.tenant_flows)} entries and tenant_weights "
                f"{len(self.tenant_weights)}",
                "give one entry of tenant_weights for each tenant, or none",
            )
        owned = sum(counts)
        if self.short_rate and self.senders <= owned:
            yield UserError(
                f"the tenants have {owned} hosts of {self.senders} senders: none is left for short flows",
                "raise senders, or set short_rate to 0",
            )
        elif not self.short_rate and self.senders != owned:
            yield UserError(
                f"there are {self.senders} senders, and the tenants have {owned} hosts",
                "make them the same number, or set short_rate, so that the others send short flows",
            )
        if self.short_tenant and not self.short_rate:
            yield UserError(
                "short_tenant is set, and short_rate 0", "set short_rate, or take short_tenant out"
            )
        if sum(self.tenant_flows) > MAX_FLOWS:
            yield UserError(
                f"tenant_flows has {sum(self.tenant_flows):,} flows in all", f"give at most {MAX_FLOWS:,}"
            )
        if self.settle_s >= self.stage_s:
            yield UserError(
                f"settle_s is {self.settle_s:g}, and stage_s {self.stage_s:g}: nothing would be measured",
                "lower the first, or raise the second",
            )
        elif self.volley_flows and self.settle_s + self.volley_interval_s > self.stage_s:
            yield UserError(
                f"volley_interval_s is {self.volley_interval_s:g}, and {self.stage_s - self.settle_s:g} s of "
                "a stage are measured: no volley would start",
                "lower it, or raise stage_s",
            )
        if self.receiver_delays_ms and self.topology != "dumbbell":
            yield UserError(
                f"topology {self.topology} has one receiver, which receiver_delays_ms cannot delay",
                "set topology = dumbbell, or remove it",
            )
