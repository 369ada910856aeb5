"""Recovery of segments that a port's queue has dropped: duplicate ACKs to senders, and reinjection of
segments.

RSED (section 4 of the paper that SED comes from), with the rules that keep it correct on real stacks. Pure.
The inputs are dropped segments, the acknowledgements of receivers, and queue samples; the output is a list of
actions.

Duplicate ACKs report a missing segment to its sender. They are sent only while the receiver's own
acknowledgement number *is* the first byte of the lost segment: before that they would repeat an old number,
after that they would be wrong. They are sent once for each hole. A SYN has no acknowledgement before it, and
no segment follows a FIN that duplicates could be answers to: both are reinjected only.

Segments are reinjected when the queue is below its threshold, until it is filled in part. A segment with a
timestamp is sent when its receiver's state is known: a later segment with a newer timestamp may have arrived,
and the receiver would discard a segment with an older one.

A reinjected segment can be lost, too, and its sender may be unable to notice: nothing follows the last
segment of a flow. So with ``confirm_s`` receivers are asked about the copies. A segment that its receiver
still waits for is reinjected once more, the next time after twice as long, because its acknowledgement may
only be late.

The stored losses are limited in bytes per port and in time; a loss that was forgotten causes no action.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from fairq_ryu.fabric.flows.connection import is_after
from fairq_ryu.fabric.recovery.actions import Action, Ask, Counters, Mode, Reinject, SendDuplicates
from fairq_ryu.fabric.recovery.losses import Loss, Losses
from fairq_ryu.model import FlowKey, PortKey, SegmentState, TcpSegment

# A segment that is lost again after each reinjection has a cause that reinjection cannot remove.
MAX_REINJECTIONS = 6
# The maximum number of receivers in one request: the switch has other requests to answer.
MAX_KEYS_PER_REQUEST = 32
# Segments are reinjected up to this part of the buffer: the next ones follow a round trip of the controller
# later, and the queue should not become empty meanwhile.
FILL = 0.5
# The limit of the wait for the state of a receiver, seconds.
ANSWER_S = 0.05
# The burst of actions, in seconds of their rate.
_BURST = 0.05


class RecoveryEngine:
    """The losses of all ports and the actions for them.

    ``bytes_per_port``: the maximum size of the stored segments of a port; ``age_s``: a loss is forgotten this
    many seconds after its last report or action; ``ask_s``: the minimum interval between requests for a
    receiver; ``rate``: the maximum number of duplicates and reinjections together, segments per second.
    ``confirm_s``: a receiver acknowledges a reinjected segment within this time, seconds (None: it is not
    asked); it may be changed at any time.

    Raises ValueError if one of these is not possible, or if there is no such mode.
    """

    def __init__(
        self,
        mode: str,
        bytes_per_port: int,
        age_s: float,
        *,
        ask_s: float = 0.005,
        rate: float = 20_000.0,
        confirm_s: float | None = None,
    ) -> None:
        if bytes_per_port < 0 or not min(age_s, ask_s, rate) > 0:
            raise ValueError("times and rates of recovery must be more than 0, sizes at least 0")
        self.mode = Mode(mode)
        self.confirm_s = confirm_s
        self.counters = Counters()
        self._losses = Losses(bytes_per_port, age_s)
        # Reinjection alone needs no reply; a reply only avoids a reinjection of what the receiver has got.
        self._ask_s = ask_s if self.mode is not Mode.REINJECT else 10 * ask_s
        # In the order of time, and limited by the rate within age_s.
        self._reported: dict[tuple[FlowKey, int], float] = {}
        # Flows with an action that depends on their receivers' state: those not requested yet, and the others
        # by the time of the last request.
        self._unasked: dict[FlowKey, None] = {}
        self._asked: dict[FlowKey, float] = {}
        self._rate = rate
        self._tokens = self._most_tokens = max(1.0, rate * _BURST)
        self._filled_at: float | None = None

    def __len__(self) -> int:
        """The number of stored losses."""
        return len(self._losses)

    def used(self, port: PortKey) -> int:
        """The size of the stored segments of a port, bytes."""
        return self._losses.used(port)

    def has_losses(self, flow: FlowKey) -> bool:
        """Whether losses of a direction are stored."""
        return flow in self._losses.flows

    def is_waiting(self, port: PortKey) -> bool:
        """Whether segments of a port wait for room in its queue, or for their receivers' state."""
        return self._losses.next_frame(port) is not None or bool(self._losses.cleared(port))

    # Inputs

    def lost(
        self,
        port: PortKey,
        frame: bytes,
        total_len: int,
        segment: TcpSegment | None,
        payload: int | None,
        now: float,
        stamped: bool = False,
    ) -> list[Action]:
        """A port's queue has dropped a frame.

        ``frame`` may be shorter than its ``total_len`` bytes. ``segment`` and ``payload`` come from its TCP
        header (None: no TCP, unreadable, or signed); ``segment.key`` is the direction of the data.
        ``stamped``: it has a timestamp.
        """
        self.counters.lost += 1
        self.counters.expired += self._losses.expire(port, now)
        control = segment is not None and (segment.syn or segment.fin)
        if segment is None or payload is None or segment.rst or not (payload or control):
            self.counters.ignored += 1
            return []
        whole = len(frame) >= total_len > 0
        if self.mode is Mode.DUPACK:
            frame = b""
        elif not whole:
            self.counters.truncated += 1
            frame = b""
        duplicates_due = (
            self.mode is not Mode.REINJECT and not control and not self._was_reported(segment, now)
        )
        length = payload + segment.syn + segment.fin
        self._remember(
            Loss(segment.key, segment.seq, port, now, frame, duplicates_due, stamped=stamped, length=length)
        )
        # No reinjection depends on the reply. In a burst one request for each loss would take long; the next
        # ``due`` requests many states at once.
        return self._ask_now(segment.key, now) if duplicates_due and self.mode is Mode.DUPACK else []

    def _remember(self, loss: Loss) -> None:
        old = self._losses.get(loss.flow, loss.seq)
        if old is not None:
            self.counters.repeated += 1
            loss.times_back, loss.unanswered = old.times_back, old.unanswered
            if not loss.frame and old.port == loss.port:
                loss.frame = old.frame
            if loss.times_back >= MAX_REINJECTIONS:
                loss.frame = b""
            self._losses.drop(old)
        elif loss.open:
            self.counters.tracked += 1
        else:
            self.counters.ignored += 1
            return
        self.counters.overflow += self._losses.add(loss)
        if loss.flow not in self._asked:
            self._unasked.setdefault(loss.flow)

    def _was_reported(self, segment: TcpSegment, now: float) -> bool:
        """Whether duplicates were sent for this hole: further ones do not help a sender in recovery."""
        while self._reported:
            first = next(iter(self._reported))
            if now - self._reported[first] <= self._losses.age_s:
                break
            del self._reported[first]
        return (segment.key, segment.seq) in self._reported

    def states(self, states: Iterable[SegmentState], now: float) -> list[Action]:
        """The last segments of receivers, as a switch has seen them."""
        actions: list[Action] = []
        for state in states:
            flow = state.key.reversed
            if not state.found:
                for loss in self._losses.of_flow(flow):
                    if loss.is_overdue(now):
                        self._losses.settle(loss)  # it will not be known whether it arrives
                actions += self._send_cleared(self._losses.of_flow(flow), None, now)
                continue
            if state.rst:
                self.forget(flow)
            for loss in self._losses.of_flow(flow):
                if self._losses.is_old(loss, now):
                    self._losses.drop(loss)
                    self.counters.expired += 1
                    continue
                if loss.is_acked(state.ack):
                    self._losses.drop(loss)
                    self.counters.acked += 1
                    continue
                if loss.is_overdue(now):
                    self._unanswered(loss, state.ack, now)
                if (
                    loss.duplicates_due
                    and state.ack == loss.seq
                    and _can_duplicate(state)
                    and self._token(now)
                ):
                    loss.duplicates_due = False
                    self._reported[flow, loss.seq] = now
                    self._losses.touch(loss, now)
                    self.counters.duplicates += 1
                    actions.append(SendDuplicates(flow, state))
            tsecr = state.tsecr if state.has_timestamps else None
            actions += self._send_cleared(self._losses.of_flow(flow), tsecr, now)
        return actions

    def _unanswered(self, loss: Loss, ack: int, now: float) -> None:
        """The receiver has not acknowledged a copy in time."""
        if is_after(loss.seq, ack):
            # It may have it: an earlier segment is missing.
            loss.check = now + (self.confirm_s or self._ask_s)
            return
        loss.unanswered += 1
        self.counters.unanswered += 1
        self._losses.requeue(loss)

    def _send_cleared(self, losses: Iterable[Loss], tsecr: int | None, now: float) -> list[Action]:
        return [self._send(loss, tsecr, now) for loss in losses if loss.cleared is not None]

    def _send(self, loss: Loss, tsecr: int | None, now: float) -> Reinject:
        action = Reinject(loss.port, loss.frame, tsecr)
        self.counters.reinjected += 1
        check = None
        if self.confirm_s is not None and loss.times_back + 1 < MAX_REINJECTIONS:
            check = now + self.confirm_s * 2**loss.unanswered
        self._losses.reinjected(loss, now, check)
        return action

    def queue(
        self,
        port: PortKey,
        backlog: int,
        threshold: int,
        now: float,
        buffer: int = 0,
        most: int = sys.maxsize,
    ) -> list[Action]:
        """The port's queue is ``backlog`` bytes long. Below ``threshold``, lost segments are reinjected up to
        :data:`FILL` of its ``buffer`` (0: not known), or to the threshold if that is more, and at ``most`` so
        many.

        To be called once for each sample of the queue. Flows take turns, one segment each, those that have
        waited longest first; of one flow, the segment with the lowest sequence number. The reinjected
        segments and those that wait for their receivers' state fit between ``backlog`` and that limit.
        """
        self.counters.expired += self._losses.expire(port, now)
        actions: list[Action] = []
        room = max(threshold, int(FILL * buffer)) - backlog if backlog < threshold else 0
        for loss in self._losses.cleared(port):
            room -= len(loss.frame)
            if loss.cleared is not None and now - loss.cleared >= ANSWER_S:
                actions.append(self._send(loss, None, now))
        wanted: dict[FlowKey, None] = {}
        while most > 0 and (each := self._losses.next_frame(port)) is not None:
            if len(each.frame) > room or not self._token(now):
                break
            most -= 1
            room -= len(each.frame)
            if each.stamped:
                self._losses.clear(each, now)
                wanted[each.flow] = None
            else:
                actions.append(self._send(each, None, now))
        return actions + self._ask(wanted, now)

    def due(self, now: float) -> list[Action]:
        """Remove old losses and request the state of receivers that an action depends on: first of those that
        had to acknowledge a copy, then of those never requested or requested longest ago. To be called
        about every ``ask_s``, or more often.
        """
        for port in self._losses.ports:
            self.counters.expired += self._losses.expire(port, now)
        overdue = dict.fromkeys(loss.flow for loss in self._losses.overdue(now))
        flows = dict.fromkeys(list(overdue)[:MAX_KEYS_PER_REQUEST])
        while self._unasked and len(flows) < MAX_KEYS_PER_REQUEST:
            flow = next(iter(self._unasked))
            del self._unasked[flow]
            if self._is_open(flow):
                flows[flow] = None
        while self._asked and len(flows) < MAX_KEYS_PER_REQUEST:
            flow, at = next(iter(self._asked.items()))
            if now - at < self._ask_s:
                break
            del self._asked[flow]
            if self._is_open(flow):
                flows[flow] = None
        return self._ask(flows, now)

    def forget(self, flow: FlowKey) -> None:
        """A direction has ended: its connection was reset, or its ports are used for another one.

        Not to be called for a FIN: segments that were lost before it are still missing.
        """
        for loss in self._losses.of_flow(flow):
            self._losses.drop(loss)
            self.counters.forgotten += 1
        self._unasked.pop(flow, None)
        self._asked.pop(flow, None)

    def forget_port(self, port: PortKey) -> None:
        """A port was removed, or is no longer governed."""
        for loss in self._losses.of_port(port):
            self._losses.drop(loss)
            self.counters.forgotten += 1

    # Requests and rate

    def _is_open(self, flow: FlowKey) -> bool:
        return any(loss.open for loss in self._losses.of_flow(flow))

    def _ask_now(self, flow: FlowKey, now: float) -> list[Action]:
        """Request the state of a flow's receiver, unless it was requested less than ``ask_s`` ago."""
        at = self._asked.get(flow)
        if not self._is_open(flow) or (at is not None and now - at < self._ask_s):
            return []
        return self._ask([flow], now)

    def _ask(self, flows: Iterable[FlowKey], now: float) -> list[Action]:
        """Request the state of the receivers of these flows, which have open losses."""
        wanted: dict[int, list[FlowKey]] = {}
        for flow in flows:
            self._unasked.pop(flow, None)
            self._asked.pop(flow, None)  # it moves to the end
            self._asked[flow] = now
            last = next(loss for loss in reversed(self._losses.of_flow(flow)) if loss.open)
            wanted.setdefault(last.port.dpid, []).append(flow.reversed)
        return [Ask(dpid, tuple(keys)) for dpid, keys in wanted.items()]

    def _token(self, now: float) -> bool:
        """Take a token for one more segment. False if there is none: the segment stays due."""
        if self._filled_at is not None:
            grown = max(0.0, now - self._filled_at) * self._rate
            self._tokens = min(self._most_tokens, self._tokens + grown)
        self._filled_at = now
        if self._tokens < 1:
            self.counters.limited += 1
            return False
        self._tokens -= 1
        return True


def _can_duplicate(state: SegmentState) -> bool:
    """Whether everything is known of the receiver that a duplicate ACK needs."""
    return not (state.fin or state.is_signed) and state.has_timestamps is not None
