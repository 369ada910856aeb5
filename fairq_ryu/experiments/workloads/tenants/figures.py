"""The figures of tenants, in the object ``tenants`` of a policy in the result. Pure functions.

They are of the tenants with long flows, and of those flows, unless the name says otherwise. Each stage is
measured without its first ``settle_s`` s. Goodput is payload at the receivers, Mbit/s.

    stages            of each stage:
      from_s            its start as planned, since the first flow may start
      seconds           measured of it
      flows             number of flows of each tenant that have started
      goodput_mbit      of each tenant
      goodput_sum_mbit
      jain              Jain's index over the goodputs of the tenants, each divided by its weight; null with
                        one tenant
      jain_flows        over those of the flows that have started
    goodput_mbit, goodput_sum_mbit, jain, jain_flows   of the last stage, in which all flows run
    flow_goodput_mbit   of each flow in the last stage, tenant after tenant
    members           of each tenant: name, hosts (their names), flows, goodput_mbit in the last stage, its
                      share of that of all tenants, and over all stages retransmissions and rto_timeouts of
                      its sockets (timeouts null before 6.7), and timeout_flows and timeout_share, its flows
                      with at least one timeout, see `common.timeouts`
    lost_share        packets lost at the bottleneck, for want of room or by its queue law, over those and all
                      that passed it, from the first measured moment to the last; null without an agent
    short             null without short flows, or those due in that time, as `common.short_flows` has them
    volleys           null without volleys, or the flows of all, as `common.short_flows` has them, from the
                      common start
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairq_ryu.experiments.measure import stats
from fairq_ryu.experiments.workloads.common.counts import Counts, more, rates
from fairq_ryu.experiments.workloads.common.timeouts import timed_out
from fairq_ryu.experiments.workloads.tenants.settings import TenantFlow

Sockets = Mapping[str, Mapping[str, Any]]
"""TCP_INFO by the number of the flow as text"""


class Stage(NamedTuple):
    """The measured part of a stage."""

    from_s: float
    before: Counts
    after: Counts


def stage_figures(
    stage: Stage, running: Sequence[TenantFlow], names: Sequence[str], weights: Mapping[str, int]
) -> dict[str, Any]:
    """One stage, in which these flows run, for these tenants. Without a weight a tenant has 1."""
    each_flow = rates(stage.before, stage.after, [flow.number for flow in running])
    of_tenant = {
        name: [rate for flow, rate in zip(running, each_flow, strict=True) if flow.tenant == name]
        for name in names
    }
    goodputs = [sum(of_tenant[name]) for name in names]
    parts = [each / weights.get(name, 1) for name, each in zip(names, goodputs, strict=True)]
    return {
        "from_s": stage.from_s,
        "seconds": (stage.after["clock_ns"] - stage.before["clock_ns"]) / 1e9,
        "flows": [len(of_tenant[name]) for name in names],
        "goodput_mbit": goodputs,
        "goodput_sum_mbit": sum(goodputs),
        "jain": stats.jain(parts) if len(parts) > 1 else None,
        "jain_flows": stats.jain(each_flow),
    }


def tenants_figures(
    tenants: Mapping[str, Sequence[str]],
    flows: Sequence[TenantFlow],
    stages: Sequence[Stage],
    sockets: tuple[Sockets, Sockets],
    weights: Mapping[str, int],
) -> dict[str, Any]:
    """All stages; ``sockets`` are those at the first measured moment and at the last."""
    found = [
        stage_figures(stage, [flow for flow in flows if flow.stage <= number], list(tenants), weights)
        for number, stage in enumerate(stages)
    ]
    last = found[-1]
    numbers = {name: [flow.number for flow in flows if flow.tenant == name] for name in tenants}
    return {
        "stages": found,
        **{key: last[key] for key in ("goodput_mbit", "goodput_sum_mbit", "jain", "jain_flows")},
        "flow_goodput_mbit": rates(stages[-1].before, stages[-1].after, [flow.number for flow in flows]),
        "members": [
            {
                "name": name,
                "hosts": list(tenants[name]),
                "flows": len(numbers[name]),
                "goodput_mbit": goodput,
                "share": goodput / last["goodput_sum_mbit"] if last["goodput_sum_mbit"] else None,
                "retransmissions": more(*sockets, "total_retrans", numbers[name]),
                "rto_timeouts": more(*sockets, "total_rto", numbers[name]),
                **timed_out([more(*sockets, "total_rto", [number]) for number in numbers[name]]),
            }
            for name, goodput in zip(tenants, last["goodput_mbit"], strict=True)
        ],
    }


def lost_share(queue: Mapping[str, Any]) -> float | None:
    """The share of packets that the bottleneck has lost, by the ``queue`` object of a result."""
    rounds = queue["rounds"]
    if rounds is None:
        return None
    lost: int = queue["qdisc_drops"] + (rounds["law"] or {}).get("dropped", 0)
    return lost / (lost + rounds["packets"]) if lost + rounds["packets"] else 0.0
