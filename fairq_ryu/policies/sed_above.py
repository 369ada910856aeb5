"""SED where the switch sets the base windows: what it runs, and the controller's windows above that.

CNG and NOM, the base windows of all flows, ``linger`` and the anticipation of volleys are in the switch:
``agent/bpf/laws/sed_base.h`` decides at the packet that makes them necessary. The controller has what the
switch cannot know: deadlines, remaining sizes, and which flows are paused. It governs whenever the switch
limits flows: by the same thresholds, or, if they did not show it, by the switch's report.
"""

from __future__ import annotations

from fairq_ryu.law_spec import NO_FLAGS, LawFlags, LawKind, LawSpec
from fairq_ryu.model import FlowKey, QueueSample, Thresholds, WindowPlan
from fairq_ryu.policies.parts.allocation import base_window
from fairq_ryu.policies.sed_port import SedPort
from fairq_ryu.policies.sed_settings import SedParameters

# A port whose flows have sent within this time, seconds, is in use. Without packets a law in the switch does
# not run, and what it reports is old.
_RECENT = 0.2


def base_law(parameters: SedParameters) -> LawSpec | None:
    """The law of the switch; None: the controller sets the base windows as well."""
    p = parameters
    if p.where == "controller":
        return None
    return LawSpec(
        LawKind.SED_BASE,
        flags=LawFlags.ANTICIPATE if p.anticipate else NO_FLAGS,
        interval_us=round(p.switch_interval * 1e6),
        linger_us=round(p.linger * 1e6),
        target_ppm=round(p.threshold * 1e6),
        calm_ppm=round(p.nom * p.threshold * 1e6),
        first_window=p.initial_window,
        limiting_segments=p.base_segments,
        syn_allowance=p.syn_allowance,
    )


class SedAbove(SedPort):
    """The windows of single flows, above the base windows of the switch."""

    def __init__(self, parameters: SedParameters, drops: bool = False) -> None:
        super().__init__(parameters, drops)
        self._limiting = False
        self._active = 0

    def queue_sampled(self, sample: QueueSample, flows: int, now: float) -> WindowPlan | None:
        """As without the switch's law."""
        self._active = sample.active
        return super().queue_sampled(sample, flows, now)

    def limited(self, limiting: bool, now: float) -> WindowPlan | None:
        """The base windows are in force, or not: while they are, flows need their shares of the total."""
        self._limiting = limiting
        if self.governing or self.limit <= 0 or not self._base_windows_hold(now):
            return None
        return self._govern(now)

    def _base_windows_hold(self, now: float) -> bool:
        if not self._limiting:
            return False
        return self._active > 0 or any(now - entry.progressed_at < _RECENT for entry in self.gif)

    def _is_over(self, thresholds: Thresholds, now: float) -> bool:
        """Not while the switch limits flows: each of them would be left with its base window."""
        return super()._is_over(thresholds, now) and not self._base_windows_hold(now)

    def _port_window(self, key: FlowKey) -> int:
        """The switch counts in segments of the flow itself."""
        entry = self.gif.get(key)
        if entry is None:
            return super()._port_window(key)
        return base_window(entry.flow.mss, entry.flow.step, self.parameters.base_segments)
