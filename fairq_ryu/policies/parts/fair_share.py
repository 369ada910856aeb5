"""The fair share m_f of AFQ and AFCD, worked out in the controller from what agents report.

Its arithmetic is that of the law in the switch (:mod:`.fair_share_steps`): for updates at the same times both
have the same fair share, and a test drives both. The controller updates it less often. A move by Eq. 1 is
made for the time of one update in the switch, so a later one is reduced in proportion: otherwise the share of
many flows would swing.
"""

from __future__ import annotations

from typing import Protocol

from fairq_ryu.model import QueueSample
from fairq_ryu.policies.parts import fair_share_steps as steps
from fairq_ryu.queue_law_spec import SHADOW

_NS = 1_000_000_000


class Counted(Protocol):
    """What an agent has counted (:class:`fairq_ryu.channel.queue_law.QueueLawState`): flows and samples in
    the shadow buffer, and Q_t, the length that the law aims at, bytes.
    """

    @property
    def flows(self) -> int: ...

    @property
    def samples(self) -> int: ...

    @property
    def target_bytes(self) -> int: ...


class FairShare:
    """The fair share of one port. ``fair_q16`` is m_f in 1/65536 samples; 0: not known. ``interval``: between
    two updates, seconds; ``update``: tau_q, that in the switch. ``by_queue``: the share follows the queue
    (Eq. 1 and 5); otherwise it is that of the samples (Eq. 4).
    """

    def __init__(self, interval: float, update: float, by_queue: bool = True) -> None:
        self._interval, self._by_queue = interval, by_queue
        self._update_ns = round(update * _NS)
        self.fair_q16 = 0
        self._old_bytes = 0
        self._updated_at: float | None = None

    def queue_read(self, sample: QueueSample, counted: Counted | None, now: float) -> None:
        """The queue was read. ``counted``: the last report about the law; None: there is none yet."""
        elapsed = None if self._updated_at is None else now - self._updated_at
        # A reading that comes a little early counts: the next one is an interval later.
        if counted is None or not counted.flows or (elapsed is not None and elapsed < 0.9 * self._interval):
            return
        self._updated_at = now
        self.update(sample, counted, 0 if elapsed is None else round(elapsed * _NS))

    def update(self, sample: QueueSample, counted: Counted, elapsed_ns: int) -> None:
        """One update, so long after the last one."""
        if not self._by_queue or not self.fair_q16 or counted.samples < SHADOW:
            self.fair_q16 = steps.share_of_samples(counted.samples, counted.flows)
        else:
            moved = self.fair_q16 + self._move(sample, counted.target_bytes, elapsed_ns)
            self.fair_q16 = steps.bounded(moved, SHADOW, counted.flows)
        self._old_bytes = sample.backlog

    def _move(self, sample: QueueSample, target: int, elapsed_ns: int) -> int:
        """Eq. 1, reduced by how much later this update is than one in the switch."""
        move = steps.move(self._old_bytes, sample.backlog, target)
        step_ns = steps.step_ns(self.fair_q16, max(1, sample.rate), self._update_ns)
        if elapsed_ns <= step_ns:
            return move
        reduced = abs(move) * step_ns // elapsed_ns
        return reduced if move >= 0 else -reduced
