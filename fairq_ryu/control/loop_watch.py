"""Whether bridges that forward as learning switches would close a loop: a frame would circulate for ever.

Theory of operation
-------------------

A bridge without rules waits for the rule that forwards until discovery frames have shown its links, as they
do in the fabric (:mod:`~fairq_ryu.control.link_discovery`). Bridges that have the rule already are looked at
with it, so the last one of a loop always finds the others:

- A group of connected bridges with as many links as bridges, or more, has a loop. Links to bridges of the
  fabric count as links to one bridge.
- No bridge of such a group gets the rule, and those that have it lose it.

What is between two bridges and swallows discovery frames (a switch of others) hides a loop. Frames are sent
only while a bridge waits, and only then the bridges pass them to the controller. Bounded: one entry for each
connected bridge, and one for each of its ports.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fairq_ryu.control.link_discovery import LinkDiscovery
from fairq_ryu.control.link_probes import LinkProbes
from fairq_ryu.control.sender import Sender
from fairq_ryu.fabric.topology import loops
from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import beside
from fairq_ryu.openflow.pipeline import Datapath

Decided = Callable[[bool], object]
_FABRIC = -1
_SWEEPS = 1


@dataclass(eq=False)
class _Watched:
    """A bridge: the states of its ports (number, up), and whether it waits for the rule."""

    ports: dict[int, bool]
    decided: Decided
    waits: bool


class _Search:
    """One search for links, as long as bridges wait. ``bridges`` are those that are watched."""

    def __init__(
        self, settle: float, sender: Sender, bridges: Mapping[int, Datapath], log: logging.Logger
    ) -> None:
        self.topology = Topology(settle, _SWEEPS)
        self.probes = LinkProbes(bridges, self.topology, sender)
        self.discovery = LinkDiscovery(bridges, self.topology, self.probes, log)
        self.to_fabric: set[PortKey] = set()  # ports whose frames arrive at bridges of the fabric

    def add(self, datapath: Datapath, ports: Mapping[int, bool], now: float) -> None:
        """Look at the links of a bridge, too."""
        Sender.send([(datapath, beside.discovery(datapath))])
        self.topology.add_switch(datapath.id, ports.items(), now)
        self.probes.bridge_connected(datapath, new=True)

    def remove(self, dpid: int) -> None:
        """Look at a bridge no more."""
        self.probes.bridge_disconnected(dpid)
        self.topology.remove_switch(dpid)
        self.topology.forget_switch(dpid)
        self.to_fabric = {port for port in self.to_fabric if port.dpid != dpid}

    def found(self, now: float) -> list[tuple[int, int]] | None:
        """Send the frames that are due. Returns all links, as pairs of bridges; None: not all are known."""
        for port, message in self.discovery.due(now):
            self.probes.frame_sent(port)
            Sender.send([message])
        self.probes.confirm()
        self.topology.decide(now)
        if not self.topology.settled:
            return None
        links = [(a.dpid, b.dpid) for a, b in self.topology.links()]
        return links + [(port.dpid, _FABRIC) for port in self.to_fabric]


class LoopWatch:
    """The bridges that have the rule that forwards, or wait for it. ``settle``: the time in seconds after
    which a port without discovery frames has no link. Times in seconds of one clock.
    """

    def __init__(self, settle: float, sender: Sender, log: logging.Logger) -> None:
        self._settle, self._sender, self._log = settle, sender, log
        self.bridges: dict[int, Datapath] = {}
        self._watched: dict[int, _Watched] = {}
        self._search: _Search | None = None

    def add(
        self,
        datapath: Datapath,
        ports: Iterable[tuple[int, bool]],
        decided: Decided,
        now: float,
        forwards: bool,
    ) -> None:
        """A bridge has connected, with these ports (number, and whether each is up). ``forwards``: it has the
        rule. ``decided`` is called with whether the bridge is part of a loop: once if it waits for that, and
        again whenever a loop through it is found.
        """
        dpid = datapath.id
        self.remove(dpid)
        self.bridges[dpid] = datapath
        self._watched[dpid] = _Watched(dict(ports), decided, not forwards)
        if self._search is not None:
            self._search.add(datapath, self._watched[dpid].ports, now)
        elif not forwards:
            self._search = _Search(self._settle, self._sender, self.bridges, self._log)
            for each, watched in self._watched.items():
                self._search.add(self.bridges[each], watched.ports, now)

    def remove(self, dpid: int) -> bool:
        """A bridge is not watched any more: it has disconnected, or is governed in another way. Returns
        whether it has the rule for discovery frames.
        """
        if self.bridges.pop(dpid, None) is None:
            return False
        del self._watched[dpid]
        self._sender.barriers.disconnected(dpid)
        if self._search is None:
            return False
        self._search.remove(dpid)
        self._end_search()
        return True

    def port_changed(self, port: PortKey, up: bool, now: float) -> None:
        """A port of a bridge was added, or has changed."""
        if port.dpid in self.bridges:
            self._watched[port.dpid].ports[port.port] = up
            if self._search is not None:
                self._search.topology.port_changed(port, up, now)

    def port_removed(self, port: PortKey) -> None:
        """A port of a bridge was removed."""
        if port.dpid in self.bridges:
            self._watched[port.dpid].ports.pop(port.port, None)
            if self._search is not None:
                self._search.topology.remove_port(port)
                self._search.to_fabric.discard(port)

    @property
    def waiting(self) -> list[int]:
        """The bridges that wait for the rule."""
        return [dpid for dpid, each in self._watched.items() if each.waits]

    def frame(self, data: bytes, target: PortKey, now: float) -> bool:
        """A discovery frame has arrived at a bridge, of these or of the fabric. Returns whether it is of one
        of these.
        """
        source = None if self._search is None else self._search.discovery.source_of(data, now)
        if self._search is None or source is None or source.dpid not in self.bridges:
            return False
        if target.dpid in self.bridges:
            self._search.discovery.received(data, target, now)
        else:
            self._search.to_fabric.add(source)
        return True

    def tick(self, now: float) -> None:
        """Send the frames that are due, and decide if all links are known."""
        links = None if self._search is None else self._search.found(now)
        if links is None:
            return
        for group, loop in list(loops.groups(self.bridges, links)):
            for dpid in sorted(group - {_FABRIC}):
                watched = self._watched[dpid]
                if watched.waits or loop:
                    watched.waits = False
                    watched.decided(loop)
        self._end_search()

    def _end_search(self) -> None:
        """If no bridge waits, they pass no discovery frames any more: hosts can send such frames, too."""
        if self._search is not None and not self.waiting:
            self._search = None
            Sender.send((each, beside.remove(each, beside.DISCOVERS)) for each in self.bridges.values())
