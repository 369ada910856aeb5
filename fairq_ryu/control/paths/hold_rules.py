"""Leased rules that hold SYNs: bridges send them to the controller instead of forwarding them.

The lease makes this fail open. A bridge whose controller does not renew the rules forwards SYNs again when
the lease ends. SYNs are not held while any port does not act: they may be on their way to that port. Returns
messages and sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from fairq_ryu.control.sender import Outgoing, to_switch
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.copy_classes import CopyActions
from fairq_ryu.openflow.pipeline import Datapath

_NEVER = float("-inf")


LEASE = 3
"""Seconds for which SYNs are held without a controller. A host sends its SYN again after 1 and 3 s: the
second time it passes.
"""


class HoldRules:
    """``enabled``: whether SYNs are held at all; ``copies``: how the rules of a bridge send frames to the
    controller.
    """

    def __init__(
        self,
        bridges: Mapping[int, Datapath],
        enabled: bool,
        copies: Callable[[int], CopyActions],
    ) -> None:
        self._bridges = bridges
        self._copies = copies
        self._enabled = enabled
        self._renewed_at: dict[int, float] = {}
        self._paused = False

    def pause(self, paused: bool) -> list[Outgoing]:
        """Hold no SYNs for now, or hold them again with the next renewal."""
        begins, self._paused = paused and not self._paused and self._enabled, paused
        if not begins:
            return []
        self._renewed_at.clear()
        return [(datapath, pipeline.end_hold(datapath)) for datapath in self._bridges.values()]

    def renew(self, now: float) -> Iterator[Outgoing]:
        """The rules of bridges for which a third of the lease has passed, or that have just connected."""
        if not self._enabled or self._paused:
            return
        for dpid, datapath in self._bridges.items():
            if now - self._renewed_at.get(dpid, _NEVER) >= LEASE / 3:
                self._renewed_at[dpid] = now
                rules = pipeline.hold(datapath, LEASE, self._copies(dpid))
                yield from to_switch(datapath, rules)

    def bridge_disconnected(self, dpid: int) -> None:
        """A bridge has disconnected: when it connects again, its rules are due at once."""
        self._renewed_at.pop(dpid, None)
