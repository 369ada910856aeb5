"""Tenants: each has its part of a port, whatever number of flows it opens.

Ours, after ctrlTCP (Islam, Welzl and Gjessing, "How to Control a TCP"), which couples the flows of a tenant
in its hosts. Here the switch does it, with windows: a layer above another policy, which shares out the part
of each tenant (``agent/bpf/laws/tenant_share.h``). Whose hosts are whose is in the sections
``[tenant.NAME]``.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from fairq_ryu.law_spec import LawSpec
from fairq_ryu.model import PortKey
from fairq_ryu.policies.base import Parameters, Policy, find, switch_law
from fairq_ryu.policies.common_settings import typed_parameters
from fairq_ryu.policies.switch_port import LOOK_INTERVAL
from fairq_ryu.setting import Setting
from fairq_ryu.tenants import MOST_DSCP, Priorities, read_priorities

_LAYERS = ("fairq", "las")


@dataclass(frozen=True, slots=True)
class TenantsParameters:
    """Texts as in the configuration."""

    above: str
    ports: str
    dscp: str


class Tenants:
    """The policy of tenants."""

    name: ClassVar[str] = "tenants"
    interval: ClassVar[float] = LOOK_INTERVAL
    by_tenant: ClassVar[bool] = True
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "tenants",
            "above",
            "fairq",
            "",
            "Policy that shares out the part of a tenant among its flows, with the settings of its own "
            "section. Set las where short flows are to be faster than long ones of their tenant.",
            choices=_LAYERS,
        ),
        Setting(
            "tenants",
            "ports",
            "",
            "",
            "Priorities of flows within their tenant by the TCP port of either side: pairs PORT:PRIORITY, "
            "separated by spaces. 100 is usual; of what its tenant has beyond a segment for each flow, one "
            "of 200 gets twice as much. Set it where some services of a tenant matter more.",
            grammar=partial(read_priorities, "ports", most=65535),
        ),
        Setting(
            "tenants",
            "dscp",
            "",
            "",
            "The same by the DSCP of the data: pairs DSCP:PRIORITY. A port with a priority comes first. Set "
            "it where hosts mark their packets.",
            grammar=partial(read_priorities, "dscp", most=MOST_DSCP),
        ),
    )

    @classmethod
    def on(cls, parameters: Parameters, below: Policy) -> Tenants:
        """The layer on a policy: that which the parameter ``above`` names."""
        return cls(parameters, below)

    def __init__(self, parameters: Parameters, below: Policy | None = None) -> None:
        """``parameters`` are the settings of section ``[tenants]``; ``below``: the policy that `above` names,
        None: with its defaults.
        """
        own = typed_parameters(TenantsParameters, parameters)
        if below is None:
            kind = find(own.above)
            below = kind({each.name: each.default for each in getattr(kind, "settings", ())})
        self.below = below
        self.parameters = own, getattr(below, "parameters", None)
        self.priorities = Priorities(
            read_priorities("[tenants] ports", own.ports, 65535),
            read_priorities("[tenants] dscp", own.dscp, MOST_DSCP),
        )

    def switch_law(self, port: PortKey) -> LawSpec | None:
        """The law of the policy below, by tenant."""
        spec = switch_law(self.below, port)
        return None if spec is None else dataclasses.replace(spec, tenants=1)
