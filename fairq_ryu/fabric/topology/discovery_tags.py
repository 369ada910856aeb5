"""The tags of discovery frames: who does not know the controller's key cannot make a frame, nor keep one.

Pure; time is an argument, in seconds of any clock. A tag is an HMAC over the port through which the frame
leaves and the time slot in which it is made. It says that the controller has sent this frame through this
port a short while ago. It does not say where the frame arrived: two hosts that work together can carry a
fresh frame from one port to another. :meth:`~fairq_ryu.fabric.topology.graph.Topology.lldp_seen` limits what
that can do.
"""

from __future__ import annotations

import hmac
import struct

from fairq_ryu.model import PortKey

TAG_SIZE = 16
SLOT = 2.0
"""Length of a time slot, seconds."""
_FRESH_SLOTS = 5
# First, what the tag is for: the key may be used for something else one day.
_MESSAGE = struct.Struct("!16sQIQ")
_PURPOSE = b"fairq discovery"


class DiscoveryTags:
    """Makes and checks tags. ``key``: bytes that only this controller process knows.

    A frame is fresh for 8 to 10 s: on a busy machine it may arrive seconds late, and a port whose frames all
    come too late would be taken for a host's.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    @staticmethod
    def slot(now: float) -> int:
        """The number of the time slot."""
        return int(now / SLOT)

    def tag(self, source: PortKey, slot: int) -> bytes:
        """The tag of a frame that leaves through ``source``."""
        message = _MESSAGE.pack(_PURPOSE, source.dpid, source.port, slot)
        return hmac.digest(self._key, message, "sha256")[:TAG_SIZE]

    def valid(self, source: PortKey, slot: int, tag: bytes, now: float) -> bool:
        """Whether this controller has made the tag, and not too long ago."""
        fresh = 0 <= self.slot(now) - slot < _FRESH_SLOTS
        return fresh and hmac.compare_digest(self.tag(source, slot), tag)
