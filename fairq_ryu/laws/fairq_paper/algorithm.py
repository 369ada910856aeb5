"""Algorithm 1 of FairQ, line by line, on one port.

Abdelmoniem and Bensaou, "FairQ: Fair and Fast Rate Allocation in Data Centers" (arXiv:2401.04850), section
III-A. The text that we have has lost the listing and the names in Table I. The listing and the names here are
those with which the authors printed the same algorithm before, as Algorithm 1 of RWNDQ ("Reconciling Mice and
Elephants in Data Center Networks", IEEE CloudNet 2015, which the paper extends as its [12]); the numbers of
lines are those of that listing. Where the two texts differ, the paper's holds. (Its listing also mends the
checksum, in its line 13; the switch does.)

What the texts leave open, and what we chose:

- Lines 2, 3: the controller sees SYNs and no data. ``Max_Size`` is the largest MSS that they announce; the
  text calls it MSS, too.
- Line 4: a flow counts with the first SYN of its connection, which comes before the SYN-ACK; it counts once,
  also if the SYN is sent again. Line 10: a reset counts as FIN, as in section IV-E1.
- ``slowstart``: the listing does not set it. "Initially and whenever the number of ongoing flows drops to
  zero, the algorithm goes into the slow start mode": when the port is made, and at line 15. The paper calls
  slow start optional: :attr:`Algorithm1.slow_start`.
- Lines 17, 18: :meth:`Algorithm1.receive_window` is what ACKs get; the switch compares, rescales and writes.
- Lines 19 to 31: without flows the timer does not run. Line 29 divides by their number.
- Line 26 is printed as ``Q_len >= alpha * Q_len``; the text has "when the queue exceeds the target".
- Line 29: nothing bounds the window. It is an unsigned number of bytes, so that it stops at 0.
"""

from __future__ import annotations


class Algorithm1:
    """The event handlers of Algorithm 1. Windows, sizes and queues in bytes.

    ``q_rwnd``: common receive window of all flows; ``q_fcount``: number of ongoing flows; ``w_incr``: window
    increments of one update interval; ``q_limit``: the buffer; ``alpha``: the target as a part of it; ``m``:
    number of increments in an update interval.
    """

    def __init__(self, m: int, alpha: float, slow_start: bool, q_limit: int) -> None:
        self.m, self.alpha, self.slow_start = m, alpha, slow_start
        self.q_limit = q_limit
        self.max_size = 0
        self.q_rwnd = alpha * q_limit
        self.q_fcount = 0
        self.slowstart = slow_start
        self.w_incr = 0.0
        self.interval_count = 0

    # 1: procedure PACKET DEPARTURE(P)

    def syn_ack(self, size: int) -> None:
        """A flow starts, with segments of ``size`` bytes."""
        if self.max_size < size:  # 2
            self.max_size = size  # 3
        # 4: if SYN-ACK_bit_set(P) then
        if self.q_fcount == 0:  # 5
            self.q_rwnd = self.alpha * self.q_limit  # 6
        else:  # 7
            self.q_rwnd *= self.q_fcount / (self.q_fcount + 1)  # 8
        self.q_fcount += 1  # 9

    def fin(self) -> None:
        """A flow ends."""
        # 10: else if FIN_bit_set(P) then
        self.q_fcount -= 1  # 11
        if self.q_fcount > 0:  # 12
            self.q_rwnd *= (self.q_fcount + 1) / self.q_fcount  # 13
        else:  # 14
            self.q_rwnd = self.alpha * self.q_limit  # 15
            self.slowstart = self.slow_start  # the text; see above

    def receive_window(self) -> float:
        """What lines 16 to 18 write into an ACK, unless the receiver advertises less."""
        # 16: else if ACK_bit_set(P) then
        # 17:     if Q_Rwnd < ReceiveWnd(P) then
        return self.q_rwnd  # 18: ReceiveWnd(P) <- Q_Rwnd

    # 19: procedure WINDOW INCREMENT TIMEOUT

    def window_increment_timeout(self, q_len: float) -> bool:
        """T has passed; the queue is ``q_len`` bytes long. Returns whether the window was updated."""
        if self.q_fcount == 0:
            return False  # see above
        q_ratio = 1 - q_len / (self.q_limit * self.alpha)  # 20
        self.w_incr += q_ratio * self.max_size / self.m  # 21
        self.interval_count += 1  # 22
        if self.interval_count != self.m:  # 23
            return False
        if self.slowstart:  # 24
            self.q_rwnd += 2 * self.max_size  # 25
            if q_len >= self.alpha * self.q_limit:  # 26
                self.slowstart = False  # 27
        else:  # 28
            self.q_rwnd = max(0.0, self.q_rwnd + self.w_incr / self.q_fcount)  # 29
        self.interval_count = 0  # 30
        self.w_incr = 0.0  # 31
        return True
