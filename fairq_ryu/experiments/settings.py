"""The settings of a scenario: each with its type, unit and bounds, in one list, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from mininet_topos import shapes

INCAST, DEADLINES, FANIN, FLOOD = TRAFFICS = ("incast", "deadlines", "fanin", "flood")
"""The kinds of traffic."""


def _setting(
    help: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
    topologies: tuple[str, ...] | None = None,
    traffics: tuple[str, ...] | None = None,
    default: Any = None,
) -> Any:
    """A field of a scenario; ``low`` and ``high`` are both allowed values, of a list's members too.

    With ``topologies`` or ``traffics`` it is a setting of these only: required there, refused elsewhere, and
    then None here. With ``default`` it may be left out, so that files from before it came are read as ever.
    """
    metadata = {
        "help": help,
        "unit": unit,
        "low": low,
        "high": high,
        "choices": choices,
        "topologies": topologies,
        "traffics": traffics,
        "default": default,
    }
    if topologies is None and traffics is None:
        return field(metadata=metadata)
    return field(metadata=metadata, default=None)


def _incast(scenario: Scenario) -> shapes.Shape:
    return shapes.Incast(scenario.senders)


def _dumbbell(scenario: Scenario) -> shapes.Shape:
    return shapes.Dumbbell(scenario.senders, right=scenario.applications)


def _leaf_spine(scenario: Scenario) -> shapes.Shape:
    assert scenario.leaves is not None
    assert scenario.spines is not None
    return shapes.LeafSpine.with_senders(scenario.leaves, scenario.spines, scenario.senders)


def _fat_tree(scenario: Scenario) -> shapes.Shape:
    assert scenario.k is not None
    return shapes.FatTree(scenario.k)


TOPOLOGIES: dict[str, Callable[[Scenario], shapes.Shape]] = {
    "incast": _incast,
    "dumbbell": _dumbbell,
    "leafspine": _leaf_spine,
    "fattree": _fat_tree,
}
"""What a scenario may name as its topology, and the shape that it then has."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One experiment. Read with `scenario.load`; every setting must be given that its topology and its
    traffic have. Those of other topologies or traffics are None, whatever their type says.
    """

    title: str = _setting("one line for tables and pictures")
    topology: str = _setting("which network", choices=tuple(TOPOLOGIES))
    traffic: str = _setting("which kind of traffic", choices=TRAFFICS, default=INCAST)
    leaves: int | None = _setting(
        "leaf switches; the receiver is at the last",
        low=shapes.LEAVES[0],
        high=shapes.LEAVES[1],
        topologies=("leafspine",),
    )
    spines: int | None = _setting(
        "spine switches", low=shapes.SPINES[0], high=shapes.SPINES[1], topologies=("leafspine",)
    )
    k: int | None = _setting(
        "pods, an even number; the receiver is in the last",
        low=shapes.PODS[0],
        high=shapes.PODS[1],
        topologies=("fattree",),
    )
    uplink_mbit: float | None = _setting(
        "rate of each link between switches, with the bottleneck's buffer; 0: as fast as it goes",
        unit="Mbit/s",
        low=0,
        high=100_000,
        topologies=("leafspine", "fattree"),
    )
    senders: int = _setting("sending hosts", low=1, high=250)
    rate_mbit: float = _setting("rate of the bottleneck port", unit="Mbit/s", low=1, high=100_000)
    buffer_bytes: int = _setting("buffer of the bottleneck port", unit="bytes", low=1514, high=1 << 30)
    cc: str = _setting("congestion control of every host, as the kernel names it")
    sack: bool = _setting("hosts use selective acknowledgements", default=True)
    timestamps: bool = _setting("hosts use TCP timestamps", default=True)
    syn: str = _setting(
        "what the controller does with SYNs, unless its configuration says so",
        choices=("copy", "hold"),
        default="copy",
    )
    capture: bool = _setting("what hosts send and get is caught, and every ACK judged", default=False)

    elephants: int = _setting(
        "long-lived bulk flows, one a sender in turn", low=0, high=1000, traffics=(INCAST, FLOOD)
    )
    mice_per_sender: int = _setting(
        "new connections a sender answers in each round", low=0, high=1000, traffics=(INCAST,)
    )
    mice_bytes: int = _setting(
        "bytes that each mouse brings", unit="bytes", low=1, high=100_000_000, traffics=(INCAST,)
    )
    sizes_bytes: tuple[int, ...] = _setting(
        "size of each flow, or of the flows of each application",
        unit="bytes",
        low=64,
        high=1_000_000_000,
        traffics=(DEADLINES, FANIN),
    )
    deadlines_s: tuple[float, ...] = _setting(
        "deadline of each after the common start, in the same order; 0: none",
        unit="s",
        low=0,
        high=3600,
        traffics=(DEADLINES, FANIN),
    )
    endless: int = _setting(
        "flows without end and deadline beside the others", low=0, high=100, traffics=(DEADLINES,)
    )
    flows: tuple[int, ...] = _setting(
        "flows of each application at once; the rounds are made for each number",
        low=1,
        high=1000,
        traffics=(FANIN,),
    )
    prepared: bool = _setting(
        "connections are opened before a round, and all send at once when it starts", traffics=(FANIN,)
    )
    repeats: int = _setting(
        "runs of all the flows, one after the other", low=1, high=1000, traffics=(DEADLINES,)
    )
    rounds: int = _setting("volleys, each begun at once", low=1, high=100_000, traffics=(INCAST, FANIN))
    round_interval_s: float = _setting(
        "from the start of one volley to the next, more when the volley takes longer",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, FANIN),
    )
    round_timeout_s: float = _setting(
        "after this a mouse or a flow is unfinished",
        unit="s",
        low=0.1,
        high=3600,
        traffics=(INCAST, DEADLINES, FANIN),
    )
    warmup_s: float = _setting(
        "elephants or endless flows run this long before anything is measured",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, DEADLINES, FLOOD),
    )
    elephants_only_s: float = _setting(
        "measured phase of elephants alone; 0 leaves it out",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, FLOOD),
    )
    flood_s: float = _setting("how long SYNs are sent", unit="s", low=0.1, high=3600, traffics=(FLOOD,))
    syn_rate: float = _setting(
        "SYNs that the last sender sends", unit="1/s", low=1, high=1_000_000, traffics=(FLOOD,)
    )
    flood_addresses: int = _setting(
        "addresses that these come from in turn, none of them its own", low=1, high=250, traffics=(FLOOD,)
    )
    after_s: float = _setting(
        "measured phase of elephants alone at the end; 0 leaves it out",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, FLOOD),
        default=0.0,
    )
    seed: int = _setting("of everything that is random here", low=0, high=(1 << 31) - 1)

    @property
    def shape(self) -> shapes.Shape:
        """Who sends, who receives, and where the bottleneck is."""
        return TOPOLOGIES[self.topology](self)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting that its topology and traffic have, as `scenario.build` takes it."""
        return {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if belongs(each, self.topology, self.traffic)
        }

    @property
    def applications(self) -> int:
        """How many receive, where the topology has several receivers."""
        return len(self.sizes_bytes) if self.traffic == FANIN else 1

    @property
    def mice(self) -> int:
        """Mice of the whole run; only incast has any."""
        return self.senders * self.mice_per_sender * self.rounds


def belongs(each: Any, topology: object, traffic: object) -> bool:
    """Whether a topology and a traffic have this setting; as long as one is not known, those that all
    have.
    """
    topologies, traffics = each.metadata["topologies"], each.metadata["traffics"]
    return (topologies is None or topology in topologies) and (traffics is None or traffic in traffics)


def type_of(each: Any) -> str:
    """The type of a field's value when it is given: ``str``, ``bool``, ``int``, ``float``, or a tuple."""
    return str(each.type).removesuffix(" | None")
