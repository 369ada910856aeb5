"""Meters that limit the copies that bridges send to the controller and the frames that they flood, and their
counters.

Each port of a bridge has a share of the limit ``packet_in_rate`` for each class of frames, with a meter of
its own (:mod:`~fairq_ryu.openflow.copy_classes`): a port that floods loses its own copies only. One meter of
the bridge limits everything that has no share. The shares are tried first: if a bridge refuses a meter or a
rule of them, its rules send copies without shares, as they did until then.

Frames to group addresses are flooded to all hosts: those that come in by a port have a meter, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairq_ryu.control.sender import Outgoing, to_switch
from fairq_ryu.openflow import copy_classes, meters, pipeline
from fairq_ryu.openflow.copy_classes import CopyActions, CopyClass
from fairq_ryu.openflow.pipeline import Datapath, Message

INTERVAL = 2.0
"""Bridges are asked for the counters of their meters this often, seconds."""
# The part of packet_in_rate that a port has for a class, and the least rate for one, packets per second: a
# port gets two to three discovery frames a second.
_PARTS = {
    CopyClass.DISCOVERY: 0.01,
    CopyClass.ARP: 0.05,
    CopyClass.SYN: 0.2,
    CopyClass.END: 0.2,
    CopyClass.SOURCE: 0.05,
    CopyClass.HELD: 0.25,
}
_LEAST = {CopyClass.DISCOVERY: 10}


class CopyMeters:
    """``rate``: copies per second and bridge; ``groups``: frames to group addresses per second and port; 0:
    not limited. ``holds``: whether SYNs are held. ``dropped`` has the copies that each bridge has dropped, by
    the bridge's own count.
    """

    def __init__(self, bridges: Mapping[int, Datapath], rate: int, groups: int, holds: bool) -> None:
        self._bridges = bridges
        self._rate = rate
        self._groups = groups
        self._classes = [kind for kind in _PARTS if holds or kind is not CopyClass.HELD]
        self._unsupported: set[int] = set()
        self._trying: set[int] = set()
        self._shared: set[int] = set()
        self._partial: dict[int, int] = {}
        self.dropped: dict[int, int] = {}

    def install(self, datapath: Datapath, ports: Iterable[int]) -> list[Outgoing]:
        """The meters of a bridge that has connected, and the rules of the shares of its ports; those of an
        earlier controller are removed first. No rule leads there before :meth:`confirmed`.
        """
        dpid = datapath.id
        self.bridge_disconnected(dpid)
        messages = [meters.remove(datapath)]
        if self._rate:
            messages += [meters.add(datapath, self._rate), *pipeline.class_rules(datapath)]
        if self._rate or self._groups:
            self._trying.add(dpid)
            messages += [message for port in ports for message in self._share(datapath, port)]
        return to_switch(datapath, messages)

    def _share(self, datapath: Datapath, port: int) -> Iterator[Message]:
        if self._groups:
            meter = copy_classes.group_meter_id(port)
            yield meters.remove(datapath, meter)
            yield meters.add(datapath, self._groups, meter)
            yield pipeline.limit_groups(datapath, port, meter)
        for kind in self._classes if self._rate else ():
            meter = copy_classes.meter_id(kind, port)
            rate = max(_LEAST.get(kind, 1), round(_PARTS[kind] * self._rate))
            yield meters.remove(datapath, meter)
            yield meters.add(datapath, rate, meter, max(1, rate // 2))
            yield pipeline.share_rule(datapath, kind, port)

    def confirmed(self, datapath: Datapath) -> list[Outgoing]:
        """A bridge has processed all of :meth:`install`: its copies take the shares from now on, unless it
        has refused something.
        """
        if datapath.id not in self._trying:
            return []
        self._trying.discard(datapath.id)
        self._shared.add(datapath.id)
        if not self._rate:
            return []
        return to_switch(datapath, pipeline.copy_rules(datapath, copy_classes.shared))

    def port_added(self, datapath: Datapath, port: int) -> list[Outgoing]:
        """A port was added to a bridge."""
        known = datapath.id in self._shared or datapath.id in self._trying
        return to_switch(datapath, self._share(datapath, port)) if known else []

    def port_removed(self, datapath: Datapath, port: int) -> list[Outgoing]:
        """A port was removed from a bridge."""
        if datapath.id not in self._shared and datapath.id not in self._trying:
            return []
        messages = [
            pipeline.limit_groups(datapath, port, None),
            meters.remove(datapath, copy_classes.group_meter_id(port)),
        ]
        for kind in self._classes:
            messages.append(pipeline.share_rule(datapath, kind, port, there=False))
            messages.append(meters.remove(datapath, copy_classes.meter_id(kind, port)))
        return to_switch(datapath, messages)

    @staticmethod
    def removed(datapath: Datapath, ports: Iterable[int]) -> list[Message]:
        """The removal of all meters that a bridge has of this controller or an earlier one."""
        shares = [meters.remove(datapath, each) for port in ports for each in copy_classes.meters_of(port)]
        return [meters.remove(datapath), *shares]

    def actions(self, dpid: int) -> CopyActions:
        """How rules of a bridge send frames to the controller."""
        return copy_classes.shared if self._rate and dpid in self._shared else copy_classes.plain

    def bridge_disconnected(self, dpid: int) -> None:
        """A bridge has disconnected."""
        self.dropped.pop(dpid, None)
        self._partial.pop(dpid, None)
        for known in (self._unsupported, self._trying, self._shared):
            known.discard(dpid)

    def refused(self, dpid: int, meter: bool) -> bool:
        """A bridge has refused a message; ``meter``: one about a meter. Returns whether its copies have no
        shares because of that.
        """
        if dpid not in self._bridges or dpid in self._shared:
            return False
        tried = dpid in self._trying
        self._trying.discard(dpid)
        if meter:
            self._unsupported.add(dpid)
        return tried

    def requests(self) -> Iterator[Outgoing]:
        """Requests for the counters of all meters."""
        if self._rate:
            for datapath in [each for dpid, each in self._bridges.items() if dpid not in self._unsupported]:
                yield datapath, meters.ask(datapath)

    def counted(self, datapath: Any, stats: Iterable[Any], more: bool = False) -> None:
        """A bridge has answered (Ryu's ``OFPMeterStats``); ``more``: the rest follows."""
        dpid = datapath.id
        if self._bridges.get(dpid) is not datapath:
            return
        ours = (s for s in stats if s.meter_id == meters.OF_CONTROLLER or copy_classes.is_ours(s.meter_id))
        total = self._partial.pop(dpid, 0) + sum(b.packet_band_count for s in ours for b in s.band_stats)
        if more:
            self._partial[dpid] = total
        else:
            self.dropped[dpid] = total
