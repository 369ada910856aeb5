"""The settings that scenarios of every workload have, and how a setting is declared.

The settings of one workload are in ``workloads/NAME/settings.py``, in a subclass of `Scenario`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.hostcc.names import OWN, needs_ecn
from fairq_ryu.experiments.profiles import MODERN, PROFILES
from fairq_ryu.far_queue import far_name
from mininet_topos import plans


def setting(
    help: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] | None = None,
    topologies: tuple[str, ...] | None = None,
    default: Any = None,
    default_text: str = "",
    example: Any = None,
) -> Any:
    """A field of a scenario; ``low`` and ``high`` are both allowed values, also for the members of a list.

    With ``topologies`` the setting belongs to these topologies only: it is refused with others, and then None
    here. With ``default`` the setting may be left out; ``default_text`` describes a default that is not a
    fixed value. Without a default the setting must be given, and errors show ``example``.
    """
    metadata = {
        "help": help,
        "unit": unit,
        "low": low,
        "high": high,
        "choices": choices,
        "topologies": topologies,
        "default": default,
        "default_text": default_text,
        "example": default if example is None else example,
    }
    if topologies is None:
        return field(metadata=metadata)
    return field(metadata=metadata, default=None)


def _incast(scenario: Scenario) -> plans.Plan:
    return plans.Incast(scenario.senders)


def _tor(scenario: Scenario) -> plans.Plan:
    return plans.BehindTor(scenario.senders, right=scenario.applications)


def _dumbbell(scenario: Scenario) -> plans.Plan:
    return plans.Dumbbell(scenario.senders, right=scenario.applications)


def _leaf_spine(scenario: Scenario) -> plans.Plan:
    assert scenario.leaves is not None
    assert scenario.spines is not None
    return plans.LeafSpine.with_senders(scenario.leaves, scenario.spines, scenario.senders)


def _fat_tree(scenario: Scenario) -> plans.Plan:
    assert scenario.k is not None
    return plans.FatTree(scenario.k)


TOPOLOGIES: dict[str, Callable[[Scenario], plans.Plan]] = {
    "incast": _incast,
    "tor": _tor,
    "dumbbell": _dumbbell,
    "leafspine": _leaf_spine,
    "fattree": _fat_tree,
}
"""The topologies that a scenario can name, with the function that builds the plan of each."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One experiment: its network, its hosts and, in subclasses, its traffic. Read with `scenario.load`.

    Settings of other topologies than its own are None, although their types do not include None.
    """

    title: str = setting(
        "title of tables and pictures, on one line", default="untitled", default_text="the file's name"
    )
    source: str = setting(
        "the experiment of a paper that this one is made after; results name it",
        default="",
        default_text="none",
    )
    scale: float = setting(
        "k, the factor by which rates are lower than in the source, and round trips longer, so that buffers "
        "and products of bandwidth and delay, in packets, stay; what is scaled otherwise is said in source",
        low=0.001,
        high=1_000_000,
        default=1.0,
    )
    claim: str = setting(
        "what the source found, to be read beside the figures; what is expected, where source begins with "
        "ours",
        default="",
        default_text="none",
    )
    topology: str = setting("network to build", choices=tuple(TOPOLOGIES), default="incast")
    traffic: str = setting("kind of traffic", default="incast")
    leaves: int | None = setting(
        "number of leaf switches; the receiver is on the last one",
        low=plans.LEAVES[0],
        high=plans.LEAVES[1],
        topologies=("leafspine",),
        default=3,
    )
    spines: int | None = setting(
        "number of spine switches",
        low=plans.SPINES[0],
        high=plans.SPINES[1],
        topologies=("leafspine",),
        default=2,
    )
    k: int | None = setting(
        "number of pods, which must be even; the receiver is in the last one",
        low=plans.PODS[0],
        high=plans.PODS[1],
        topologies=("fattree",),
        default=4,
    )
    uplink_mbit: float | None = setting(
        "rate of each link between switches, whose ports have the same buffer as the bottleneck; "
        "0: not limited",
        unit="Mbit/s",
        low=0,
        high=100_000,
        topologies=("leafspine", "fattree"),
        default=0.0,
    )
    shaped: float | None = setting(
        "part of rate_mbit to which the ports to the receivers are shaped, together; the agents govern these "
        "queues, and not that of the switch above as a far queue; 0: they are not shaped",
        low=0,
        high=1,
        topologies=("tor",),
        default=0.0,
    )
    senders: int = setting("number of sending hosts", low=1, high=250, example=16)
    rate_mbit: float = setting("rate of the bottleneck port", unit="Mbit/s", low=1, high=100_000, example=50)
    buffer_bytes: int = setting(
        "buffer size of the bottleneck port", unit="bytes", low=1514, high=1 << 30, example=125_000
    )
    shared_buffer: bool = setting(
        "the buffer is a memory that the shallow ports of a switch share: each may hold as much as is free "
        "(dynamic thresholds, alpha = 1); only with Open vSwitch's userspace datapath",
        default=False,
    )
    rtt_ms: float = setting(
        "delay added to the round trip between each sender and the receiver; 0: none",
        unit="ms",
        low=0,
        high=1000,
        default=0.0,
    )
    host_rate_mbit: float = setting(
        "rate at which each host sends, from a queue of its own, like its network card; 0: not limited",
        unit="Mbit/s",
        low=0,
        high=100_000,
        default=0.0,
    )
    hosts: str = setting(
        "what the hosts are like: modern, this kernel as it is; period, with the least retransmission "
        "timeout, quick ACKs, no tail-loss probe, and Reno",
        choices=PROFILES,
        default=MODERN,
    )
    cc: str = setting(
        "TCP congestion control of every host: its name in the kernel, or dctcp, d2tcp, hstcp, ctrl_reno or "
        "ctrl_cubic, which are loaded for the run where the kernel lacks them",
        default="cubic",
        default_text="`cubic`; `reno` with hosts = period",
    )
    sender_cc: tuple[str, ...] = setting(
        "TCP congestion controls of the senders in turn, in place of cc, which is then the receivers'",
        default=(),
        default_text="`cc`",
        example=("cubic", "reno"),
    )
    sack: bool = setting("hosts use selective acknowledgements", default=True)
    timestamps: bool = setting("hosts use TCP timestamps", default=True)
    ecn: bool = setting("hosts ask for explicit congestion notification (ECN)", default=False)
    initcwnd: int = setting(
        "congestion window with which every connection begins; 0: the kernel's default, which is 10",
        unit="segments",
        low=0,
        high=1000,
        default=0,
    )
    receive_buffer: int = setting(
        "receive buffer of every connection, which does not grow, and of which TCP announces about half; "
        "0: as the kernel has it",
        unit="bytes",
        low=0,
        high=1 << 30,
        default=0,
    )
    syn: str = setting(
        "how the controller handles SYNs, unless its configuration file says so",
        choices=("copy", "hold"),
        default="copy",
    )
    way: str = setting(
        "how the controller governs the switches, unless its configuration file says so; windows: only "
        "their agents connect to it",
        choices=("windows", "normal", "paths"),
        default="paths",
    )
    rto_min_ms: float = setting(
        "minimum retransmission timeout of every host; 0: the kernel's default, which is 200 ms",
        unit="ms",
        low=0,
        high=60_000,
        default=0.0,
        default_text="0; with hosts = period the time between two ticks of the kernel",
    )
    batch_loss: bool = setting(
        "when a queue refuses a packet, Open vSwitch drops the rest of its batch too; no: only "
        "the refused packet is lost",
        default=False,
    )
    offloads: bool = setting(
        "hosts leave segmentation and checksums to others, as real hosts do; only with Open vSwitch's kernel "
        "datapath, and without rtt_ms",
        default=True,
    )
    capture: bool = setting("capture the packets of all hosts, and check every ACK", default=False)
    trace_flows: int = setting(
        "number of flows of which the report draws what TCP did: the one with most bytes, and the slowest "
        "others; 0: none. Takes processor time",
        low=0,
        high=50,
        default=0,
    )
    trace_interval_ms: float = setting(
        "time between two samples of each sender's connections and of the queue, for trace_flows",
        unit="ms",
        low=1,
        high=1000,
        default=5.0,
    )
    seed: int = setting("seed of all random numbers", low=0, high=(1 << 31) - 1, default=1)

    @property
    def plan(self) -> plans.Plan:
        """The network's plan: which hosts send and receive, and where the bottleneck is."""
        return TOPOLOGIES[self.topology](self)

    @property
    def far_queues(self) -> str:
        """The section of the configuration about the bottleneck where no agent sees it, which is an uplink
        if several switches are behind it; "": one sees it, or ports behind it are `shaped` instead.
        """
        ports = {} if self.shaped else self.plan.far_ports
        if len(ports) > 1:
            members = ", ".join(f"{switch}/{port}" for switch, port in ports.items())
            return (
                f"[uplink.tor]\nrate = {self.rate_mbit:g}mbit\nbuffer = {self.buffer_bytes}\n"
                f"ports = {members}\n"
            )
        lines = (
            f"{port} = rate {self.rate_mbit:g}mbit buffer {self.buffer_bytes}" for port in ports.values()
        )
        return "".join(f"[far_queues]\n{line}\n" for line in lines)

    @property
    def governed_ports(self) -> Mapping[str, str]:
        """Of each of our switches behind a bottleneck that no agent sees, the queue that its agent governs:
        a far queue, or that of a port that is `shaped`. {}: an agent sees the bottleneck.
        """
        plan = self.plan
        if isinstance(plan, plans.BehindTor) and self.shaped:
            return plan.receiver_ports
        return {switch: far_name(port) for switch, port in plan.far_ports.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting that its topology and its workload have, as `scenario.build` takes it."""
        return {each.name: getattr(self, each.name) for each in fields(self) if belongs(each, self.topology)}

    @property
    def controls(self) -> tuple[str, ...]:
        """The TCP congestion controls of all hosts, each once."""
        return tuple(dict.fromkeys((self.cc, *self.sender_cc)))

    @property
    def receiver_rtts_ms(self) -> tuple[float, ...]:
        """The delay of each receiver, in addition to `rtt_ms`; (): none. Only a dumbbell has it."""
        return ()

    @property
    def tenants(self) -> Mapping[str, tuple[str, ...]]:
        """The sending hosts of each tenant; {}: the scenario has no tenants."""
        return {}

    @property
    def weights(self) -> Mapping[str, int]:
        """The weights of tenants; a tenant without one has 1."""
        return {}

    @property
    def priorities(self) -> Mapping[str, int]:
        """The sending hosts whose flows have another priority within their tenant than 100."""
        return {}

    @property
    def dscp_priorities(self) -> Mapping[int, int]:
        """The same priorities by the DSCP that these flows have in their packets."""
        return {}

    @property
    def window_bytes(self) -> float:
        """What a single flow can have under way: what the link carries in a round trip, and the buffer."""
        return (
            self.rate_mbit * 125 * (self.rtt_ms + max(self.receiver_rtts_ms, default=0)) + self.buffer_bytes
        )

    @property
    def applications(self) -> int:
        """Number of applications; each has a receiver where the topology may have several receivers."""
        return 1

    def check(self) -> None:
        """Compare settings with each other. `UserError` when they contradict; subclasses check theirs too."""
        try:
            self.plan.senders(self.senders)
        except ValueError as error:
            raise UserError(str(error), "change senders, or the settings of the network") from None
        echoing = next((name for name in self.sender_cc if needs_ecn(name)), None)
        if echoing is not None and not needs_ecn(self.cc):
            known = " or ".join(name for name in OWN if needs_ecn(name))
            raise UserError(
                f"senders use {echoing} and receivers {self.cc}, which does not echo every mark",
                f"set cc = {known}",
            )
        if self.way != "paths" and self.plan.loops:
            raise UserError(
                f"way {self.way} cannot run on topology {self.topology}: it has loops, in which learning "
                "switches flood for ever",
                "set way = paths, or choose another topology",
            )
        if self.way != "paths" and self.syn == "hold":
            raise UserError(f"switches hold no SYNs with way = {self.way}", "set way = paths, or syn = copy")


def belongs(each: Any, topology: object) -> bool:
    """Whether a topology has this setting; with an unknown topology, whether all topologies have it."""
    topologies = each.metadata["topologies"]
    return topologies is None or topology in topologies


def type_of(each: Any) -> str:
    """The type of a field's value when it is given: ``str``, ``bool``, ``int``, ``float``, or a tuple."""
    return str(each.type).removesuffix(" | None")
