"""Claims to an address that another live host holds: the holder is asked first.

Pure; times in seconds of one clock. Any host can send a frame with any source address. If the address is held
by a host that still answers, the claim is false, or the network has two hosts with one address: both times
the holder keeps it. The caller sends the questions (:meth:`Claims.questions`) and reports answers.

States of a claim, by the address: *asked*, until an answer comes or :data:`PATIENCE` has passed; then it is
*believed* and forgotten, or *refused* for :data:`REFUSED_TIME`. A claim of the same address changes nothing
meanwhile, so the holder is not flooded with questions. Bounds: :data:`MAX_PER_PORT` addresses are claimed
from a port at a time, and :data:`MAX_CLAIMS` in total; further claims are not believed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from fairq_ryu.model import PortKey

T = TypeVar("T")
Address = tuple[int, str]
"""An address of a VLAN (0: none)."""

PATIENCE = 3.0
"""A holder that has not answered after this time is gone, seconds."""
REFUSED_TIME = 1.0
"""A refused claim can be made again after this time, seconds."""
MAX_PER_PORT = 32
MAX_CLAIMS = 4096
# Many and for long, because a flood may keep some from their way, and a busy machine answers late.
_QUESTIONS = 10
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
    ends_at: float
    asked: int = 0
    ask_at: float = 0.0
    refused: bool = False


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
        self._claims[address] = Claim(address, holder, port, what, now + PATIENCE, ask_at=now)
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
            if not claim.refused and claim.asked < _QUESTIONS and now >= claim.ask_at:
                claim.asked += 1
                claim.ask_at = now + _QUESTION_INTERVAL
                yield claim

    def believed(self, now: float) -> list[Claim[T]]:
        """Claims whose holders have not answered in time; refused ones may be made again from now on."""
        over = [claim for claim in self._claims.values() if now >= claim.ends_at]
        for claim in over:
            self._remove(claim)
        found = [claim for claim in over if not claim.refused and claim.asked]
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
