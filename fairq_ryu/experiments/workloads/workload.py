"""What a workload consists of: the parts of its folder, under one name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairq_ryu.experiments.settings import Scenario
from fairq_ryu.experiments.workloads.common.rows import Table

if TYPE_CHECKING:
    from fairq_ryu.experiments.workloads.common.measurement import Measurement
    from fairq_ryu.experiments.workloads.common.pictures import Picture


def _no_floor(_scenario: Any) -> Scenario | None:
    return None


def _no_limits(_scenario: Any, _figures: dict[str, Any], _floor: Mapping[str, Any] | None) -> None:
    pass


def _one_step(scenario: Any) -> Mapping[str, Scenario]:
    return {"": scenario}


def _of_one_step(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    (figures,) = steps
    return figures


@dataclass(frozen=True)
class Workload:
    """A kind of traffic. Its measurement and its pictures are imported when they are needed: a report needs
    no network, and matplotlib takes a second to load.
    """

    name: str
    """of its folder, and in the ``traffic`` setting of scenarios"""
    scenario: type[Scenario]
    """its settings"""
    table: Table
    """its rows"""
    floor: Callable[[Any], Scenario | None] = _no_floor
    """the scenario that measures the same volleys alone; None without volleys"""
    add_limits: Callable[[Any, dict[str, Any], Mapping[str, Any] | None], None] = _no_limits
    """adds to the figures of one policy their ratios to the physical limit and the bench floor, or the number
    of deadlines that no policy can meet; arguments: the scenario, these figures, and those of the floor
    """

    steps: Callable[[Any], Mapping[str, Scenario]] = _one_step
    """what a policy's run consists of, by name: each has a network of its own"""
    joined: Callable[[Sequence[dict[str, Any]]], dict[str, Any]] = _of_one_step
    """the figures of a policy from those of its steps"""

    def measurement(self) -> type[Measurement[Any]]:
        """The class that runs it: ``MEASUREMENT`` of its module measurement."""
        found: type[Measurement[Any]] = self._module("measurement").MEASUREMENT
        return found

    def pictures(self) -> Sequence[Picture]:
        """What a report draws: ``PICTURES`` of its module pictures."""
        found: Sequence[Picture] = self._module("pictures").PICTURES
        return found

    def _module(self, part: str) -> Any:
        return import_module(f"{__package__}.{self.name}.{part}")
