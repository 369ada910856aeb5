"""FairQ: equal windows for all flows of a port, adjusted so that its queue stays at a target.

Abdelmoniem and Bensaou, "FairQ: Fair and Fast Rate Allocation in Data Centers" (earlier RWNDQ,
CloudNet 2015), Algorithm 1, in its pool form: the paper's window per flow ``w`` times the number of
flows ``n`` is one pool of bytes, and the switch divides it at every ACK. A flow that comes or goes
leaves the pool as it is, which is the paper's ``w * n / (n + 1)``; each update adds ``incr`` to the
pool, which is the paper's ``w += incr / n``; slow start adds two segments for each flow.

Differences to the paper: the pool is limited to what the port can hold (its buffer and ``base_rtt`` times its
rate), because windows that no sender fills grow without bound and cause a burst when one does; and what
a late slow start has put into the queue above the target is subtracted at once when it ends, because the
law itself would take hundreds of milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fairq_ryu.law_spec import NO_FLAGS, Gain, LawFlags, LawKind, LawSpec
from fairq_ryu.model import LARGEST_WINDOW, NO_WINDOWS, FlowInfo, PortKey, QueueSample, WindowPlan
from fairq_ryu.policies.base import Display, Parameters, PortLaw
from fairq_ryu.policies.common_settings import switch_interval, turns, turns_flag, typed_parameters, where
from fairq_ryu.policies.parts.linger import Linger
from fairq_ryu.policies.parts.typical_segment import TypicalSegment
from fairq_ryu.setting import Setting

# Between updates, a higher floor is installed only if it is higher by this factor.
_MIN_RAISE = 1.15


@dataclass(frozen=True, slots=True)
class FairQParameters:
    """``interval`` T in s, ``increments`` M, ``alpha`` a fraction of the buffer, ``base_rtt`` and
    ``linger`` in s.
    """

    interval: float = 0.002
    increments: int = 8
    alpha: float = 0.25
    slow_start: bool = True
    base_rtt: float = 0.001
    linger: float = 2.0
    floor_segments: int = 2
    where: str = "switch"
    gain: str = "ours"
    switch_interval: float = 0.0002
    turns: str = "off"


class FairQPort(PortLaw):
    """FairQ on one port. ``pool`` is the paper's ``n * w`` in bytes."""

    def __init__(self, parameters: FairQParameters) -> None:
        self.parameters = parameters
        self.segments = TypicalSegment()
        self.active = 0
        self.limit = 0
        self.rate = 0
        self.linger = Linger(parameters.linger)
        self._reset()

    def _reset(self) -> None:
        self.pool: float | None = None
        self.slow_start = False
        self.lifted = False
        self.installed_pool = 0.0
        self.incr = 0.0
        self.count = 0

    def _start(self) -> None:
        """The paper's n == 0: a pool of the target's size, and slow start."""
        self._reset()
        self.pool = self.parameters.alpha * self.limit
        self.slow_start = self.parameters.slow_start

    def flow_started(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The first flow of a port gets its pool at once. Later flows only raise the floor: the first windows
        of a volley determine the size of its segments.
        """
        self.segments.started(flow)
        self.linger.flow_started()
        self.active += 1
        if self.limit <= 0:
            return None
        if self.pool is None:
            self._start()
            return self._plan()
        if self._floor() > self.installed_pool * _MIN_RAISE:
            return self._plan()
        return None

    def flow_ended(self, flow: FlowInfo, flows: int, now: float) -> WindowPlan | None:
        """The pool stays: the next volley may start at once, and should meet it."""
        self.segments.ended(flow)
        return None

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """One increment; every M-th adjusts the pool. ``sample.limit`` 0: no windows."""
        self.limit, self.rate, self.active = sample.limit, sample.rate, sample.active
        flows = flows or sample.active
        if sample.limit <= 0 or (self.pool is None and not flows) or self.linger.is_over(flows, now):
            self._reset()
            return NO_WINDOWS
        target = self.parameters.alpha * sample.limit
        if self.pool is None or not sample.active:
            self._start()
            return self._plan()
        segment, _ = self._typical()
        queue = max(sample.mean, sample.backlog)
        # While the floor is installed, the queue depends on the floor and not on the pool.
        frozen = self.lifted and queue > target
        if not frozen:
            self.incr += (1 - queue / target) * segment / self.parameters.increments
        self.count += 1
        if self.slow_start and queue >= target and not self.lifted:
            self.slow_start = False
            # The pool started at the target; the queue above the target is what slow start added.
            self.pool = max(self.pool - (queue - target), target)
            self.incr, self.count = 0.0, 0
            return self._plan()
        if self.count < self.parameters.increments:
            lift = self._floor()
            return self._plan() if self.lifted or lift > self.installed_pool * _MIN_RAISE else None
        if self.slow_start and not frozen:
            self.pool += 2 * segment * sample.active
        else:
            self.pool += self.incr
        self.incr, self.count = 0.0, 0
        return self._plan()

    def display(self) -> Display:
        """The queue length that the pool is adjusted for."""
        return Display(target=self.parameters.alpha * self.limit if self.limit > 0 else None)

    def _floor(self) -> float:
        """Minimum of the installed pool, bytes: ``floor_segments`` for each flow, rounded up to the window
        step, as far as the buffer holds them; one segment in any case, or senders stall.
        """
        flows, (segment, step) = max(1, self.active), self._typical()
        window = -(-self.parameters.floor_segments * segment // step) * step
        return max(min(flows * window, self.limit), flows * segment)

    def _typical(self) -> tuple[int, int]:
        """Segment size and window step of most flows, bytes. The switch ensures each flow's own minimum."""
        return self.segments.typical()

    def _plan(self) -> WindowPlan:
        assert self.pool is not None
        ceiling = self.limit + self.rate * self.parameters.base_rtt
        floor = self._floor()
        self.pool = min(self.pool, ceiling, max(1, self.active) * LARGEST_WINDOW)
        # No window is less than a segment: a smaller pool would only delay its growth.
        self.pool = max(self.pool, self._typical()[0])
        # The floor raises what is installed, not the pool: after a volley, the pool is what it was.
        self.lifted = floor > self.pool
        self.installed_pool = max(self.pool, floor)
        return WindowPlan(pool=round(self.installed_pool))


class FairQ:
    """The FairQ policy."""

    name: ClassVar[str] = "fairq"
    settings: ClassVar[tuple[Setting, ...]] = (
        Setting("fairq", "interval", 0.002, "s", "T: time between two readings of the queue.", 0.0005, 10),
        Setting(
            "fairq", "increments", 8, "", "M: number of readings between two changes of the pool.", 1, 1000
        ),
        Setting("fairq", "alpha", 0.25, "", "Target queue as a fraction of the buffer.", 0.01, 1),
        Setting(
            "fairq",
            "slow_start",
            True,
            "",
            "Increase the pool fast until the queue first reaches the target.",
        ),
        Setting(
            "fairq",
            "base_rtt",
            0.001,
            "s",
            "Round-trip time with empty queues. The pool never exceeds the buffer plus this time "
            "multiplied by the rate; where the law runs in the switch, a longer time is measured.",
            0,
            10,
        ),
        Setting(
            "fairq",
            "linger",
            2.0,
            "s",
            "The windows of a port are removed when it has had no flows for this long.",
            0,
            3600,
        ),
        Setting(
            "fairq",
            "floor_segments",
            2,
            "segments",
            "Minimum window of a flow, as long as the buffer can hold the windows of all flows.",
            1,
            10,
        ),
        where("fairq"),
        Setting(
            "fairq",
            "gain",
            "ours",
            "",
            "How the pool follows the queue in the switch.",
            choices=("paper", "listing", "ours"),
        ),
        switch_interval("fairq"),
        turns("fairq"),
    )

    def __init__(self, parameters: Parameters) -> None:
        """``parameters`` are the settings of section ``[fairq]``."""
        self.parameters = typed_parameters(FairQParameters, parameters)
        self.interval = self.parameters.interval

    def port_law(self, port: PortKey) -> FairQPort:
        """The law for one port, where it runs in the controller."""
        return FairQPort(self.parameters)

    def switch_law(self, port: PortKey) -> LawSpec | None:
        """The law for one port, where it runs in the switch; None: it does not."""
        p = self.parameters
        if p.where == "controller":
            return None
        # The gain `ours` is as fast without, and would be shown in this mode for ever.
        starts_slowly = p.slow_start and p.gain != "ours"
        return LawSpec(
            LawKind.FAIRQ,
            Gain[p.gain.upper()],
            (LawFlags.SLOW_START if starts_slowly else NO_FLAGS) | turns_flag(p.turns),
            interval_us=round(p.switch_interval * 1e6),
            base_rtt_us=round(p.base_rtt * 1e6),
            target_ppm=round(p.alpha * 1e6),
            increments=p.increments,
            floor_segments=p.floor_segments,
        )
