"""The window laws that controllers have added, and the ports whose rules refer to them.

A law outlives the connection of the controller that added it; without a rule whose lease lives it does
nothing. A law governs at most one port, because its state is that of one queue. When the buffer or the rate
of that port changes, its parameters are worked out anew and its state stays.

Pure but for the :class:`LawSink`: what the programs get is worked out here. Bounded: at most ``capacity``
laws.
"""

from __future__ import annotations

from typing import Any, Protocol

from fairq_ryu.agent import layout
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.rule_table import PortOrFlow, RuleSink
from fairq_ryu.agent.turns import TurnCounts, frame_of
from fairq_ryu.channel import window_law
from fairq_ryu.channel.flowmod import OpenFlowError
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.window_law import LawCommand, LawState, SetLaw
from fairq_ryu.law_spec import POOL_KINDS, Gain, LawFlags, LawKind, LawSpec, out_of_bounds, trim_step
from fairq_ryu.model import WindowKind, WindowRule

_PPM = 1_000_000
# The bytes by which a law counts a flow while it has seen none: one Ethernet frame's payload.
_SEGMENT = 1460
# Part of the distance to the target that the pool of `ours` and LAS moves in a round trip. From 0.5 on a step
# of the queue overshoots; pi / 2 would not settle.
_OURS = 0.4
# The largest loop gain times round trip with which a law is accepted.
_STABLE = 1.0


class LawSink(RuleSink, Protocol):
    """Where laws and rules take effect: the eBPF programs, or a fake in the tests. Ports are OpenFlow
    numbers.
    """

    def limits_of(self, port: int) -> QueueLimits:
        """Buffer and rate of a port."""

    def install_law(self, port: int, law_id: int, law: Any, expires_ns: int) -> None:
        """Install the law of a port (an ``fq_law``), change it, or renew its lease."""

    def remove_law(self, port: int) -> None:
        """Remove the law of a port."""

    def law_state(self, port: int) -> Any | None:
        """The state of a port's law, an ``fq_law_state``; None: it has none."""

    def turn_counts(self, port: int) -> TurnCounts:
        """How the new connections of a port have taken turns."""


