"""How often agents are read while the switches decide on the windows: the more there is to read, the less
often.

Then the controller reads queues, laws and flow records only to renew leases, to show them, and to correct its
flow table, and nobody's window waits for it. So many ports and flows need not cost more than a part of one
processor: beyond a number of them, each is read less often, so that the rates below hold for all agents
together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from fairq_ryu.policies.switch_port import LOOK_INTERVAL

QUEUES_PER_SECOND = 1250
"""Queues, and as many states of laws, that are read in a second: above 62 ports each is read more rarely
than every :data:`LOOK_INTERVAL`."""
_LONGEST_PART = 0.4
"""The part of a lease after which a queue is read at the latest. The lease is renewed then, so more than half
of it is left for delays."""
RECORDS_PER_SECOND = 1000
"""Flow records that are read in a second, about, but each at least every :data:`LONGEST_RECORDS_INTERVAL`."""
LONGEST_RECORDS_INTERVAL = 30.0
# For so many agents a sum is worked out each time.
_FEW = 5
# Records must be read several times before a flow counts as idle.
_READS_BEFORE_IDLE = 3


class SharedSum:
    """A sum over all agents that each of them needs. It is worked out anew after :data:`LOOK_INTERVAL`, or
    when the number of agents has changed; not each time, which would take the square of their number.
    """

    def __init__(self, work_out: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._work_out, self._clock = work_out, clock
        self._value = 0
        self._at, self._agents = -math.inf, 0

    def get(self, agents: int) -> int:
        """The sum; ``agents``: how many there are."""
        now = self._clock()
        if agents <= _FEW or agents != self._agents or now - self._at >= LOOK_INTERVAL:
            self._value, self._at, self._agents = self._work_out(), now, agents
        return self._value


def look_interval(ports: int, lease: float) -> float:
    """The time between two readings of the queues of ``ports`` ports, whose rules have this ``lease``,
    seconds.
    """
    return max(LOOK_INTERVAL, min(ports / QUEUES_PER_SECOND, _LONGEST_PART * lease))


def records_interval(wanted: float, records: int, idle_timeout: float) -> float:
    """The time between two requests for all flow records, seconds: ``wanted``, unless there are more than
    the rate allows. ``idle_timeout``: of flows, which the records keep alive.
    """
    longest = min(LONGEST_RECORDS_INTERVAL, idle_timeout / _READS_BEFORE_IDLE)
    return max(wanted, min(records / RECORDS_PER_SECOND, longest))
