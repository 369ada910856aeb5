"""The only list of workloads. The runner, the checks of scenarios, the tables and the report ask it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.workloads.common.rows import Ratio
from fairq_ryu.experiments.workloads.deadlines import limits as deadlines_limits
from fairq_ryu.experiments.workloads.deadlines import rows as deadlines_rows
from fairq_ryu.experiments.workloads.deadlines.settings import DeadlinesScenario
from fairq_ryu.experiments.workloads.empirical import limits as empirical_limits
from fairq_ryu.experiments.workloads.empirical import rows as empirical_rows
from fairq_ryu.experiments.workloads.empirical.settings import EmpiricalScenario
from fairq_ryu.experiments.workloads.fanin import limits as fanin_limits
from fairq_ryu.experiments.workloads.fanin import rows as fanin_rows
from fairq_ryu.experiments.workloads.fanin.settings import FaninScenario
from fairq_ryu.experiments.workloads.flood import rows as flood_rows
from fairq_ryu.experiments.workloads.flood.settings import FloodScenario
from fairq_ryu.experiments.workloads.heterogeneous import rows as heterogeneous_rows
from fairq_ryu.experiments.workloads.heterogeneous.settings import HeterogeneousScenario
from fairq_ryu.experiments.workloads.incast import limits as incast_limits
from fairq_ryu.experiments.workloads.incast import rows as incast_rows
from fairq_ryu.experiments.workloads.incast.settings import IncastScenario
from fairq_ryu.experiments.workloads.messages import rows as messages_rows
from fairq_ryu.experiments.workloads.messages.settings import MessagesScenario
from fairq_ryu.experiments.workloads.pairs import figures as pairs_figures
from fairq_ryu.experiments.workloads.pairs import rows as pairs_rows
from fairq_ryu.experiments.workloads.pairs import settings as pairs_settings
from fairq_ryu.experiments.workloads.tenants import rows as tenants_rows
from fairq_ryu.experiments.workloads.tenants.settings import TenantsScenario
from fairq_ryu.experiments.workloads.workload import Workload

_ALL = (
    Workload("incast", IncastScenario, incast_rows.TABLE, incast_limits.floor, incast_limits.add_limits),
    Workload("deadlines", DeadlinesScenario, deadlines_rows.TABLE, add_limits=deadlines_limits.add_limits),
    Workload("fanin", FaninScenario, fanin_rows.TABLE, fanin_limits.floor, fanin_limits.add_limits),
    Workload(
        "empirical",
        EmpiricalScenario,
        empirical_rows.TABLE,
        empirical_limits.floor,
        empirical_limits.add_limits,
    ),
    Workload("flood", FloodScenario, flood_rows.TABLE),
    Workload("messages", MessagesScenario, messages_rows.TABLE),
    Workload("heterogeneous", HeterogeneousScenario, heterogeneous_rows.TABLE),
    Workload("tenants", TenantsScenario, tenants_rows.TABLE),
    Workload(
        "pairs",
        pairs_settings.PairsScenario,
        pairs_rows.TABLE,
        steps=pairs_settings.steps,
        joined=pairs_figures.joined,
    ),
)

WORKLOADS: dict[str, Workload] = {each.name: each for each in _ALL}
"""By the name in a scenario."""


def of_result(scenario: Mapping[str, Any]) -> Workload:
    """The workload of a stored result, from its ``scenario``. ``UserError`` when none has that name."""
    name = scenario["traffic"]
    if name not in WORKLOADS:
        raise UserError(
            f"the result is of traffic {name!r}, which this version does not know",
            "use the version that made it",
        )
    return WORKLOADS[name]


def ratios() -> list[Ratio]:
    """The ratios of all workloads; a ratio that several have appears once."""
    found = {ratio.name: ratio for each in _ALL for ratio in each.table.ratios}
    return list(found.values())
