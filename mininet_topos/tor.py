"""Incast behind a top-of-rack switch that is not ours: its port to the receiver's bridge is slow and shallow.

mn --custom mininet_topos/tor.py --topo tor,16 --switch fairq --controller remote
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
from mininet_topos.plain import PlainSwitch  # noqa: E402
from mininet_topos.plans import BehindTor  # noqa: E402

# What a frame takes on the wire beside its bytes: the rate of a real port counts it.
_FRAME_OVERHEAD = 24


class TorTopo(Topo):
    """Senders h1..hn on ports 1..n of switch tor, a bridge of Linux without an agent; behind its port n+1
    switch s1 (port 1), and the receiver r (port 2). That port of tor is the bottleneck, which s1 cannot see.

    With several receivers, switch rack, which is also a bridge of Linux, is behind port n+1 (its last port),
    and behind its ports 1 and so on are switches s1, s2 and so on, each with a receiver r1, r2 and so on.
    """

    def build(
        self,
        n: int = 16,
        rate: float = 200,
        buffer: int = 125000,
        cc: str = "cubic",
        rtt: float = 0,
        right: int = 1,
        shaped: float = 0,
        **_params: Any,
    ) -> None:
        """``n``: number of senders; ``rate`` (Mbit/s, as on the wire) and ``buffer`` (bytes) of the port of
        tor to s1; ``cc``: congestion control of every host; ``rtt``: delay added to each round trip of a
        sender, ms; ``right``: number of receivers; ``shaped``: the ports to them have together this part of
        ``rate``, in equal parts, and a buffer each, so that data waits there and not at tor (0: they have no
        queue). ``ValueError`` if one of them is out of bounds.
        """
        if isinstance(shaped, (bool, str)) or not 0 <= shaped <= 1:
            raise ValueError(f"tor: shaped is {shaped!r}, must be from 0 to 1")
        shape = BehindTor(n, right)
        self.line = line = DelayLine(rtt)
        tor = self.addSwitch("tor", cls=PlainSwitch, dpid=f"{0x701:016x}")
        for port, sender in enumerate(shape.sources, 1):
            host = self.addHost(sender, cls=FairQHost, cc=cc, offloads=line.offloads)
            self.addLink(host, tor, port2=port, **line.options())
        queue = {"rate": rate, "buffer": buffer, "at": tor, "overhead": _FRAME_OVERHEAD}
        upper, first, options = tor, n + 1, queue
        if right > 1:
            upper, first, options = self.addSwitch("rack", cls=PlainSwitch, dpid=f"{0x702:016x}"), 1, {}
            self.addLink(tor, upper, port1=n + 1, port2=right + 1, cls=ShallowLink, **queue)
        for number, (name, receiver) in enumerate(zip(shape.switches, shape.receivers, strict=True)):
            switch = self.addSwitch(name, dpid=f"{number + 1:016x}", failMode="standalone")
            self.addLink(upper, switch, port1=first + number, port2=1, cls=ShallowLink, **options)
            host = self.addHost(receiver, cls=FairQHost, cc=cc, offloads=line.offloads)
            own = {**queue, "rate": rate * shaped / right, "at": switch} if shaped else {}
            self.addLink(host, switch, port2=2, cls=ShallowLink, **own)


topos = {"tor": TorTopo}
switches, hosts, links = custom.SWITCHES, custom.HOSTS, custom.LINKS
