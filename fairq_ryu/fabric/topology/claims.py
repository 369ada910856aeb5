"""Claims to an address that another live host holds: the holder is asked first.

Pure; times in seconds of one clock. Any host can send a frame with any source address. If the address is held
by a host that still answers, the claim is false, or the network has two hosts with one address: both times
the holder keeps it. The caller sends the questions (:meth:`Claims.questions`) and reports answers.

States of a claim, by the address: *asked*, until an answer comes or the holder is silent; then it is
*believed* and forgotten, or *refused* for :data:`REFUSED_TIME`. A claim of the same address changes nothing
meanwhile, so the holder is not flooded with questions.

A holder is silent when its bridge has taken all questions, each sent in a turn of its own, when
:data:`PATIENCE` has passed after that, and when the caller has then read everything that the bridge had sent
(:meth:`Claims.unread`): a question that waits for the bridge, or an answer that waits to be read behind a
flood or while the controller has no processor, is not silence.

Bounds: :data:`MAX_PER_PORT` addresses are claimed from a port at a time, and :data:`MAX_CLAIMS` in total;
further claims are not believed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from fairq_ryu.model import PortKey

T = TypeVar("T")
Address = tuple[int, str]
"""An address of a VLAN (0: none)."""

PATIENCE = 0.75
"""The time for the answer to the last question once the bridge has it, seconds."""
REFUSED_TIME = 1.0
"""A refused claim can be made again after this time, seconds."""
MAX_PER_PORT = 32
MAX_CLAIMS = 4096
# Many and for long, because a flood may keep some from their way, and a busy machine answers late.
QUESTIONS = 10
"""The number of questions."""
_QUESTION_INTERVAL = 0.25


class Holder(NamedTuple):
    """The host of a VLAN that holds an address, and ``ip``, the address for which it is asked."""

    mac: str
    port: PortKey
    ip: str
    vlan: int = 0


@dataclass(slots=True)
class Claim(Generic[T]):
    """A claim from ``port``. ``what`` is the caller's: the frame that was the claim."""

    address: Address
    holder: Holder
    port: PortKey
    what: T
    ask_at: float
    ends_at: float = math.inf
    asked: int = 0
    refused: bool = False
    waits: bool = False  # for a reply of the bridge
    replies: int = 0


class Claims(Generic[T]):
    """All claims. ``outcomes`` counts them; ``ignored`` are those for which there was no room."""

    def __init__(self) -> None:
        self._claims: dict[Address, Claim[T]] = {}
        self._by_holder: dict[Holder, set[Address]] = {}
        self._by_port: Counter[PortKey] = Counter()
        self.outcomes: Counter[str] = Counter({"believed": 0, "refused": 0, "ignored": 0})

    def __len__(self) -> int:
        return len(self._claims)

    def add(self, address: Address, holder: Holder, port: PortKey, what: T, now: float) -> bool:
        """A host behind ``port`` claims an address. Returns whether this is a new claim."""
        if address in self._claims:
            return False
        if self._by_port[port] >= MAX_PER_PORT or len(self._claims) >= MAX_CLAIMS:
            self.outcomes["ignored"] += 1
            return False
        self._claims[address] = Claim(address, holder, port, what, ask_at=now)
        self._by_holder.setdefault(holder, set()).add(address)
        self._by_port[port] += 1
        return True

    def get(self, address: Address) -> Claim[T] | None:
        """The claim of an address; it may be refused."""
        return self._claims.get(address)

    def answered(self, holder: Holder, now: float) -> list[Claim[T]]:
        """A host has answered for an address at a port. Returns the claims that it refutes."""
        refuted = []
        for address in self._by_holder.get(holder, ()):
            claim = self._claims[address]
            if not claim.refused:
                claim.refused, claim.ends_at = True, now + REFUSED_TIME
                self.outcomes["refused"] += 1
                refuted.append(claim)
        return refuted

    def questions(self, now: float) -> Iterator[Claim[T]]:
        """The claims whose holders must be asked now."""
        for claim in self._claims.values():
            if not claim.refused and claim.asked < QUESTIONS and now >= claim.ask_at:
                claim.asked += 1
                claim.ask_at = now + _QUESTION_INTERVAL
                yield claim

    def unread(self, now: float) -> dict[int, list[Claim[T]]]:
        """Claims, by the bridge of the holder (dpid), for which it must be known that the bridge has taken
        all that was sent to it, and that all that it had sent then was read: once when all questions were
        sent, and once more when :data:`PATIENCE` has passed after that. Then the caller calls :meth:`read`
        with them.
        """
        found: dict[int, list[Claim[T]]] = {}
        for claim in self._claims.values():
            if claim.refused or claim.waits or claim.asked < QUESTIONS:
                continue
            if claim.replies == 1 and claim.ends_at == math.inf:
                claim.ends_at = now + PATIENCE
            if claim.replies == 0 or (claim.replies == 1 and now >= claim.ends_at):
                claim.waits = True
                found.setdefault(claim.holder.port.dpid, []).append(claim)
        return found

    @staticmethod
    def read(claims: Iterable[Claim[T]]) -> None:
        """What :meth:`unread` asks for is so."""
        for claim in claims:
            claim.waits = False
            claim.replies += 1

    def believed(self, now: float) -> list[Claim[T]]:
        """Claims whose holders are silent; refused ones may be made again from now on."""
        over = [claim for claim in self._claims.values() if now >= claim.ends_at]
        over = [claim for claim in over if claim.refused or claim.replies == 2]
        for claim in over:
            self._remove(claim)
        found = [claim for claim in over if not claim.refused]
        self.outcomes["believed"] += len(found)
        return found

    def _remove(self, claim: Claim[T]) -> None:
        del self._claims[claim.address]
        addresses = self._by_holder[claim.holder]
        addresses.discard(claim.address)
        if not addresses:
            del self._by_holder[claim.holder]
        self._by_port[claim.port] -= 1
        if not self._by_port[claim.port]:
            del self._by_port[claim.port]
