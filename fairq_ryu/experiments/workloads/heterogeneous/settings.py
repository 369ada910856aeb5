"""The settings of heterogeneous flows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.hostcc.names import known
from fairq_ryu.experiments.settings import setting
from fairq_ryu.experiments.workloads.common import settings as shared
from fairq_ryu.setting import closest

UDP = "udp"
"""In place of a congestion control: the group sends datagrams at a constant rate."""
MAX_FLOWS = 1000


@dataclass(frozen=True)
class Group:
    """Long flows of one kind."""

    kind: str
    """their congestion control, or `UDP`"""
    numbers: range
    """of its flows, counted over all groups"""
    start_s: float

    @property
    def udp(self) -> bool:
        """Whether it sends datagrams."""
        return self.kind == UDP


@dataclass(frozen=True, kw_only=True)
class HeterogeneousScenario(shared.ShortScenario):
    """Groups of long flows, each with its congestion control, and short flows beside them."""

    groups: tuple[str, ...] = setting(
        "what the flows of each group are: a TCP congestion control, as for cc, or udp",
        example=("cubic", "reno"),
    )
    group_flows: tuple[int, ...] = setting(
        "number of long flows of each group; all flows are assigned to the senders in turn",
        low=1,
        high=MAX_FLOWS,
        default=(),
        default_text="1 each",
        example=(10, 10),
    )
    group_starts_s: tuple[float, ...] = setting(
        "when the flows of each group start",
        unit="s",
        low=0,
        high=3600,
        default=(),
        default_text="0 each",
        example=(0, 10),
    )
    udp_mbit: float = shared.udp_mbit()
    measured_s: float = shared.measured_s()
    warmup_s: float = shared.warmup_s()

    @property
    def members(self) -> tuple[Group, ...]:
        """The groups; the flows of all groups are numbered from 0 in this order."""
        counts = self.group_flows or (1,) * len(self.groups)
        starts = self.group_starts_s or (0.0,) * len(self.groups)
        found: list[Group] = []
        first = 0
        for kind, count, start in zip(self.groups, counts, starts, strict=True):
            found.append(Group(kind, range(first, first + count), start))
            first += count
        return tuple(found)

    @property
    def long_controls(self) -> tuple[str, ...]:
        """The congestion controls of the groups, each once."""
        return tuple(dict.fromkeys(kind for kind in self.groups if kind != UDP))

    @property
    def controls(self) -> tuple[str, ...]:
        """The congestion controls of hosts and of groups, each once."""
        return tuple(dict.fromkeys((*super().controls, *self.long_controls)))

    def faults(self) -> Iterator[UserError]:
        """What contradicts in these settings."""
        names = [*known(), UDP]
        for kind in self.long_controls:
            if kind not in names and (close := closest(kind, names)):
                yield UserError(f"groups has {kind!r}, which is unknown", f"did you mean {close}?")
        for name in ("group_flows", "group_starts_s"):
            given = len(getattr(self, name))
            if given not in (0, len(self.groups)):
                yield UserError(
                    f"groups has {len(self.groups)} entries and {name} {given}",
                    f"give one entry of {name} for each group, or none",
                )
        if sum(self.group_flows) > MAX_FLOWS:
            yield UserError(
                f"group_flows has {sum(self.group_flows):,} flows in all", f"give at most {MAX_FLOWS:,}"
            )
        end = self.warmup_s + self.measured_s
        if any(start >= end for start in self.group_starts_s):
            yield UserError(
                f"a group starts at {max(self.group_starts_s):g} s, and the measurement ends at {end:g} s",
                "lower group_starts_s, or raise measured_s",
            )
        if (UDP in self.groups) != bool(self.udp_mbit):
            if self.udp_mbit:
                yield UserError("udp_mbit is given, but no group is udp", "remove it, or add udp to groups")
            else:
                yield UserError("there is a group udp, and udp_mbit is 0", "set udp_mbit to its rate")
        yield from super().faults()
        if self.sender_cc:
            yield UserError(
                "the long flows of this traffic have the congestion controls of groups, whatever the sender",
                "remove sender_cc",
            )
