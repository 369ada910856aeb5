"""How often agents are read while the switches decide on the windows: the more there is to read, the less
often.

Then the controller reads queues, laws and flow records only to renew leases, to show them, and to correct its
flow table, and nobody's window waits for it. So many ports and flows need not cost more than a part of one
processor: beyond a number of them, each is read less often, so that the rates below hold for all agents
together.
"""

from __future__ import annotations

from collections.abc import Callable

from fairq_ryu.policies.switch_port import LOOK_INTERVAL

QUEUES_PER_SECOND = 2000
"""Queues, and as many states of laws, that are read in a second: above 100 ports each is read more rarely
than every :data:`LOOK_INTERVAL`."""
RECORDS_PER_SECOND = 1000
"""Flow records that are read in a second, but each at least every :data:`LONGEST_RECORDS_INTERVAL`."""
LONGEST_RECORDS_INTERVAL = 30.0
# Records must be read several times before a flow counts as idle.
_READS_BEFORE_IDLE = 4


class SharedSum:
    """A sum over all agents, for which each of them asks as often: it is worked out anew when as many have
    asked as there are, not each time.
    """

    def __init__(self, work_out: Callable[[], int]) -> None:
        self._work_out = work_out
        self._value = self._left = 0

    def get(self, agents: int) -> int:
        """The sum; ``agents``: how many there are."""
        if self._left <= 0:
            self._value, self._left = self._work_out(), agents
        self._left -= 1
        return self._value


def look_interval(ports: int, renew_after: float) -> float:
    """The time between two readings of the queues of ``ports`` ports, seconds: at most ``renew_after``,
    because their leases are renewed then.
    """
    return max(LOOK_INTERVAL, min(ports / QUEUES_PER_SECOND, renew_after))


def records_interval(wanted: float, records: int, idle_timeout: float) -> float:
    """The time between two requests for all flow records, seconds: ``wanted``, unless there are more than
    the rate allows. ``idle_timeout``: of flows, which the records keep alive.
    """
    longest = min(LONGEST_RECORDS_INTERVAL, idle_timeout / _READS_BEFORE_IDLE)
    return max(wanted, min(records / RECORDS_PER_SECOND, longest))
