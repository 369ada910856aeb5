"""Whether bridges that forward as learning switches would close a loop: a frame would circulate for ever.

Theory of operation
-------------------

Discovery frames show the links of bridges without rules of others, as they do in the fabric
(:mod:`~fairq_ryu.control.paths.link_discovery`). A search starts when there may be a new link: when such a
bridge connects, when one of its ports is added or comes up, and when a bridge joins the fabric.

- All these bridges are looked at, those that have the rule that forwards, too. So the last one of a loop
  always finds the others.
- A round ends when frames have left all ports and have had the time to arrive. Every port that has heard
  another is linked with it, in whatever direction. All bridges of the fabric count as one.
- Each bridge is told whether a loop is linked to it, and whether it is part of one
  (:mod:`~fairq_ryu.fabric.topology.loops`). It answers whether it waits for the loop to go.
- While a bridge waits, rounds follow each other. A link is gone when its port is down, or when it was silent
  for two rounds.

What is between two bridges and swallows discovery frames (a switch of others) hides a loop, and a new link
between switches of others starts no search. Frames are sent only during a search, and only then the bridges
pass them to the controller: hosts can send such frames, too. Bounded: one entry for each connected bridge,
one for each of its ports, and one for each pair of ports that hear each other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fairq_ryu.control.paths.link_discovery import LinkDiscovery
from fairq_ryu.control.paths.link_probes import LinkProbes
from fairq_ryu.control.sender import Sender
from fairq_ryu.fabric.topology import loops
from fairq_ryu.fabric.topology.graph import Topology
from fairq_ryu.fabric.topology.link_watch import DirectedLink
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import beside
from fairq_ryu.openflow.pipeline import Datapath

Decided = Callable[[bool, bool], bool]
_SWEEPS = 1


@dataclass(eq=False)
class _Watched:
    """A bridge: the numbers of its ports that are up, and whether it waits for the rule."""

    up: set[int]
    decided: Decided
    waits: bool


class _Search:
    """Rounds in which discovery frames are sent. ``bridges`` are those that are watched."""

    def __init__(
        self, settle: float, sender: Sender, bridges: Mapping[int, Datapath], log: logging.Logger
    ) -> None:
        # Its ports are those that are up. It is told of no link: it decides when a round is over.
        self.topology = Topology(settle, _SWEEPS)
        self._probes = LinkProbes(bridges, self.topology, sender)
        self.discovery = LinkDiscovery(bridges, self.topology, self._probes, log)
        self.heard: set[DirectedLink] = set()
        self._before: set[DirectedLink] = set()  # heard in the round before

    def add(self, datapath: Datapath, up: Iterable[int], now: float) -> None:
        """Look at the links of a bridge, too."""
        Sender.send([(datapath, beside.discovery(datapath))])
        self.topology.add_switch(datapath.id, [(number, True) for number in up], now)
        self._probes.bridge_connected(datapath, new=True)

    def remove(self, dpid: int) -> None:
        """Look at a bridge no more."""
        for port in self.topology.ports(dpid):
            self.remove_port(port)
        self._probes.bridge_disconnected(dpid)
        self.topology.remove_switch(dpid)
        self.topology.forget_switch(dpid, 0.0)  # no port is that of a link

    def remove_port(self, port: PortKey) -> None:
        """A port is down, or was removed."""
        self.topology.remove_port(port)
        self.heard = {link for link in self.heard if port not in link}
        self._before = {link for link in self._before if port not in link}

    def next_round(self, now: float) -> None:
        """Look at all links again."""
        self._before, self.heard = self.heard, set()
        for port in list(self.topology.ports_up()):
            self.topology.add_port(port, True, now)

    def found(self, now: float) -> set[DirectedLink] | None:
        """Send the frames that are due. Returns all links; None: the round is not over."""
        for port, message in self.discovery.due(now):
            self._probes.frame_sent(port)
            Sender.send([message])
        self._probes.confirm()
        self.topology.decide(now)
        return None if self.topology.waits else self.heard | self._before


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
        rule. ``decided`` is called after each round with whether a loop is linked to the bridge, and whether
        the bridge is part of one; it returns whether the bridge waits for the loop to go.
        """
        dpid = datapath.id
        self.remove(dpid)
        self.bridges[dpid] = datapath
        self._watched[dpid] = _Watched({number for number, up in ports if up}, decided, not forwards)
        if self._search is None:
            self.search(now)
        else:
            self._search.add(datapath, self._watched[dpid].up, now)

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
        return True

    def search(self, now: float) -> None:
        """There may be a new link: look at all of them."""
        if self._search is not None:
            self._search.next_round(now)
        elif self._watched:
            self._search = _Search(self._settle, self._sender, self.bridges, self._log)
            for dpid, watched in self._watched.items():
                self._search.add(self.bridges[dpid], watched.up, now)

    def port_changed(self, port: PortKey, up: bool, now: float) -> None:
        """A port of a bridge was added, or has changed."""
        watched = self._watched.get(port.dpid)
        if not up:
            self.port_removed(port)
        elif watched is not None and port.port not in watched.up:
            watched.up.add(port.port)
            if self._search is None:
                self.search(now)
            else:
                self._search.topology.add_port(port, True, now)

    def port_removed(self, port: PortKey) -> None:
        """A port of a bridge was removed."""
        if port.dpid in self.bridges:
            self._watched[port.dpid].up.discard(port.port)
            if self._search is not None:
                self._search.remove_port(port)

    @property
    def waiting(self) -> list[int]:
        """The bridges that wait for the rule."""
        return [dpid for dpid, each in self._watched.items() if each.waits]

    def frame(self, data: bytes, target: PortKey, now: float) -> bool:
        """A discovery frame has arrived at a bridge, of these or of the fabric. Returns whether it is of one
        of these.
        """
        source = None if self._search is None else self._search.discovery.source_of(data, now)
        if self._search is None or source is None or not self._search.topology.has_port(source):
            return False
        self._search.heard.add((source, target))
        return True

    def tick(self, now: float) -> None:
        """Send the frames that are due, and decide if a round is over."""
        links = None if self._search is None else self._search.found(now)
        if self._search is None or links is None:
            return
        for group, looped in list(loops.groups(self.bridges, links)):
            for dpid in sorted(group):
                watched = self._watched[dpid]
                watched.waits = watched.decided(bool(looped), dpid in looped)
        if self.waiting:
            self._search.next_round(now)
        else:
            self._search = None
            Sender.send((each, beside.remove(each, beside.DISCOVERS)) for each in self.bridges.values())
