"""Dumbbell: n hosts and a switch on each side; the link between the switches is slow with a shallow queue.

mn --custom mininet_topos/dumbbell.py --topo dumbbell,8 --switch fairq --controller remote
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

# `mn --custom` runs this file by exec, with no package and no __file__ around it; the code object knows where
# it came from.
_ROOT = str(Path(sys._getframe().f_code.co_filename).resolve().parent.parent)
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from mininet.topo import Topo  # noqa: E402

from mininet_topos import custom  # noqa: E402
from mininet_topos.delays import DelayLine  # noqa: E402
from mininet_topos.hosts import FairQHost  # noqa: E402
from mininet_topos.links import ShallowLink, check_queue  # noqa: E402
from mininet_topos.plans import Dumbbell  # noqa: E402


class DumbbellTopo(Topo):
    """Hosts h1..hn on ports 1..n of switch left, the next ones on ports 1.. of right.

    The last port of each switch leads to the other one; both ends are the bottleneck.
    """

    def build(
        self,
        n: int = 8,
        rate: float = 200,
        buffer: int = 125000,
        right: int | None = None,
        cc: str = "cubic",
        rtt: float = 0,
        right_rtts: Sequence[float] | None = None,
    ) -> None:
        """``n``: number of hosts on the left; ``right``: on the right (default ``n``); ``rate`` (Mbit/s) and
        ``buffer`` (bytes) of both ends of the link between the switches; ``cc``: congestion control of every
        host; ``rtt``: delay added to each round trip of a host on the left, ms; ``right_rtts``: a further
        delay of each host on the right, in order, whose frames are data (none for those that are not listed).
        ``ValueError`` if one of them is out of bounds.
        """
        shape = Dumbbell(n, n if right is None else right)
        check_queue(rate, buffer)
        self.line = line = DelayLine(rtt)
        self.right_lines = [DelayLine(each) for each in right_rtts or ()]
        offloads = False if any(each.rtt for each in (line, *self.right_lines)) else None
        lines = dict(zip(shape.receivers, self.right_lines, strict=False)) | dict.fromkeys(
            shape.sources, line
        )
        number = 0
        for dpid, (switch, count) in enumerate((("left", shape.n), ("right", shape.right)), 1):
            # There are no loops, so without a controller the switches may forward as learning switches.
            self.addSwitch(switch, dpid=f"{dpid:016x}", failMode="standalone")
            for port in range(1, count + 1):
                number += 1
                host = self.addHost(f"h{number}", cls=FairQHost, cc=cc, offloads=offloads)
                link = lines[host].options() if host in lines else {"cls": ShallowLink}
                self.addLink(host, switch, port1=0, port2=port, **link)
        self.addLink(
            "left", "right", port1=shape.n + 1, port2=shape.right + 1,
            cls=ShallowLink, rate=rate, buffer=buffer,
        )  # fmt: skip


topos = {"dumbbell": DumbbellTopo}
switches, hosts, links = custom.SWITCHES, custom.HOSTS, custom.LINKS
