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

    title: str = _setting("title of tables and pictures, on one line")
    topology: str = _setting("network to build", choices=tuple(TOPOLOGIES))
    traffic: str = _setting("kind of traffic", choices=TRAFFICS, default=INCAST)
    leaves: int | None = _setting(
        "number of leaf switches; the receiver is on the last one",
        low=shapes.LEAVES[0],
        high=shapes.LEAVES[1],
        topologies=("leafspine",),
    )
    spines: int | None = _setting(
        "number of spine switches", low=shapes.SPINES[0], high=shapes.SPINES[1], topologies=("leafspine",)
    )
    k: int | None = _setting(
        "number of pods, which must be even; the receiver is in the last one",
        low=shapes.PODS[0],
        high=shapes.PODS[1],
        topologies=("fattree",),
    )
    uplink_mbit: float | None = _setting(
        "rate of each link between switches, whose ports have the same buffer as the bottleneck; "
        "0: not limited",
        unit="Mbit/s",
        low=0,
        high=100_000,
        topologies=("leafspine", "fattree"),
    )
    senders: int = _setting("number of sending hosts", low=1, high=250)
    rate_mbit: float = _setting("rate of the bottleneck port", unit="Mbit/s", low=1, high=100_000)
    buffer_bytes: int = _setting("buffer size of the bottleneck port", unit="bytes", low=1514, high=1 << 30)
    cc: str = _setting("TCP congestion control of every host, by its name in the kernel")
    sack: bool = _setting("hosts use selective acknowledgements", default=True)
    timestamps: bool = _setting("hosts use TCP timestamps", default=True)
    syn: str = _setting(
        "how the controller handles SYNs, unless its configuration file says so",
        choices=("copy", "hold"),
        default="copy",
    )
    capture: bool = _setting("capture the packets of all hosts, and check every ACK", default=False)

    elephants: int = _setting(
        "number of long bulk flows, assigned to the senders in turn",
        low=0,
        high=1000,
        traffics=(INCAST, FLOOD),
    )
    mice_per_sender: int = _setting(
        "number of new connections that each sender answers in each round",
        low=0,
        high=1000,
        traffics=(INCAST,),
    )
    mice_bytes: int = _setting(
        "size of each mouse", unit="bytes", low=1, high=100_000_000, traffics=(INCAST,)
    )
    sizes_bytes: tuple[int, ...] = _setting(
        "size of each flow (`deadlines`) or of the flows of each application (`fanin`)",
        unit="bytes",
        low=64,
        high=1_000_000_000,
        traffics=(DEADLINES, FANIN),
    )
    deadlines_s: tuple[float, ...] = _setting(
        "deadline for each of these sizes, in the same order, counted from the common start; 0: none",
        unit="s",
        low=0,
        high=3600,
        traffics=(DEADLINES, FANIN),
    )
    endless: int = _setting(
        "number of additional flows without end and without deadline", low=0, high=100, traffics=(DEADLINES,)
    )
    flows: tuple[int, ...] = _setting(
        "number of flows of each application that start together; all rounds are run for each "
        "number in the list",
        low=1,
        high=1000,
        traffics=(FANIN,),
    )
    prepared: bool = _setting(
        "open the connections before a round, and send on all of them when the round starts",
        traffics=(FANIN,),
    )
    repeats: int = _setting(
        "number of runs of all flows, one run after the other", low=1, high=1000, traffics=(DEADLINES,)
    )
    rounds: int = _setting(
        "number of volleys; the flows of a volley start together",
        low=1,
        high=100_000,
        traffics=(INCAST, FANIN),
    )
    round_interval_s: float = _setting(
        "time from the start of one volley to the start of the next; more if the volley takes longer",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, FANIN),
    )
    round_timeout_s: float = _setting(
        "a mouse or a flow that takes longer than this is counted as unfinished",
        unit="s",
        low=0.1,
        high=3600,
        traffics=(INCAST, DEADLINES, FANIN),
    )
    warmup_s: float = _setting(
        "time for which elephants or endless flows run before the measurement starts",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, DEADLINES, FLOOD),
    )
    elephants_only_s: float = _setting(
        "duration of the measurement with elephants only, before mice or flood start; 0: none",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, FLOOD),
    )
    flood_s: float = _setting("duration of the flood", unit="s", low=0.1, high=3600, traffics=(FLOOD,))
    syn_rate: float = _setting(
        "rate of the SYNs, which the last sender sends", unit="1/s", low=1, high=1_000_000, traffics=(FLOOD,)
    )
    flood_addresses: int = _setting(
        "number of source addresses that the SYNs use in turn; none of them is the sender's own",
        low=1,
        high=250,
        traffics=(FLOOD,),
    )
    after_s: float = _setting(
        "duration of the measurement with elephants only, at the end; 0: none",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, FLOOD),
        default=0.0,
    )
    seed: int = _setting("seed of all random numbers", low=0, high=(1 << 31) - 1)

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
