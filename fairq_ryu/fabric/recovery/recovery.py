"""Recovery of segments that a port's queue has dropped: what is to be told to senders, and what is put back.

RSED (section 4 of the paper that SED comes from), with the rules that keep it honest on real stacks. Pure.
Three things come in: segments that were dropped, what receivers have acknowledged, and queues. What goes out
is a list of actions.

Duplicate ACKs tell the sender that a segment is missing. They are due only while the receiver's own
acknowledgement *is* the first byte of what was lost: before that they would repeat an old number, after that
they would be wrong. One hole is told once. A SYN has no acknowledgement before it, and nothing follows a FIN
that duplicates could speak for: both are only put back.

Segments are put back when the queue is below its threshold, so many that it is filled in part. One with a
timestamp is sent when its receiver has been asked: a later segment may have come, and with it a newer
timestamp, and the receiver would discard what carries an older one.

What is remembered is bounded in bytes per port and in time; what is forgotten is never acted on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fairq_ryu.fabric.flows.connection import is_after
from fairq_ryu.fabric.recovery.losses import Loss, Losses
from fairq_ryu.model import FlowKey, PortKey, SegmentState, TcpSegment

# A segment that is lost again each time it is put back has a reason that this cannot mend.
MOST_TIMES_BACK = 3
# Receivers are asked for in turns of so many: the switch has other things to do as well.
ASKED_AT_ONCE = 32
# Segments are put back up to this part of the buffer: it takes the controller a round trip until more can be,
# and the port is not to run dry meanwhile.
FILL = 0.5
# A receiver whose state does not come within so many seconds is waited for no longer.
ANSWER_S = 0.05
# Actions that may be taken at once, in seconds of their rate.
_BURST = 0.05


class Mode(StrEnum):
    """What is done about a loss."""

    DUPACK = "dupack"
    REINJECT = "reinject"
    BOTH = "both"


class SendDuplicates(NamedTuple):
    """Send three duplicates of ``state.ack`` to ``flow.src``: all numbers are those of ``state``."""

    flow: FlowKey
    state: SegmentState


class Reinject(NamedTuple):
    """Send the frame out by the port that has dropped it. ``tsecr``: what its receiver echoes; an older
    timestamp it would discard (None: not known, or the frame has none).
    """

    port: PortKey
    frame: bytes
    tsecr: int | None = None


class Ask(NamedTuple):
    """Ask a switch for the state of these receivers: the directions that their ACKs take."""

    dpid: int
    keys: tuple[FlowKey, ...]


Action = SendDuplicates | Reinject | Ask


@dataclass(slots=True)
class Counters:
    """What has become of losses, in segments. Each that was ``tracked`` ends in one of ``acked``,
    ``expired``, ``overflow`` and ``forgotten``.
    """

    lost: int = 0  # reported by switches
    ignored: int = 0  # pure ACKs, resets, what cannot be read, what the mode has no remedy for
    tracked: int = 0  # remembered
    repeated: int = 0  # reported again while remembered: sent again by its sender or put back by us
    truncated: int = 0  # came cut short, and cannot be put back
    duplicates: int = 0  # told to the sender
    reinjected: int = 0  # put back
    acked: int = 0  # the receiver has got it meanwhile
    expired: int = 0  # forgotten because of age
    overflow: int = 0  # forgotten because of newer ones
    forgotten: int = 0  # forgotten with their flow or port
    limited: int = 0  # times that the rate was reached


class Recovery:
    """The losses of all ports, and what is done about them.

    ``bytes_per_port``: what a port remembers at most; ``age_s``: a loss is forgotten this many seconds after
    it was last reported or acted on; ``ask_s``: receivers are asked for no more often than this; ``rate``:
    told and put back together, segments per second at most.

    Raises ValueError if one of these makes no sense, or the mode is none.
    """

    def __init__(
        self, mode: str, bytes_per_port: int, age_s: float, *, ask_s: float = 0.005, rate: float = 20_000.0
    ) -> None:
        if bytes_per_port < 0 or not min(age_s, ask_s, rate) > 0:
            raise ValueError("times and rates of recovery must be more than 0, sizes at least 0")
        self.mode = Mode(mode)
        self.counters = Counters()
        self._losses = Losses(bytes_per_port, age_s)
        # What is only put back needs no answer; it just need not be put back if the receiver has got it.
        self._ask_s = ask_s if self.mode is not Mode.REINJECT else 10 * ask_s
        # In the order of time, and never more than the rate allows within age_s.
        self._told: dict[tuple[FlowKey, int], float] = {}
        # Flows of which something may depend on their receivers' answers: those that have not been asked for
        # yet, and the others by the time of that.
        self._unasked: dict[FlowKey, None] = {}
        self._asked: dict[FlowKey, float] = {}
        self._rate = rate
        self._tokens = self._most_tokens = max(1.0, rate * _BURST)
        self._filled_at: float | None = None

    def __len__(self) -> int:
        """So many losses are remembered."""
        return len(self._losses)

    def used(self, port: PortKey) -> int:
        """Bytes that a port remembers."""
        return self._losses.used(port)

    # What comes in

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

        ``frame`` may be cut short of its ``total_len`` bytes. ``segment`` and ``payload`` are what its TCP
        headers say (None: no TCP, or unreadable); ``segment.key`` is the direction of the data. ``stamped``:
        it carries a timestamp.
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
        tell = self.mode is not Mode.REINJECT and not control and not self._was_told(segment, now)
        self._remember(Loss(segment.key, segment.seq, port, now, frame, tell, stamped=stamped))
        # Nothing that is put back depends on the answer. In a burst a question for each would take long; the
        # next ``due`` asks for many at once.
        return self._ask_now(segment.key, now) if tell and self.mode is Mode.DUPACK else []

    def _remember(self, loss: Loss) -> None:
        old = self._losses.get(loss.flow, loss.seq)
        if old is not None:
            self.counters.repeated += 1
            loss.times_back = old.times_back
            if not loss.frame and old.port == loss.port:
                loss.frame = old.frame
            if loss.times_back >= MOST_TIMES_BACK:
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

    def _was_told(self, segment: TcpSegment, now: float) -> bool:
        """Told once is told: a sender that is recovering already takes nothing from more of the same."""
        while self._told:
            first = next(iter(self._told))
            if now - self._told[first] <= self._losses.age_s:
                break
            del self._told[first]
        return (segment.key, segment.seq) in self._told

    def states(self, states: Iterable[SegmentState], now: float) -> list[Action]:
        """What receivers have acknowledged, as a switch has last seen it."""
        actions: list[Action] = []
        for state in states:
            flow = state.key.reversed
            if not state.found:
                actions += self._send_cleared(self._losses.of_flow(flow), None, now)
                continue
            if state.rst:
                self.forget(flow)
            for loss in self._losses.of_flow(flow):
                if self._losses.is_old(loss, now):
                    self._losses.drop(loss)
                    self.counters.expired += 1
                elif is_after(state.ack, loss.seq):
                    self._losses.drop(loss)
                    self.counters.acked += 1
                elif loss.tell and state.ack == loss.seq and _can_tell(state) and self._token(now):
                    loss.tell = False
                    self._told[flow, loss.seq] = now
                    self._losses.touch(loss, now)
                    self.counters.duplicates += 1
                    actions.append(SendDuplicates(flow, state))
            tsecr = state.tsecr if state.has_timestamps else None
            actions += self._send_cleared(self._losses.of_flow(flow), tsecr, now)
        return actions

    def _send_cleared(self, losses: Iterable[Loss], tsecr: int | None, now: float) -> list[Action]:
        return [self._send(loss, tsecr, now) for loss in losses if loss.cleared is not None]

    def _send(self, loss: Loss, tsecr: int | None, now: float) -> Reinject:
        action = Reinject(loss.port, loss.frame, tsecr)
        self.counters.reinjected += 1
        self._losses.put_back(loss, now)
        return action

    def queue(self, port: PortKey, backlog: int, threshold: int, now: float, buffer: int = 0) -> list[Action]:
        """The port's queue is ``backlog`` bytes long; below ``threshold`` there is room for what was lost, up
        to :data:`FILL` of its ``buffer`` (0: not known), or to the threshold if that is more.

        To be called once for each reading of the queue. Flows take turns, a segment each, those that have
        waited longest first; of one flow, the oldest. All that is put back fits between ``backlog`` and
        that, with what waits for its receiver's answer.
        """
        self.counters.expired += self._losses.expire(port, now)
        actions: list[Action] = []
        room = max(threshold, int(FILL * buffer)) - backlog if backlog < threshold else 0
        for loss in self._losses.cleared(port):
            room -= len(loss.frame)
            if loss.cleared is not None and now - loss.cleared >= ANSWER_S:
                actions.append(self._send(loss, None, now))
        wanted: dict[FlowKey, None] = {}
        while (each := self._losses.next_frame(port)) is not None:
            if len(each.frame) > room or not self._token(now):
                break
            room -= len(each.frame)
            if each.stamped:
                self._losses.clear(each, now)
                wanted[each.flow] = None
            else:
                actions.append(self._send(each, None, now))
        return actions + self._ask(wanted, now)

    def due(self, now: float) -> list[Action]:
        """What time brings: losses grow old, and receivers that something depends on are asked for, those
        first that were never or that have waited longest. To be called about every ``ask_s``, or more often.
        """
        for port in self._losses.ports:
            self.counters.expired += self._losses.expire(port, now)
        flows: list[FlowKey] = []
        while self._unasked and len(flows) < ASKED_AT_ONCE:
            flow = next(iter(self._unasked))
            del self._unasked[flow]
            flows += [flow] * self._is_open(flow)
        while self._asked and len(flows) < ASKED_AT_ONCE:
            flow, at = next(iter(self._asked.items()))
            if now - at < self._ask_s:
                break
            del self._asked[flow]
            flows += [flow] * self._is_open(flow)
        return self._ask(flows, now)

    def forget(self, flow: FlowKey) -> None:
        """A direction is over: its connection was reset, or its ports are used for another.

        Not to be called for a FIN: what was lost before it is still missing.
        """
        for loss in self._losses.of_flow(flow):
            self._losses.drop(loss)
            self.counters.forgotten += 1
        self._unasked.pop(flow, None)
        self._asked.pop(flow, None)

    def forget_port(self, port: PortKey) -> None:
        """A port has gone, or is not governed any more."""
        for loss in self._losses.of_port(port):
            self._losses.drop(loss)
            self.counters.forgotten += 1

    # Bounds in time

    def _is_open(self, flow: FlowKey) -> bool:
        return any(loss.open for loss in self._losses.of_flow(flow))

    def _ask_now(self, flow: FlowKey, now: float) -> list[Action]:
        """Ask for the receiver of a flow, unless that was done just now."""
        at = self._asked.get(flow)
        if not self._is_open(flow) or (at is not None and now - at < self._ask_s):
            return []
        return self._ask([flow], now)

    def _ask(self, flows: Iterable[FlowKey], now: float) -> list[Action]:
        """Ask for the receivers of these flows, which have open losses."""
        wanted: dict[int, list[FlowKey]] = {}
        for flow in flows:
            self._unasked.pop(flow, None)
            self._asked.pop(flow, None)  # it is the last now
            self._asked[flow] = now
            last = next(loss for loss in reversed(self._losses.of_flow(flow)) if loss.open)
            wanted.setdefault(last.port.dpid, []).append(flow.reversed)
        return [Ask(dpid, tuple(keys)) for dpid, keys in wanted.items()]

    def _token(self, now: float) -> bool:
        """May one more segment be sent? If not, it stays due."""
        if self._filled_at is not None:
            grown = max(0.0, now - self._filled_at) * self._rate
            self._tokens = min(self._most_tokens, self._tokens + grown)
        self._filled_at = now
        if self._tokens < 1:
            self.counters.limited += 1
            return False
        self._tokens -= 1
        return True


def _can_tell(state: SegmentState) -> bool:
    """Is all known of the receiver that a duplicate ACK of it needs?"""
    return not state.fin and state.has_timestamps is not None
