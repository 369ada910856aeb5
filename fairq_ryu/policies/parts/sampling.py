"""Queue samples at a policy's interval, combined from samples that are read more often."""

from __future__ import annotations

from fairq_ryu.model import QueueSample

# Tolerance for early samples, as a fraction of the interval: pollers do not keep time exactly.
_EARLY = 0.1


class Sampling:
    """The samples of one port since the last one that was passed on."""

    def __init__(self) -> None:
        self._passed_at: float | None = None
        self._read_at = 0.0
        self._peak = 0
        # Bytes times seconds, and seconds, since the last sample that was passed on.
        self._area = 0.0
        self._span = 0.0

    def restart(self, now: float) -> None:
        """A sample was passed on without :meth:`due`, at ``now``."""
        self._passed_at = self._read_at = now
        self._peak, self._area, self._span = 0, 0.0, 0.0

    def due(self, sample: QueueSample, interval: float, now: float) -> QueueSample | None:
        """The sample to pass on; None until ``interval`` seconds have passed since the last. Its ``peak`` and
        ``mean`` cover the whole time since then.
        """
        if self._passed_at is None:
            self.restart(now)
            return sample
        passed = now - self._read_at
        self._read_at = now
        self._area += sample.mean * passed
        self._span += passed
        self._peak = max(self._peak, sample.peak)
        if now - self._passed_at < (1 - _EARLY) * interval:
            return None
        mean = self._area / self._span if self._span else sample.mean
        due = sample._replace(peak=self._peak, mean=mean)
        self.restart(now)
        return due
