"""Polling of agents: a greenlet for each asks for queue depths and flow records while it is connected.

While governed ports have flows, queues are read at the interval that their policies need. Otherwise they
are read every :data:`_IDLE_INTERVAL`. An interval of :data:`LOOK_INTERVAL` or more ends early when
``link.poll_now`` is set: by the first flow of a port, a dropped packet, or a change of policies.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ryu.lib import hub

from fairq_ryu.control.agents.agent_link import AgentLink
from fairq_ryu.policies.switch_port import LOOK_INTERVAL

if TYPE_CHECKING:
    from fairq_ryu.control.reports.counters import Delays
    from fairq_ryu.control.windows.window_controller import WindowController

# Seconds. The first flow of an idle bridge is known from the copy of its SYN anyway.
_IDLE_INTERVAL = 0.25
_COUNTS_INTERVAL = 1.0
# An agent reads its flow map once a second.
_RECORDS_INTERVAL = 1.0
# A reading is at most this part of its interval early; whatever has an interval of its own tolerates that.
_EARLY = 0.1


class AgentPolling:
    """``idle_timeout``: of flows, seconds. ``loop_delay`` counts how much later than planned the loops
    continue.
    """

    def __init__(self, windows: WindowController, idle_timeout: float, loop_delay: Delays) -> None:
        self._windows = windows
        self._idle_timeout = idle_timeout
        self._loop_delay = loop_delay

    def run(self, link: AgentLink) -> None:
        """Poll one agent until it disconnects."""
        now = time.monotonic()
        # Loops that were a little late together must not stay together.
        planned = now
        while self._windows.links.get(link.dpid) is link:
            interval = self._windows.interval(link)
            idle, follows = self._idle_timeout, self._windows.follows_flows
            refresh = self._windows.records_interval(link, _RECORDS_INTERVAL, idle)
            link.send(link.flow_records.request(_RECORDS_INTERVAL, refresh, idle, follows, now))
            link.request_queues(now)
            link.send(link.window_laws.request((1 - _EARLY) * self._windows.engine.look_interval, now))
            link.send(self._windows.queue_laws.request(link, now))
            link.send(link.request_counts(_COUNTS_INTERVAL, now))
            link.send(link.modes.request(_COUNTS_INTERVAL, now))
            link.send(link.request_hidden_queues(_COUNTS_INTERVAL, now))
            early = False
            if interval is not None and interval < LOOK_INTERVAL:
                due = now + interval
                hub.sleep(max(0.0, due - time.monotonic()))
            else:
                link.poll_now.clear()
                due = time.monotonic() + _IDLE_INTERVAL if interval is None else planned + interval
                early = link.poll_now.wait(max(0.0, due - time.monotonic()))
            now = planned = time.monotonic()
            if not early:
                self._loop_delay.observe(max(0.0, now - due))
                if interval is not None and interval >= LOOK_INTERVAL and now - due <= _EARLY * interval:
                    planned = due
