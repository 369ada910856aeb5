"""The kinds of traffic, and what measures each."""

from __future__ import annotations

from fairq_ryu.experiments import settings
from fairq_ryu.experiments.deadlines import Deadlines
from fairq_ryu.experiments.fanin import Fanin
from fairq_ryu.experiments.flood import Flood
from fairq_ryu.experiments.incast import Incast
from fairq_ryu.experiments.measure import Measurement

KINDS: dict[str, type[Measurement]] = {
    settings.INCAST: Incast,
    settings.DEADLINES: Deadlines,
    settings.FANIN: Fanin,
    settings.FLOOD: Flood,
}
"""By the name in a scenario."""
