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
    default_words: str = "",
    example: Any = None,
) -> Any:
    """A field of a scenario; ``low`` and ``high`` are both allowed values, of a list's members too.

    With ``topologies`` or ``traffics`` it is a setting of these only: refused elsewhere, and then None here.
    With ``default`` it may be left out; ``default_words`` say what stands for it where the default is not
    a fixed value. Without, it must be given, and errors show ``example``.
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
        "default_words": default_words,
        "example": default if example is None else example,
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
    """One experiment. Read with `scenario.load`. Settings of other topologies or traffics than its own are
    None, whatever their type says.
    """

    title: str = _setting(
        "title of tables and pictures, on one line", default="untitled", default_words="the file's name"
    )
    topology: str = _setting("network to build", choices=tuple(TOPOLOGIES), default="incast")
    traffic: str = _setting("kind of traffic", choices=TRAFFICS, default=INCAST)
    leaves: int | None = _setting(
        "number of leaf switches; the receiver is on the last one",
        low=shapes.LEAVES[0],
        high=shapes.LEAVES[1],
        topologies=("leafspine",),
        default=3,
    )
    spines: int | None = _setting(
        "number of spine switches",
        low=shapes.SPINES[0],
        high=shapes.SPINES[1],
        topologies=("leafspine",),
        default=2,
    )
    k: int | None = _setting(
        "number of pods, which must be even; the receiver is in the last one",
        low=shapes.PODS[0],
        high=shapes.PODS[1],
        topologies=("fattree",),
        default=4,
    )
    uplink_mbit: float | None = _setting(
        "rate of each link between switches, whose ports have the same buffer as the bottleneck; "
        "0: not limited",
        unit="Mbit/s",
        low=0,
        high=100_000,
        topologies=("leafspine", "fattree"),
        default=0.0,
    )
    senders: int = _setting("number of sending hosts", low=1, high=250, example=16)
    rate_mbit: float = _setting("rate of the bottleneck port", unit="Mbit/s", low=1, high=100_000, example=50)
    buffer_bytes: int = _setting(
        "buffer size of the bottleneck port", unit="bytes", low=1514, high=1 << 30, example=125_000
    )
    rtt_ms: float = _setting(
        "delay added to the round trip between each sender and the receiver; 0: none",
        unit="ms",
        low=0,
        high=1000,
        default=0.0,
    )
    cc: str = _setting("TCP congestion control of every host, by its name in the kernel", default="cubic")
    sack: bool = _setting("hosts use selective acknowledgements", default=True)
    timestamps: bool = _setting("hosts use TCP timestamps", default=True)
    syn: str = _setting(
        "how the controller handles SYNs, unless its configuration file says so",
        choices=("copy", "hold"),
        default="copy",
    )
    rto_min_ms: float = _setting(
        "minimum retransmission timeout of every host; 0: the kernel's default, which is 200 ms",
        unit="ms",
        low=0,
        high=60_000,
        default=0.0,
    )
    batch_loss: bool = _setting(
        "when a queue refuses a packet, Open vSwitch drops the rest of its batch too; no: only "
        "the refused packet is lost",
        default=False,
    )
    capture: bool = _setting("capture the packets of all hosts, and check every ACK", default=False)

    elephants: int = _setting(
        "number of long bulk flows, assigned to the senders in turn",
        low=0,
        high=1000,
        traffics=(INCAST, FLOOD),
        example=8,
    )
    mice_per_sender: int = _setting(
        "number of new connections that each sender answers in each round",
        low=0,
        high=1000,
        traffics=(INCAST,),
        example=2,
    )
    mice_bytes: int = _setting(
        "size of each mouse", unit="bytes", low=1, high=100_000_000, traffics=(INCAST,), example=11_500
    )
    sizes_bytes: tuple[int, ...] = _setting(
        "size of each flow (`deadlines`) or of the flows of each application (`fanin`)",
        unit="bytes",
        low=64,
        high=1_000_000_000,
        traffics=(DEADLINES, FANIN),
        example=(4000, 40_000),
    )
    deadlines_s: tuple[float, ...] = _setting(
        "deadline for each of these sizes, in the same order, counted from the common start; 0: none",
        unit="s",
        low=0,
        high=3600,
        traffics=(DEADLINES, FANIN),
        example=(0.2, 0),
    )
    endless: int = _setting(
        "number of additional flows without end and without deadline",
        low=0,
        high=100,
        traffics=(DEADLINES,),
        default=0,
    )
    flows: tuple[int, ...] = _setting(
        "number of flows of each application that start together; all rounds are run for each "
        "number in the list",
        low=1,
        high=1000,
        traffics=(FANIN,),
        example=(1, 10),
    )
    prepared: bool = _setting(
        "open the connections before a round, and send on all of them when the round starts",
        traffics=(FANIN,),
        default=False,
    )
    repeats: int = _setting(
        "number of runs of all flows, one run after the other",
        low=1,
        high=1000,
        traffics=(DEADLINES,),
        default=10,
    )
    rounds: int = _setting(
        "number of volleys; the flows of a volley start together",
        low=1,
        high=100_000,
        traffics=(INCAST, FANIN),
        default=30,
    )
    round_interval_s: float = _setting(
        "time from the start of one volley to the start of the next; more if the volley takes longer",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, FANIN),
        default=1.0,
    )
    round_timeout_s: float = _setting(
        "a mouse or a flow that takes longer than this is counted as unfinished",
        unit="s",
        low=0.1,
        high=3600,
        traffics=(INCAST, DEADLINES, FANIN),
        default=20.0,
    )
    warmup_s: float = _setting(
        "time for which elephants or endless flows run before the measurement starts",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, DEADLINES, FLOOD),
        default=3.0,
    )
    elephants_only_s: float = _setting(
        "duration of the measurement with elephants only, before mice or flood start; 0: none",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, FLOOD),
        default=3.0,
    )
    flood_s: float = _setting(
        "duration of the flood", unit="s", low=0.1, high=3600, traffics=(FLOOD,), default=10.0
    )
    syn_rate: float = _setting(
        "rate of the SYNs, which the last sender sends",
        unit="1/s",
        low=1,
        high=1_000_000,
        traffics=(FLOOD,),
        example=5000,
    )
    flood_addresses: int = _setting(
        "number of source addresses that the SYNs use in turn; none of them is the sender's own",
        low=1,
        high=250,
        traffics=(FLOOD,),
        default=1,
    )
    after_s: float = _setting(
        "duration of the measurement with elephants only, at the end; 0: none",
        unit="s",
        low=0,
        high=3600,
        traffics=(INCAST, FLOOD),
        default=0.0,
    )
    seed: int = _setting("seed of all random numbers", low=0, high=(1 << 31) - 1, default=1)

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