def loop_gain(spec: LawSpec, limits: QueueLimits) -> float:
    """The gain of the control loop times its round trip: above pi / 2 the pool never settles.

    The pool is an integrator that answers after ``base_rtt + target / rate``, or after an update where these
    come less often; for laws that move a pool only.
    """
    target = max(1, limits.limit * spec.target_ppm // _PPM)
    update = spec.increments * spec.interval_us / 1e6
    round_trip = spec.base_rtt_us / 1e6 + target / limits.rate
    if spec.kind is LawKind.LAS or (spec.kind is LawKind.FAIRQ and spec.gain is Gain.OURS):
        return _OURS
    if spec.kind is not LawKind.FAIRQ:
        return 0.0
    return max(1.0, round_trip / update) * (1 if spec.gain is Gain.LISTING else _SEGMENT / target)


def syn_allowance(spec: LawSpec, limit: int) -> int:
    """The flows of a port with this buffer (bytes) that may count before their handshakes are complete. Where
    new connections take turns, the buffer lets as many begin at once as it has room for.
    """
    turns = spec.kind in POOL_KINDS and LawFlags.TURNS in spec.flags
    return spec.syn_allowance + (limit // frame_of(_SEGMENT) if turns else 0)


def parameters(spec: LawSpec, limits: QueueLimits) -> Any:
    """The parameters of a law on a port, an ``fq_law``. ``limits`` has a buffer and a rate."""
    target = max(1, limits.limit * spec.target_ppm // _PPM)
    round_trip = spec.base_rtt_us / 1e6 + target / limits.rate
    interval = spec.interval_us / 1e6
    return layout.fq_law(
        rate=limits.rate,
        linger_ns=spec.linger_us * 1000,
        interval_ns=spec.interval_us * 1000,
        base_rtt_ns=spec.base_rtt_us * 1000,
        limit=limits.limit,
        target=target,
        # SED's queue is short at NOM as well, IQM's only below; an empty queue always is.
        calm=max(1, limits.limit * spec.calm_ppm // _PPM + (spec.kind is LawKind.SED_BASE)),
        gain_q16=max(1, min(65535, round(_OURS * interval / round_trip * 65536))),
        trim_step=trim_step(limits.rate, interval),
        young_bytes=spec.young_bytes,
        kind=spec.kind,
        gain=spec.gain,
        increments=spec.increments,
        first_window=spec.first_window,
        floor_segments=spec.floor_segments,
        limiting_segments=spec.limiting_segments,
        syn_allowance=syn_allowance(spec, limits.limit),
        flags=spec.flags,
    )


class LawTable:
    """At most ``capacity`` laws. It is a :class:`RuleSink`: the rule table installs its rules through it."""

    def __init__(self, sink: LawSink, capacity: int) -> None:
        self._sink = sink
        self.capacity = capacity
        self._laws: dict[int, LawSpec] = {}
        self._ports: dict[int, tuple[int, int]] = {}  # law and end of its lease (ns), by port
        self._port_of: dict[int, int] = {}  # the port that a law governs
        self._limits: dict[int, QueueLimits] = {}  # that the parameters in force were worked out with

    def __len__(self) -> int:
        return len(self._laws)

    # Laws

    def set(self, wanted: SetLaw) -> list[int]:
        """Carry out a SET_LAW. Returns the ports whose rules refer to a law that is deleted: these rules are
        to be removed.

        Raises :class:`OpenFlowError` for one that is refused, and changes nothing then.
        """
        if wanted.command == LawCommand.DELETE:
            return self._delete(wanted.law)
        if wanted.command not in (LawCommand.ADD, LawCommand.MODIFY):
            raise refused(window_law.ERROR_LAW_COMMAND, f"command {wanted.command}")
        if wanted.spec is None:
            raise refused(window_law.ERROR_LAW_KIND, "unknown kind, gain or flag")
        wrong = out_of_bounds(wanted.spec)
        if wrong is not None or not 0 < wanted.law <= window_law.MAX_LAW_ID:
            raise refused(window_law.ERROR_LAW_PARAMETER, wrong or f"law {wanted.law}")
        known = wanted.law in self._laws
        if wanted.command == LawCommand.ADD and known:
            raise refused(window_law.ERROR_LAW_EXISTS, f"law {wanted.law} is there")
        if wanted.command == LawCommand.MODIFY and not known:
            raise refused(window_law.ERROR_LAW_UNKNOWN, f"no law {wanted.law}")
        if not known and len(self._laws) >= self.capacity:
            raise refused(window_law.ERROR_LAW_TABLE_FULL, f"{self.capacity} laws are there already")
        port = self._port_of.get(wanted.law)
        if port is not None:
            self._install(port, wanted.law, wanted.spec, self._ports[port][1])
        self._laws[wanted.law] = wanted.spec
        return []

    def _delete(self, law: int) -> list[int]:
        if law != window_law.ALL_LAWS and law not in self._laws:
            return []  # as a meter's deletion
        gone = list(self._laws) if law == window_law.ALL_LAWS else [law]
        ports = [self._port_of[each] for each in gone if each in self._port_of]
        for each in gone:
            del self._laws[each]
        return ports

    def states(self, law: int) -> list[LawState]:
        """The state of a law, or of all. Raises :class:`OpenFlowError` if there is none."""
        if law != window_law.ALL_LAWS and law not in self._laws:
            raise refused(window_law.ERROR_LAW_UNKNOWN, f"no law {law}")
        wanted = list(self._laws) if law == window_law.ALL_LAWS else [law]
        return [self._state(each) for each in wanted]

    def _state(self, law: int) -> LawState:
        spec, port = self._laws[law], self._port_of.get(law)
        state = None if port is None else self._sink.law_state(port)
        if state is None:
            return LawState(law, port or 0, *(0,) * 10, spec.kind, *(0,) * 7)
        turns = self._sink.turn_counts(port or 0)
        return LawState(
            law=law,
            port=port or 0,
            pool=state.granted if spec.kind in POOL_KINDS else 0,
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

    def has_port(self, port: int) -> bool:
        """Is this a port of the bridge on which a rule can be installed?"""
        return self._sink.has_port(port)

    def install_rule(self, target: PortOrFlow, window: WindowRule, expires_ns: int, slot: int) -> None:
        """Install a rule, and the law that it refers to. Raises :class:`OpenFlowError` if that cannot be, and
        changes nothing then.
        """
        if window.kind is not WindowKind.LAW:
            self._sink.install_rule(target, window, expires_ns, slot)
            self._release(target)
            return
        assert isinstance(target, int)  # the decoder refuses a flow's rule with a law
        spec = self._laws.get(window.bytes)
        if spec is None:
            raise refused(window_law.ERROR_LAW_UNKNOWN, f"no law {window.bytes}")
        if self._port_of.get(window.bytes) not in (None, target):
            raise refused(window_law.ERROR_LAW_IN_USE, f"law {window.bytes} governs another port")
        former = self._ports.get(target)
        self._install(target, window.bytes, spec, expires_ns)
        try:
            self._sink.install_rule(target, window, expires_ns, slot)
        except BaseException:
            if former is None:
                self._release(target)
            else:
                self._install(target, former[0], self._laws[former[0]], former[1])
            raise

    def _install(self, port: int, law: int, spec: LawSpec, expires_ns: int) -> None:
        limits = self._sink.limits_of(port)
        if not limits.limit or not limits.rate:
            why = f": {limits.reason}" if limits.reason else ""
            text = f"port {port} has no queue of known size and rate{why}"
            raise refused(window_law.ERROR_LAW_NO_QUEUE, text)
        gain = loop_gain(spec, limits)
        if gain > _STABLE:
            raise refused(
                window_law.ERROR_LAW_UNSTABLE,
                f"law {law} on port {port}: loop gain times round trip is {gain:.2f}, more than {_STABLE:g} "
                f"(buffer {limits.limit} bytes, {limits.rate * 8} bit/s, T {spec.interval_us} us, "
                f"M {spec.increments}, base round trip {spec.base_rtt_us} us)",
            )
        self._sink.install_law(port, law, parameters(spec, limits), expires_ns)
        self._unlink(port)
        self._ports[port], self._limits[port] = (law, expires_ns), limits
        self._port_of[law] = port

    def _unlink(self, port: int) -> bool:
        former = self._ports.pop(port, None)
        if former is not None:
            del self._port_of[former[0]]
        return former is not None

    def _release(self, target: PortOrFlow) -> None:
        if isinstance(target, int) and self._unlink(target):
            self._limits.pop(target, None)
            self._sink.remove_law(target)

    def remove_rule(self, target: PortOrFlow) -> None:
        """Remove a rule; a law that it referred to stays, without a port."""
        self._sink.remove_rule(target)
        self._release(target)

    def limits_changed(self) -> None:
        """Buffers or rates of ports may have changed: work out the parameters of their laws anew. A law that
        would not be stable any more ends on its port.
        """
        for port, (law, expires_ns) in list(self._ports.items()):
            if self._sink.limits_of(port) != self._limits[port]:
                try:
                    self._install(port, law, self._laws[law], expires_ns)
                except OpenFlowError:
                    self._release(port)

    def counters(self, slot: int) -> tuple[int, int]:
        """The number of ACKs that the rule applied to, and of those it lowered."""
        return self._sink.counters(slot)

    def reset_counters(self, slot: int) -> None:
        """Start the counters of a slot at 0."""
        self._sink.reset_counters(slot)


def refused(code: int, text: str) -> OpenFlowError:
    """OpenFlow has no code for it, so it is one of ours."""
    return OpenFlowError(ofp.OFPET_EXPERIMENTER, code, text)
