"""Recovery of the packets that queues drop, in the agent: no round trip of a controller is in a flow's way.

    SET_RECOVERY --> settings and lease of a port
    dropped packet --> RecoveryEngine --(duplicates, reinject)--> SegmentInjector
                            ^    |ask
        backlog of the port |    v
                            flow map: the receiver's last ACK

:mod:`fairq_ryu.fabric.recovery.recovery` decides, as it does in a controller that recovers by itself. The
receiver's state is read at once, and the queue whenever it may have room. Receivers are asked again whether
they have got what was reinjected. Times in ns of the monotonic clock, as arguments. Bounded: one engine for
each port, with the bytes and the age of its settings.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict

from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.segment_injector import SegmentInjector
from fairq_ryu.channel import congestion
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.recovery import BOUNDS, DUPACK, ERROR_LIMIT, REINJECT, SetRecovery
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.fabric.recovery.actions import Action, Ask, Mode, Reinject, SendDuplicates
from fairq_ryu.fabric.recovery.recovery import FILL, RecoveryEngine
from fairq_ryu.model import FlowKey, PortKey
from fairq_ryu.packet import tcp_timestamps
from fairq_ryu.packet.parse import is_signed, parse
from fairq_ryu.packet.tcp_build import Addressing, addressing

_NS = 1_000_000_000
_MODES = {DUPACK: Mode.DUPACK, REINJECT: Mode.REINJECT, DUPACK | REINJECT: Mode.BOTH}
# How often a queue is read for room while segments wait to be reinjected; a queue that needs longer to fall
# below the threshold is read when it can have done so, and not after the longest time.
_SHORTEST_NS, _LONGEST_NS = 500_000, 10_000_000
# How often the receivers of other losses are looked at.
_OTHERS_NS = 5_000_000
# The queue is read again after this number of segments, because the bridge fills it, too: a reinjected
# segment should not be dropped. And this number of times, until other work of the agent has its turn.
_SEGMENTS, _READINGS = 8, 8
# From the end of the queue to the acknowledgement of the receiver, seconds.
_CONFIRM_S = 0.01


class _Port:
    """The recovery of one port. ``key`` names it in the engine."""

    def __init__(self, wanted: SetRecovery, now_ns: int) -> None:
        self.wanted = wanted
        self.key = PortKey(0, wanted.port)
        self.engine = RecoveryEngine(_MODES[wanted.flags], wanted.bytes, wanted.age_ms / 1000)
        self.expires_ns = now_ns + wanted.lease * _NS
        self.links: dict[FlowKey, Addressing] = {}  # of flows with losses, as the lost segments had them
        self.due_ns: int | None = None
        self.waits = False  # for room in the queue

    def renew(self, wanted: SetRecovery, now_ns: int) -> bool:
        """Take over new settings. False: the stored losses are limited or recovered in another way now."""
        kept = ("port", "flags", "bytes", "age_ms")
        if any(getattr(wanted, name) != getattr(self.wanted, name) for name in kept):
            return False
        self.wanted, self.expires_ns = wanted, now_ns + wanted.lease * _NS
        return True


class PortRecovery:
    """The ports whose dropped packets are recovered here. ``watch`` lets the kernel report the drops of a
    port, or ends that.
    """

    def __init__(
        self, data: BridgePrograms, injector: SegmentInjector, watch: Callable[[int, bool], None]
    ) -> None:
        self._data, self._injector, self._watch = data, injector, watch
        self._ports: dict[int, _Port] = {}
        self._past: Counter[str] = Counter()  # outcomes of recoveries that have ended

    def set(self, wanted: SetRecovery, now_ns: int) -> None:
        """Carry out a SET_RECOVERY. Raises :class:`OpenFlowError` for one that is refused, or the kernel's
        error, and changes nothing then.
        """
        self._check(wanted)
        known = self._ports.get(wanted.port)
        if not wanted.flags:
            self.forget_port(wanted.port)
        elif known is None:
            self._watch(wanted.port, True)
            self._ports[wanted.port] = _Port(wanted, now_ns)
        elif not known.renew(wanted, now_ns):
            self._settle(known)
            self._ports[wanted.port] = _Port(wanted, now_ns)

    def _check(self, wanted: SetRecovery) -> None:
        if wanted.port not in self._data.ports:
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_PORT, f"no port {wanted.port} here")
        if wanted.flags & ~(DUPACK | REINJECT):
            raise _refusal(congestion.ERROR_FLAGS, f"flags {wanted.flags:#x}")
        if not wanted.flags:
            return
        for name, (low, high) in BOUNDS.items():
            if not low <= getattr(wanted, name) <= high:
                raise _refusal(ERROR_LIMIT, f"{name} {getattr(wanted, name)} is not in {low} to {high}")
        if wanted.port in self._data.observed:
            text = f"port {wanted.port} is only observed"
            raise OpenFlowError(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_EPERM, text)
        if not self._data.reports_drops:
            raise _refusal(congestion.ERROR_NO_DROPS, "this kernel does not report drops")

    def dropped(self, packets: Iterable[tuple[int, bytes, int]], now_ns: int) -> None:
        """Queues have dropped packets: port, frame or its beginning, length of the whole frame in bytes."""
        for number, frame, length in packets:
            port = self._ports.get(number)
            if port is None or port.expires_ns <= now_ns:
                continue
            read = parse(frame, self._data.untagged_vlan(number))
            if read is None or read.tcp is None or is_signed(frame, read):
                self._carry_out(
                    port, port.engine.lost(port.key, frame, length, None, None, now_ns / _NS), now_ns
                )
                continue
            stamped = tcp_timestamps.tsval_at(frame, read) is not None
            actions = port.engine.lost(port.key, frame, length, read.tcp, read.payload, now_ns / _NS, stamped)
            known = addressing(read)
            if known is not None and port.engine.has_losses(known.key):
                port.links[known.key] = known
            self._carry_out(port, actions, now_ns)
            if not port.waits and len(port.engine):
                port.due_ns, port.waits = now_ns + _SHORTEST_NS, True

    def work(self, now_ns: int) -> None:
        """Do what is due: reinject where there is room, look at receivers, end recoveries without a lease."""
        for port in list(self._ports.values()):
            if port.expires_ns <= now_ns:
                self.forget_port(port.wanted.port)
            elif port.due_ns is not None and port.due_ns <= now_ns:
                self._recover(port, now_ns)

    def _recover(self, port: _Port, now_ns: int) -> None:
        engine, bridge_port = port.engine, self._data.ports[port.wanted.port]
        limits = self._data.queue_limits(bridge_port)
        now, below = now_ns / _NS, port.wanted.below
        # A segment leaves the queue when everything in front of it has left.
        engine.confirm_s = _CONFIRM_S + (limits.limit / limits.rate if limits.rate else 0.0)
        threshold = below
        for _ in range(_READINGS):
            backlog = self._data.queue(bridge_port).backlog
            actions = engine.queue(port.key, backlog, threshold, now, limits.limit, _SEGMENTS)
            if not actions:
                break
            self._carry_out(port, actions, now_ns)
            threshold = max(below, int(FILL * limits.limit))  # once it was below, it is filled beyond it
        self._carry_out(port, engine.due(now), now_ns)
        for flow in [flow for flow in port.links if not engine.has_losses(flow)]:
            del port.links[flow]
        port.waits = engine.is_waiting(port.key)
        if not len(engine):
            port.due_ns = None
        elif not port.waits:
            port.due_ns = now_ns + _OTHERS_NS
        else:
            falls = (backlog - below) * _NS // limits.rate if limits.rate and backlog > below else 0
            port.due_ns = now_ns + min(max(falls, _SHORTEST_NS), _LONGEST_NS)

    def _carry_out(self, port: _Port, actions: Iterable[Action], now_ns: int) -> None:
        left = deque(actions)
        while left:
            match left.popleft():
                case SendDuplicates(flow, state):
                    self._injector.send_duplicates(port.links.get(flow), state)
                case Reinject(at, frame, tsecr):
                    self._injector.reinject(at.port, frame, tsecr)
                case Ask(_, keys):
                    states = [self._data.segment_state(key) for key in keys]
                    left.extend(port.engine.states(states, now_ns / _NS))

    @property
    def next_ns(self) -> int | None:
        """When :meth:`work` is to be called next; None: after the next dropped packet."""
        return min((port.due_ns for port in self._ports.values() if port.due_ns is not None), default=None)

    def expire(self, now_ns: int) -> None:
        """End the recoveries whose lease has ended."""
        for number in [number for number, port in self._ports.items() if port.expires_ns <= now_ns]:
            self.forget_port(number)

    def forget_port(self, number: int) -> None:
        """End the recovery of a port, which may have gone."""
        port = self._ports.pop(number, None)
        if port is not None:
            self._settle(port)
            self._watch(number, False)

    def _settle(self, port: _Port) -> None:
        port.engine.forget_port(port.key)
        self._past.update(asdict(port.engine.counters))

    # Counts

    @property
    def outcomes(self) -> Counter[str]:
        """The outcomes of all losses since the agent started: the fields of the engine's counters."""
        found = self._past.copy()
        for port in self._ports.values():
            found.update(asdict(port.engine.counters))
        return found

    @property
    def stored(self) -> int:
        """The losses that can still be recovered."""
        return sum(len(port.engine) for port in self._ports.values())

    def settings(self, number: int) -> SetRecovery | None:
        """The recovery of a port; None: there is none."""
        port = self._ports.get(number)
        return None if port is None else port.wanted


def _refusal(code: int, text: str) -> OpenFlowError:
    return OpenFlowError(ofp.OFPET_EXPERIMENTER, code, text)
