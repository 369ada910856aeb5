"""Algorithm 1 of IQM, line by line, on one port.

Abdelmoniem and Bensaou, "Incast-Aware Switch-Assisted TCP Congestion Control for Data Centers" (IEEE GLOBECOM
2015), section III-A. The numbers of lines are those of the listing.

What the text leaves open, and what we chose:

- Lines 3, 4: the controller sees SYNs and no data. ``Max_Size`` is the largest MSS that they announce; the
  text says "1 MSS worth of bytes" of line 13.
- Line 6: the SYN bit is set in SYN and SYN-ACK. A connection has two flows, one a direction; each counts once
  at the ports by which its data leaves, also if the SYN is sent again. The text: ``N`` new connections.
- Line 13 writes whatever the ACK says; the switch only lowers windows.
- Line 19: ``Initial_CWND`` is ``x * MSS`` by section II, where ``x`` is "the initial window size of TCP in
  segments". "Without loss of generality" the paper takes 1; hosts have 10 today (RFC 6928).
"""

from __future__ import annotations


class Algorithm1:
    """The event handler of Algorithm 1. Sizes and queues in bytes.

    ``beta``: coarsely estimated differential of new connections; ``alpha``: no-incast queue length threshold,
    a part of ``q_limit``, the buffer; ``x``: initial window in segments.
    """

    def __init__(self, alpha: float, x: int, q_limit: int) -> None:
        self.alpha, self.x = alpha, x
        self.q_limit = q_limit
        self.max_size = 0
        self.beta = 0
        self.incast_flag = False

    # 1: switch (EVENT)

    # 2: case Packet_Arrival(P):

    def syn(self, size: int) -> None:
        """A flow starts, with segments of ``size`` bytes."""
        if self.max_size < size:  # 3
            self.max_size = size  # 4
        # 5: end if
        # 6: if SYN_bit_set(P) then
        self.beta = self.beta + 1  # 7
        # 8: end if

    def fin(self) -> None:
        """A flow ends."""
        # 9: if FIN_bit_set(P) then
        self.beta = max(0, self.beta - 1)  # 10
        # 11: end if

    def receive_window(self) -> int | None:
        """What lines 12 to 14 write into an ACK; None: nothing."""
        # 12: if ACK_bit_set(P) and Incast_flag then
        if self.incast_flag:
            return self.max_size  # 13: Rwnd(P) <- Max_Size
        # 14: end if
        return None

    # 15: case Incast_Detection_Timeout:

    def incast_detection_timeout(self, q_len: int) -> None:
        """T_i has passed; the queue is ``q_len`` bytes long."""
        if q_len < self.alpha * self.q_limit:  # 16
            self.incast_flag = False  # 17
        # 18: end if
        extra_traffic = self.beta * self._initial_cwnd() + q_len  # 19
        if extra_traffic > self.q_limit:  # 20
            self.incast_flag = True  # 21
        # 22: end if
        self.beta = 0  # 23: ...; Restart Incast detection timer T_i (the next reading of the queue)
        # 24: end switch

    def _initial_cwnd(self) -> int:
        """Section II: x * MSS."""
        return self.x * self.max_size
