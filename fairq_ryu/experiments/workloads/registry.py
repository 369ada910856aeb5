"""The kinds of traffic, and what measures each."""

from __future__ import annotations

from fairq_ryu.experiments import settings
from fairq_ryu.experiments.measure.measurement import Measurement
from fairq_ryu.experiments.workloads.deadlines import Deadlines
from fairq_ryu.experiments.workloads.fanin import Fanin
from fairq_ryu.experiments.workloads.flood import Flood
from fairq_ryu.experiments.workloads.incast import Incast

KINDS: dict[str, type[Measurement]] = {
    settings.INCAST: Incast,
    settings.DEADLINES: Deadlines,
    settings.FANIN: Fanin,
    settings.FLOOD: Flood,
}
"""By the name in a scenario."""
