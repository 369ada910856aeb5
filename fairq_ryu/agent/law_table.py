"""The window laws that controllers have added, and the ports whose rules refer to them.

Their life is that of all :mod:`.law_objects`. Pure but for the programs: what they get is worked out here.
"""

from __future__ import annotations

from typing import Any

from fairq_ryu import far_queue
from fairq_ryu.agent import layout
from fairq_ryu.agent.law_objects import LawObjects, refused
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.qdisc import FAR_KIND, QueueLimits
from fairq_ryu.agent.rule_table import PortOrFlow
from fairq_ryu.agent.turn_room import frame_of
from fairq_ryu.channel import window_law
from fairq_ryu.channel.window_law import LawState
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.model import WindowKind, WindowRule

# The bytes by which a law counts a flow while it has seen none: one Ethernet frame's payload.
_SEGMENT = 1460


def syn_allowance(spec: LawSpec, limit: int) -> int:
    """The flows of a port with this buffer (bytes) that may count before their handshakes are complete. Where
    new connections take turns, the buffer lets as many begin at once as it has room for.
    """
    turns = spec.has_pool and spec.turns
    return spec.syn_allowance + (limit // frame_of(_SEGMENT) if turns else 0)


def parameters(spec: LawSpec, limits: QueueLimits) -> Any:
    """The parameters of a law on a port, an ``fq_law``. ``limits`` has a buffer and a rate."""
    limit = far_queue.room(limits.limit) if limits.kind == FAR_KIND else limits.limit
    target = spec.target(limit)
    round_trip = spec.base_rtt_us / 1e6 + target / limits.rate
    gain = round(spec.loop_gain * spec.interval_us / 1e6 / round_trip * 65536)
    law = layout.fq_law(
        rate=limits.rate,
        interval_ns=spec.interval_us * 1000,
        base_rtt_ns=spec.base_rtt_us * 1000,
        limit=limit,
        target=target,
        gain_q16=max(1, min(65535, gain)) if spec.loop_gain else 0,
        young_bytes=spec.young_below,
        syn_allowance=syn_allowance(spec, limit),
        kind=spec.kind,
        flags=_flags(spec),
        first_window=spec.first_window,
        floor_segments=spec.floor_segments,
    )
    layout.fill_own(spec, law, limit, limits.rate)
    return law


def _flags(spec: LawSpec) -> int:
    needs = {
        "TURNS": spec.turns,
        "FLOWS": spec.keeps_flows,
        "SYNS": spec.counts_syns,
        "FLOOR": spec.whole_floor,
        "TENANTS": spec.tenants,
    }
    return sum(layout.CONSTANTS[f"FQ_LAW_{name}"] for name, wanted in needs.items() if wanted)


class LawTable(LawObjects[LawSpec]):
    """At most ``capacity`` laws. It is a :class:`RuleSink`: the rule table installs its rules through it."""

    noun = "law"
    parts = "kind"

    def __init__(self, sink: BridgePrograms, capacity: int) -> None:
        super().__init__(sink, capacity)
        self._sink = sink

    def _wrong(self, spec: LawSpec) -> str | None:
        return spec.wrong()

    def _put(self, port: int, law: int, spec: LawSpec, limits: QueueLimits, expires_ns: int) -> None:
        if spec.keeps_flows and far_queue.is_far(port):
            text = f"port {port} is a far queue: {spec.name} counts what it has sent, and that is not seen"
            raise refused(window_law.ERROR_LAW_NO_QUEUE, text)
        self._sink.install_law(port, law, parameters(spec, limits), expires_ns)

    def _take_away(self, port: int) -> None:
        self._sink.remove_law(port)

    def states(self, law: int) -> list[LawState]:
        """The state of a law, or of all. Raises :class:`OpenFlowError` if there is none."""
        return [self._state(each) for each in self._asked(law)]

    def _state(self, law: int) -> LawState:
        spec, port = self._laws[law], self._port_of.get(law)
        state = None if port is None else self._sink.law_state(port)
        if state is None:
            return LawState(law, port or 0, *(0,) * 10, spec.kind, *(0,) * 7)
        turns = self._sink.turn_counts(port or 0)
        return LawState(
            law=law,
            port=port or 0,
            pool=state.granted if spec.shares_pool(state.window) else 0,
            window=state.window,
            queue=state.queue,
            target=parameters(spec, self._limits[port or 0]).target,
            flows=state.flows,
            young=state.young,
            beta=state.beta,
            segment=state.segment,
            mode=state.mode,
            limited_by=state.limited_by,
            kind=spec.kind,
            updates=state.updates,
            late=state.late,
            waiting=turns.waiting,
            held=turns.held,
            released=turns.released,
            overdue=turns.late,
            overflowed=turns.full,
        )

    # The rules that refer to them

    def install_rule(self, target: PortOrFlow, window: WindowRule, expires_ns: int, slot: int) -> None:
        """Install a rule, and the law that it refers to. Raises :class:`OpenFlowError` if that cannot be, and
        changes nothing then.
        """
        if window.kind is not WindowKind.LAW:
            self._sink.install_rule(target, window, expires_ns, slot)
            self._release_target(target)
            return
        assert isinstance(target, int)  # the decoder refuses a flow's rule with a law
        former = self._ports.get(target)
        self._put_in_force(target, window.bytes, expires_ns)
        try:
            self._sink.install_rule(target, window, expires_ns, slot)
        except BaseException:
            if former is None:
                self._release(target)
            else:
                self._install(target, former[0], self._laws[former[0]], former[1])
            raise

    def remove_rule(self, target: PortOrFlow) -> None:
        """Remove a rule; a law that it referred to stays, without a port."""
        self._sink.remove_rule(target)
        self._release_target(target)

    def _release_target(self, target: PortOrFlow) -> None:
        if isinstance(target, int):
            self._release(target)

    def counters(self, slot: int) -> tuple[int, int]:
        """The number of ACKs that the rule applied to, and of those it lowered."""
        return self._sink.counters(slot)

    def reset_counters(self, slot: int) -> None:
        """Start the counters of a slot at 0."""
        self._sink.reset_counters(slot)
