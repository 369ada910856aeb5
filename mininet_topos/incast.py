"""Incast: n senders and one receiver on one switch; the port to the receiver is slow with a shallow queue.

mn --custom mininet_topos/incast.py --topo incast,16 --switch fairq --controller remote
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# `mn --custom` runs this file by exec, with no package and no __file__ around it; the code object knows where
# it came from.
_ROOT = str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent)
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from mininet.topo import Topo  # noqa: E402

from mininet_topos import custom  # noqa: E402
from mininet_topos.delays import DelayLine  # noqa: E402
from mininet_topos.hosts import FairQHost  # noqa: E402
from mininet_topos.links import ShallowLink  # noqa: E402
from mininet_topos.plans import Incast  # noqa: E402


class IncastTopo(Topo):
    """Senders h1..hn on ports 1..n of switch s1, receiver r on port n+1, the bottleneck."""

    def build(
        self,
        n: int = 16,
        rate: float = 200,
        buffer: int = 125000,
        cc: str = "cubic",
        rtt: float = 0,
        **_params: Any,
    ) -> None:
        """``n``: number of senders; ``rate`` (Mbit/s) and ``buffer`` (bytes) of the receiver's port; ``cc``:
        congestion control of every host; ``rtt``: delay added to each round trip of a sender, ms.
        ``ValueError`` if ``n`` or ``rtt`` is out of bounds.
        """
        shape = Incast(n)
        self.line = line = DelayLine(rtt)
        # There are no loops, so without a controller the switch may forward as a learning switch.
        switch = self.addSwitch("s1", failMode="standalone")
        for port, sender in enumerate(shape.sources, 1):
            host = self.addHost(sender, cls=FairQHost, cc=cc, offloads=line.offloads)
            self.addLink(host, switch, port2=port, **line.options())
        receiver = self.addHost(shape.receiver, cls=FairQHost, cc=cc, offloads=line.offloads)
        self.addLink(receiver, switch, port2=n + 1, cls=ShallowLink, rate=rate, buffer=buffer)


topos = {"incast": IncastTopo}
switches, hosts, links = custom.SWITCHES, custom.HOSTS, custom.LINKS
