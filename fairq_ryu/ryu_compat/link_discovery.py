"""Link discovery: Ryu's topology service, for bridges that are governed by paths only.

The service would take agents for bridges and send discovery frames to them, it would install a rule in every
bridge and send frames through its ports, and it would parse every packet-in twice. This one knows the bridges
that the controller names, installs nothing, gets discovery frames from the controller, and reports lost links
and sent frames to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ryu import cfg
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.topology import event as topology_event
from ryu.topology import switches

from fairq_ryu.channel import oxm
from fairq_ryu.model import PortKey


class _SteadyClock:
    """Replaces the time of day in the service. That clock may be set: forwards, and all links would be taken
    for lost; backwards, and no frame would be sent until the clock has caught up.
    """

    time = staticmethod(time.monotonic)


class Discovery(switches.Switches):
    """Sends LLDP frames out of every port of every bridge. ``link_lost`` is called when none come through a
    link any more, ``frame_sent`` with the port of every frame that is sent.
    """

    # Ryu takes this for the module that it loads when another application uses topology: one instance is
    # enough.
    __module__ = switches.__name__
    # Pause between two frames, seconds: the 80 ports of a fat-tree of 20 switches take half a second.
    LLDP_SEND_GUARD = 0.005

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # As --observe-links does; without links there are no paths.
        cfg.CONF.set_override("observe_links", True)
        # The rule for discovery frames is one of the controller's own.
        cfg.CONF.set_override("install_lldp_flow", False)
        self.link_lost: Callable[[PortKey, PortKey], None] = lambda _source, _target: None
        self.frame_sent: Callable[[PortKey], None] = lambda _port: None
        switches.time = _SteadyClock
        super().__init__(*args, **kwargs)
        self.threads.append(hub.spawn(self._wake))

    def _wake(self) -> None:
        """The service's loop sleeps until woken if all ports were new when it last ran. If all bridges
        connect at the same time, they send one frame each, before their rules are installed, and then none.
        """
        while self.is_active:
            hub.sleep(self.LLDP_SEND_PERIOD_PER_PORT)
            self.lldp_event.set()

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def state_change_handler(self, event: Any) -> None:
        """A switch has disconnected. One that connects is not known before :meth:`bridge_joined`."""
        if event.state == DEAD_DISPATCHER:
            super().state_change_handler(event)

    def bridge_joined(self, datapath: Any) -> None:
        """A bridge has its rules: discovery frames are sent through its ports from now on."""
        super().state_change_handler(SimpleNamespace(datapath=datapath, state=MAIN_DISPATCHER))

    def bridge_left(self, datapath: Any) -> None:
        """A connected bridge is not governed by paths any more. One that is not known changes nothing."""
        super().state_change_handler(SimpleNamespace(datapath=datapath, state=DEAD_DISPATCHER))

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def port_status_handler(self, event: Any) -> None:
        """A port was added, removed or changed."""
        datapath = event.msg.datapath
        ports = self.port_state.get(datapath.id)
        if ports is None or oxm.is_agent(datapath.id):
            return
        # The service fails on a port that is removed or changed and was never added.
        if event.msg.reason == ofp.OFPPR_ADD or event.msg.desc.port_no in ports:
            super().port_status_handler(event)

    def send_event_to_observers(self, event: Any, state: Any = None) -> None:
        """Send an event to its observers; report lost links to the controller at once."""
        if isinstance(event, topology_event.EventLinkDelete):
            source, target = event.link.src, event.link.dst
            self.link_lost(PortKey(source.dpid, source.port_no), PortKey(target.dpid, target.port_no))
        super().send_event_to_observers(event, state)

    def send_lldp_packet(self, port: Any) -> None:
        """A discovery frame leaves by a port."""
        super().send_lldp_packet(port)
        # For a port that is down, or of a bridge that has disconnected, the service sends nothing.
        known = self.ports.get(port)
        if known is not None and not known.is_down and port.dpid in self.dps:
            self.frame_sent(PortKey(port.dpid, port.port_no))

    def lldp_packet_in_handler(self, event: Any) -> None:
        """A discovery frame; called by the controller, not by an event."""
        super().lldp_packet_in_handler(event)

    def host_discovery_packet_in_handler(self, event: Any) -> None:
        """Does nothing: the controller learns hosts by itself."""
