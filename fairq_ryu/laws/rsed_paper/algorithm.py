"""What RSED adds to SED: the packet-loss message, and three duplicate ACKs.

Lu, "SED: An SDN-Based Explicit-Deadline-Aware TCP for Cloud Data Center Networks" (Tsinghua Science and
Technology 21(5), 2016), section 4 and Fig. 7. There is no listing; Eq. 5 and the range of cwnd that follows
from it say why segments are lost, and decide nothing. The text, sentence by sentence:

1. "Packets are dropped when the switch queue size is greater than the switch buffer." The queue of the port
   does that.
2. "A packet-loss message, which is encapsulated in an OpenFlow Packet In message, is triggered and
   transmitted to the controller": by the agent, of each packet that this queue drops
   (``Thresholds.drops``, ``channel/dropped_packet.py``).
3. "After obtaining the dropped packet extracted from this Packet In message, the controller sends triple
   duplicate ACKs to the source of the dropped packet": :data:`ON_PACKET_LOSS`. ``fabric/recovery`` decides
   when, ``packet/tcp_build.py`` builds them, and they enter the network by PACKET_OUT at the receiver's port,
   through all tables, as the receiver's own ACKs do.
4. "Ultimately, the sender can retransmit this packet without a TCP RTO timeout."

What the text leaves open, and what we chose:

- The numbers of the ACKs. They are those of the receiver's last ACK, which the controller asks the switch
  for: the sender retransmits the byte that they ask for, and nothing may be acknowledged that has not
  arrived. So they are sent when the receiver asks for the first byte of the dropped segment: at once, or when
  its ACKs get there.
- The window. It is that of the receiver's last ACK as the switch has passed it on, which the switch
  remembers. With a larger one the first of the three would be a window update, and two duplicates do nothing.
- How often. Once for each hole: a sender in fast recovery ignores more of them.
- Dropped SYNs, FINs, pure ACKs and resets have no duplicates.
"""

from __future__ import annotations

from typing import Final

from fairq_ryu.policies.base import Recovery

ON_PACKET_LOSS: Final = Recovery(dupack=True, reinject=False, bytes=1 << 20, age=1.0, by_agent=False)
"""Of dropped segments only the numbers are kept: at most 4,096 on a port, and none longer than a second."""
