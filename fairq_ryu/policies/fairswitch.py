"""FairSwitch, FairQ's prototype in hardware: each flow has the target divided by the number of flows, plus a
trim.

Abdelmoniem and Bensaou built FairQ into a NetFPGA card. The law of its code is not Algorithm 1: the window of
a flow is ``max(2048, target / n) + trim``, and the trim follows the queue in steps of fixed size. The switch
works it out by itself (``agent/bpf/laws/fairswitch.h``, with its twin in :mod:`.switch_laws`). In the
controller, :class:`FairSwitchPort` runs the twin at each reading of the queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import LawKind, LawSpec, trim_step
from fairq_ryu.model import NO_WINDOWS, FlowInfo, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies.base import Display, Parameters, PortLaw
from fairq_ryu.policies.common_settings import switch_interval, turns, turns_flag, typed_parameters, where
from fairq_ryu.policies.parts.linger import Linger
from fairq_ryu.policies.parts.typical_segment import TypicalSegment
from fairq_ryu.policies.switch_laws import MAX_POOL, Law, LawInput, LawParameters
from fairq_ryu.setting import Setting

# Between samples, a larger pool is installed only if it is larger by this factor.
_MIN_RAISE = 1.15


@dataclass(frozen=True, slots=True)
class FairSwitchParameters:
    """``interval`` of the controller and ``switch_interval`` T, ``base_rtt`` and ``linger`` in s; ``alpha`` a
    fraction of the buffer.
    """

    interval: float = 0.002
    alpha: float = 0.25
    base_rtt: float = 0.001
    linger: float = 2.0
    where: str = "switch"
    switch_interval: float = 0.0002
    turns: str = "off"


class FairSwitchPort(PortLaw):
    """FairSwitch on one port, in the controller: the twin of the C law, with a tick at each sample.

    A tick counts for all intervals T since the last one, as a late tick does in the switch. Installed is a
    pool, the window of one flow times the number of flows, so that the switch divides it by the number that
    it counts at that moment.
    """

    def __init__(self, parameters: FairSwitchParameters) -> None:
        self.parameters = parameters
        self.law: Law | None = None
        self.sample: QueueSample | None = None
        self.active = 0
        self.segments = TypicalSegment()
        self.linger = Linger(parameters.linger)
        self._pool = 0
        # The integral of the queue up to a time, as the law needs it.
        self._byte_ns = self._now_ns = 0

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """One flow more: the pool is raised at once if the minimum windows of all flows need it."""
        self.segments.started(flow)
        self.linger.flow_started()
        self.active += 1
        if self.sample is None:
            return None
        if self.law is None:
            self.law = Law(self._values(self.sample))
            self._tick(self.sample, now)
        elif self._wanted(self.law) <= self._pool * _MIN_RAISE:
            return None
        return self._plan(self.law)

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The next sample has one flow less."""
        self.segments.ended(flow)
        return None

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """One tick. ``sample.limit`` 0: no windows."""
        self.sample, self.active = sample if sample.limit > 0 else None, sample.active
        flows = flows or sample.active
        if self.sample is None or (self.law is None and not flows) or self.linger.is_over(flows, now):
            self.law = None
            return NO_WINDOWS
        values = self._values(sample)
        if self.law is None:
            self.law = Law(values)
        self.law.parameters = values  # the buffer or the rate may have changed: the trim stays
        self._tick(sample, now)
        return self._plan(self.law)

    def settled(self, now: float) -> WindowPlan | None:
        """The switch has counted the replayed flows in the sample before them."""
        if self.sample is None or self.law is None:
            return None
        self.active = self.sample.active
        return self._plan(self.law)

    def display(self) -> Display:
        """The queue length that the law aims at."""
        return Display(target=None if self.sample is None else self.parameters.alpha * self.sample.limit)

    def _values(self, sample: QueueSample) -> LawParameters:
        p = self.parameters
        return LawParameters(
            LawKind.FAIRSWITCH,
            sample.rate,
            sample.limit,
            max(1, sample.limit * round(p.alpha * 1e6) // 1_000_000),
            interval_ns=round(p.switch_interval * 1e9),
            base_rtt_ns=round(p.base_rtt * 1e9),
            trim_step=trim_step(sample.rate, p.switch_interval),
        )

    def _tick(self, sample: QueueSample, now: float) -> None:
        assert self.law is not None
        now_ns = round(now * 1e9)
        self._byte_ns += round(sample.mean * max(0, now_ns - self._now_ns))
        self._now_ns = now_ns
        self.law.saw_segment(self.segments.typical()[0], 0, now_ns)
        self.law.tick(LawInput(now_ns, self._byte_ns, sample.backlog, self.active))

    def _wanted(self, law: Law) -> int:
        n = max(1, self.active)
        return min(n * law.window(n, 0, 0), MAX_POOL)

    def _plan(self, law: Law) -> WindowPlan:
        self._pool = self._wanted(law)
        return WindowPlan(pool=self._pool)


class FairSwitch:
    """The FairSwitch policy."""

    name: ClassVar[str] = "fairswitch"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting(
            "fairswitch",
            "interval",
            0.002,
            "s",
            "Time between two readings of the queue, where the law runs in the controller.",
            0.0005,
            10,
        ),
        Setting("fairswitch", "alpha", 0.25, "", "Target queue as a fraction of the buffer.", 0.01, 1),
        Setting(
            "fairswitch",
            "base_rtt",
            0.001,
            "s",
            "Round-trip time with empty queues; no window exceeds the buffer plus this time multiplied by "
            "the rate.",
            0,
            1,
        ),
        Setting(
            "fairswitch",
            "linger",
            2.0,
            "s",
            "In the controller: the windows of a port are removed when it has had no flows for this long.",
            0,
            3600,
        ),
        where("fairswitch"),
        switch_interval(
            "fairswitch",
            "T: the trim moves by the bytes that the port sends in this time, divided by 125.",
        ),
        turns("fairswitch"),
    )

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[fairswitch]``."""
        self.parameters = typed_parameters(FairSwitchParameters, parameters)
        self.interval = self.parameters.interval

    def port_law(self, port: PortKey) -> FairSwitchPort:
        """The law for one port, where it runs in the controller."""
        return FairSwitchPort(self.parameters)

    def switch_law(self, port: PortKey) -> LawSpec | None:
        """The law for one port, where it runs in the switch; None: it does not."""
        p = self.parameters
        if p.where == "controller":
            return None
        return LawSpec(
            LawKind.FAIRSWITCH,
            flags=turns_flag(p.turns),
            interval_us=round(p.switch_interval * 1e6),
            base_rtt_us=round(p.base_rtt * 1e6),
            target_ppm=round(p.alpha * 1e6),
        )
