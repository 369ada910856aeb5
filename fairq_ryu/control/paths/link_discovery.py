"""Link discovery: tagged LLDP frames leave by every port, and show the links where they arrive.

Theory of operation
-------------------

Every port of a bridge whose rules are installed sends a frame each :data:`PERIOD`, and more often while the
role of a port is not known. With many ports the period is longer, so that frames cost a bounded part of the
controller's time. The bridge at the other end passes the frame to the controller.

Anybody can send LLDP: hosts, switches of others, and whoever wants to deceive the controller. A frame counts
only if its tag is valid (:mod:`~fairq_ryu.fabric.topology.discovery_tags`). What it then may change is
decided by :meth:`~fairq_ryu.fabric.topology.graph.Topology.lldp_seen`. Frames that are ignored are counted by
reason. The key of the tags is random and never leaves the process.

Bounds: one time for each port that is up.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections import Counter, OrderedDict
from collections.abc import Mapping
from itertools import islice, takewhile

from ryu.ofproto import ofproto_v1_3 as ofp

from fairq_ryu.control.paths.link_probes import LinkProbes
from fairq_ryu.control.reports.counters import DISCOVERY_IGNORED
from fairq_ryu.control.sender import Outgoing
from fairq_ryu.fabric.topology.discovery_tags import DiscoveryTags
from fairq_ryu.fabric.topology.graph import Sight, Topology
from fairq_ryu.fabric.topology.link_watch import DirectedLink
from fairq_ryu.model import PortKey
from fairq_ryu.openflow import pipeline
from fairq_ryu.openflow.pipeline import Datapath
from fairq_ryu.packet import lldp

PERIOD = 0.9
"""Time between two frames of a port, seconds."""
INTERVAL = 0.05
"""Time between two calls of :meth:`LinkDiscovery.due`, seconds."""
# The period while the role of a port is not known.
_EAGER_PERIOD = 0.4
# The maximum number of frames in one call: one takes 0.1 ms.
_MAX_FRAMES = 20
_MAX_EAGER_FRAMES = 40
# What is logged about a genuine frame that shows no link, once in this many seconds.
_WARNING_INTERVAL = 60.0
_WARNINGS = {
    Sight.HOSTS: "one of these ports has hosts",
    Sight.TAKEN: "one of these ports has another link, which works",
    Sight.REFLECTED: "what is behind the port sends frames back",
}


class LinkDiscovery:
    """Makes and reads discovery frames. ``ignored`` counts frames that show no link, by reason. Times in
    seconds of one clock.
    """

    def __init__(
        self,
        bridges: Mapping[int, Datapath],
        topology: Topology,
        probes: LinkProbes,
        log: logging.Logger,
    ) -> None:
        self._bridges = bridges
        self._topology = topology
        self._probes = probes
        self._log = log
        self._warned_at = -math.inf
        self._tags = DiscoveryTags(secrets.token_bytes(32))
        # When each port of a ready bridge that is up has sent last, the earliest first, and the state of the
        # network that these ports belong to.
        self._sent_at: OrderedDict[PortKey, float] = OrderedDict()
        self._ports_of: tuple[int, int] | None = None
        self.ignored: Counter[str] = Counter(dict.fromkeys(DISCOVERY_IGNORED, 0))

    def due(self, now: float) -> list[tuple[PortKey, Outgoing]]:
        """The frames that are due, each with its port: those of new ports first, then the oldest."""
        self._probes.tell_new(now)
        self._find_ports()
        sent = self._sent_at
        self._topology.period = max(PERIOD, len(sent) * INTERVAL / _MAX_FRAMES)
        eager = self._topology.waits
        period, limit = (_EAGER_PERIOD, _MAX_EAGER_FRAMES) if eager else (PERIOD, _MAX_FRAMES)
        due = takewhile(lambda each: now - each[1] >= period, sent.items())
        chosen = [port for port, _ in islice(due, limit)]
        slot = self._tags.slot(now)
        found = []
        for port in chosen:
            sent[port] = now
            sent.move_to_end(port)
            datapath = self._bridges[port.dpid]
            data = lldp.build(lldp.DiscoveryFrame(*port, slot, self._tags.tag(port, slot)))
            message = pipeline.packet_out(datapath, data, ofp.OFPP_CONTROLLER, [port.port])
            found.append((port, (datapath, message)))
        return found

    def _find_ports(self) -> None:
        """Look for the ports that send, if they may be others than before."""
        state = self._topology.version, self._probes.changes
        if state == self._ports_of:
            return
        before, ready, self._ports_of = self._sent_at, self._probes.is_ready, state
        found = [
            (before.get(each, -math.inf), each) for each in self._topology.ports_up() if ready(each.dpid)
        ]
        self._sent_at = OrderedDict((port, at) for at, port in sorted(found))

    def source_of(self, data: bytes, now: float) -> PortKey | None:
        """The port by which a frame has left; None: it is no genuine discovery frame."""
        frame = lldp.parse(data)
        if frame is None:
            return None
        source = PortKey(frame.dpid, frame.port)
        return source if self._tags.valid(source, frame.slot, frame.tag, now) else None

    def received(self, data: bytes, target: PortKey, now: float) -> DirectedLink | None:
        """An LLDP frame arrived at a port. Returns the direction of a link that it shows, if that is new."""
        source = self.source_of(data, now)
        if source is None:
            self.ignored["foreign" if lldp.parse(data) is None else "tag"] += 1
            return None
        sight = self._topology.lldp_seen(source, target, now)
        if sight is Sight.NEW:
            return source, target
        if sight is not Sight.KNOWN:
            self.ignored[sight] += 1
        if sight in _WARNINGS and now - self._warned_at >= _WARNING_INTERVAL:
            self._warned_at = now
            self._log.warning(
                "port %s: the discovery frame of port %s is ignored: %s (such frames are counted, and logged "
                "once a minute)",
                target,
                source,
                _WARNINGS[sight],
            )
        return None
