"""What the recovery of lost segments may do, what it does, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fairq_ryu.model import FlowKey, PortKey, SegmentState


class Mode(StrEnum):
    """The remedies for a loss."""

    DUPACK = "dupack"
    REINJECT = "reinject"
    BOTH = "both"


class SendDuplicates(NamedTuple):
    """Send three duplicates of ``state.ack`` to ``flow.src``, with the numbers of ``state``."""

    flow: FlowKey
    state: SegmentState


class Reinject(NamedTuple):
    """Send the frame through the port that has dropped it. ``tsecr``: the timestamp that its receiver echoes;
    it would discard an older one (None: not known, or the frame has none).
    """

    port: PortKey
    frame: bytes
    tsecr: int | None = None


class Ask(NamedTuple):
    """Request the state of these receivers from a switch; the keys are the directions of their ACKs."""

    dpid: int
    keys: tuple[FlowKey, ...]


Action = SendDuplicates | Reinject | Ask


@dataclass(slots=True)
class Counters:
    """The outcomes of losses, in segments. Each that was ``tracked`` ends in one of ``acked``,
    ``expired``, ``overflow`` and ``forgotten``.
    """

    lost: int = 0  # reported by switches
    ignored: int = 0  # pure ACKs, resets, signed or unreadable segments, those without a remedy
    tracked: int = 0  # stored
    repeated: int = 0  # reported again while stored: retransmitted by its sender or reinjected
    truncated: int = 0  # arrived cut short, and cannot be reinjected
    duplicates: int = 0  # reported to the sender by duplicate ACKs
    reinjected: int = 0  # sent again
    acked: int = 0  # acknowledged by the receiver meanwhile
    expired: int = 0  # forgotten because of age
    overflow: int = 0  # forgotten because of newer ones
    forgotten: int = 0  # forgotten with their flow or port
    limited: int = 0  # actions delayed by the rate limit
    unanswered: int = 0  # reinjected, and not acknowledged in time
