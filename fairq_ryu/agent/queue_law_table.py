"""The queue laws that controllers have added, and the ports whose rules refer to them.

Their life is that of all :mod:`.law_objects`. Pure but for the programs.
"""

from __future__ import annotations

from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.law_objects import LawObjects, refused
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.rule_table import PortOrFlow
from fairq_ryu.channel import window_law
from fairq_ryu.channel.queue_law import QueueLawState
from fairq_ryu.far_queue import is_far
from fairq_ryu.model import WindowRule
from fairq_ryu.queue_law_spec import QueueLawSpec

_U32 = 0xFFFFFFFF


def parameters(spec: QueueLawSpec, limits: QueueLimits) -> Any:
    """The parameters of a law on a port, an ``fq_queue_law``, without the seed and the table, which its
    program chooses. ``limits`` has a buffer and a rate.
    """
    needs = {"ECN": spec.ecn, "FLOWS": spec.keeps_flows, "BINS": spec.keeps_bins}
    law = layout.fq_queue_law(
        rate=limits.rate,
        limit_bytes=limits.limit,
        unit=spec.unit,
        flags=sum(layout.CONSTANTS[f"FQ_QLAW_{name}"] for name, wanted in needs.items() if wanted),
        kind=spec.kind,
    )
    layout.fill_own(spec, law, limits.limit, limits.rate)
    return law


def own_state(spec: QueueLawSpec, state: Any) -> Any | None:
    """What a law has of its own in a state; None: nothing."""
    name = f"{spec.name}_state"
    return layout.own(name, state) if name in layout.STRUCTS else None


class QueueLawTable(LawObjects[QueueLawSpec]):
    """At most ``capacity`` laws. It is a :class:`~fairq_ryu.agent.rule_table.RuleSink`: the table of their
    rules installs these through it.
    """

    noun = "queue law"
    parts = "kind of a queue law"

    def __init__(self, sink: BridgePrograms, capacity: int) -> None:
        super().__init__(sink, capacity)
        self._sink = sink
        self._slots: dict[int, int] = {}  # ports by the slots of their rules
        self._counted: dict[int, tuple[int, int]] = {}  # counts of its port when a slot was reset
        self._last: dict[int, tuple[int, int]] = {}  # counts of a slot whose rule was removed

    def _wrong(self, spec: QueueLawSpec) -> str | None:
        return spec.wrong()

    def _put(self, port: int, law: int, spec: QueueLawSpec, limits: QueueLimits, expires_ns: int) -> None:
        if is_far(port):
            raise refused(
                window_law.ERROR_LAW_NO_QUEUE, f"port {port} is a far queue: its packets have left it"
            )
        try:
            self._sink.install_queue_law(port, law, parameters(spec, limits), expires_ns)
        except BaseException:
            self._unlink(port)  # the programs have ended the law that the port had
            raise

    def _take_away(self, port: int) -> None:
        self._sink.remove_queue_law(port)

    def states(self, law: int) -> list[QueueLawState]:
        """The state of a law, or of all. Raises :class:`OpenFlowError` if there is none."""
        return [self._state(each) for each in self._asked(law)]

    def _state(self, law: int) -> QueueLawState:
        spec, port = self._laws[law], self._port_of.get(law)
        state = None if port is None else self._sink.queue_law_state(port)
        if port is None or state is None:
            return QueueLawState(law, port or 0, spec.kind, spec.shown_variant, 0)
        limits, counts = self._limits[port], state.counts
        times = spec.delay_times(limits.limit, limits.rate)
        return QueueLawState(
            law=law,
            port=port,
            kind=spec.kind,
            variant=spec.shown_variant,
            limits=spec.acting_on(state, own_state(spec, state), limits.limit),
            judged=counts.judged,
            dropped=counts.dropped,
            marked=counts.marked,
            not_ect=counts.not_ect,
            unmarked=counts.unmarked,
            fair_q16=state.fair_q16,
            flows=state.flows,
            samples=state.filled,
            sample_every=spec.sampling(limits.rate),
            target_bytes=min(_U32, spec.queue_target(limits.limit, limits.rate)),
            delay_us=min(_U32, state.backlog * 1_000_000 // limits.rate),
            target_us=times.target_us,
            interval_us=times.interval_us,
        )

    # The rules that refer to them

    def install_rule(self, target: PortOrFlow, window: WindowRule, expires_ns: int, slot: int) -> None:
        """Put the law that a rule refers to in force on its port. Raises :class:`OpenFlowError` if that
        cannot be, and changes nothing then.
        """
        assert isinstance(target, int)  # the decoder refuses a flow's rule with a queue law
        before = self._counts(target)
        self._put_in_force(target, window.bytes, expires_ns)
        if slot not in self._slots:
            self._slots[slot], self._counted[slot] = target, before
        self._last.pop(slot, None)

    def remove_rule(self, target: PortOrFlow) -> None:
        """Remove a rule; a law that it referred to stays, without a port."""
        assert isinstance(target, int)
        for slot in [slot for slot, port in self._slots.items() if port == target]:
            self._last[slot] = self.counters(slot)  # for the report of its removal
            del self._slots[slot]
        self._release(target)

    def counters(self, slot: int) -> tuple[int, int]:
        """The number of packets that the laws of a rule have judged, and of those that they dropped or
        marked.
        """
        if slot not in self._slots:
            return self._last.get(slot, (0, 0))
        judged, acted_on = self._counts(self._slots[slot])
        before = self._counted[slot]
        return judged - before[0], acted_on - before[1]

    def reset_counters(self, slot: int) -> None:
        """Start the counters of a slot at 0; those of a new rule do so when it is installed."""
        if slot in self._slots:
            self._counted[slot] = self._counts(self._slots[slot])

    def _counts(self, port: int) -> tuple[int, int]:
        counts = self._sink.queue_law_counts(port)
        return int(counts.judged), int(counts.dropped + counts.marked)
