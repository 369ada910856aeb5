"""What a policy puts on a port of the simulated switch: a window law, a queue law, both or neither."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fairq_ryu.config.loader import Config
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import baselines
from fairq_ryu.law_spec import FRAME, LawSpec
from fairq_ryu.model import PortKey
from fairq_ryu.policies import base
from fairq_ryu.queue_law_spec import QueueLawSpec
from fairq_ryu.setting import Value, did_you_mean

_ANY_PORT = PortKey(1, 1)


@dataclass(frozen=True, slots=True)
class Laws:
    """The laws of every port with a limited buffer; None: it has none."""

    window: LawSpec | None
    queue: QueueLawSpec | None


def laws_of(name: str, config: Config, rate_mbit: float, round_trip_ms: float) -> Laws:
    """The laws of a policy or baseline in this network. ``UserError`` if there is no such policy, or if it
    needs what is not simulated.
    """
    known = sorted({*base.available(), *baselines.BASELINES})
    if name not in known:
        raise UserError(f"there is no policy {name!r}", did_you_mean(name, known))
    baseline = baselines.of(name)
    if baseline.qdisc is not None or baseline.kernel_control:
        raise _not_simulated(name, "it is of the kernel")
    found = base.find(baseline.policy)
    if hasattr(found, "on"):
        raise _not_simulated(name, "it stands on another policy")
    settings = config.section(baseline.policy)
    policy = found(settings | _of_the_network(settings, config, baseline.policy, rate_mbit, round_trip_ms))
    if base.port_law(policy, _ANY_PORT) is not None:
        raise _not_simulated(name, "its law, or a part of it, runs in the controller")
    laws = Laws(base.switch_law(policy, _ANY_PORT), base.queue_law(policy, _ANY_PORT))
    if laws.window is not None and (laws.window.turns or laws.window.tenants):
        raise _not_simulated(name, "new connections take turns, or tenants share the pool")
    if laws.queue is not None and laws.queue.keeps_bins:
        raise _not_simulated(name, "its law has bins, which the queue program counts")
    return laws


def _of_the_network(
    settings: Mapping[str, Value], config: Config, section: str, rate_mbit: float, round_trip_ms: float
) -> dict[str, Value]:
    """What an operator would set for this network, of the settings that have their default: ``base_rtt``, and
    of DCTCP's marks the threshold, at least half of what is under way in a round trip.
    """
    found: dict[str, Value] = {}
    defaults = Config().section(section)
    if "base_rtt" in settings and settings["base_rtt"] == defaults["base_rtt"]:
        found["base_rtt"] = round_trip_ms / 1e3
    if section == "mark" and settings["threshold"] == defaults["threshold"]:
        way = rate_mbit * 125 * round_trip_ms / FRAME
        found["threshold"] = max(int(defaults["threshold"]), math.ceil(way / 2))
    return found


def _not_simulated(name: str, why: str) -> UserError:
    return UserError(f"policy {name!r} is not simulated: {why}", "leave it out, or use `fairq run`")
