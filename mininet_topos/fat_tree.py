"""Fat tree of k pods: k/2 edge and k/2 aggregation switches in each, (k/2)^2 cores, k^3/4 hosts.

mn --custom mininet_topos/fat_tree.py --topo fattree,4 --switch fairq --controller remote
"""

from __future__ import annotations

import sys
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
from mininet_topos.links import FabricQueues, ShallowLink  # noqa: E402
from mininet_topos.plans import FatTree  # noqa: E402


class FatTreeTopo(Topo):
    """Switches edgeP_E and aggP_A in pod P, core1..; hosts h1.. pod by pod and edge switch by edge switch.

    With h = k/2: ports 1..h of edgeP_E lead to its hosts, port h+A to aggP_A; ports 1..h of aggP_A to
    edgeP_1.., port h+C to core (A-1)h+C; port P of a core to pod P.
    """

    def build(
        self,
        k: int = 4,
        rate: float | None = None,
        buffer: int | None = None,
        uplink: float | None = None,
        only: str | None = None,
        cc: str = "cubic",
        rtt: float = 0,
    ) -> None:
        """By default no port is shallow.

        ``rate``    rate of every switch port, Mbit/s.
        ``buffer``  buffer of every shallow port, bytes.
        ``uplink``  rate of both ends of every link between two switches, instead of ``rate``, Mbit/s.
        ``only``    the only host whose port has ``rate``; other links are shallow only with ``uplink``.
        ``cc``      congestion control of every host.
        ``rtt``     delay added to each round trip of a host outside of the last pod, ms.

        ``ValueError`` if ``k`` is odd or out of bounds, or the others contradict each other.
        """
        shape = FatTree(k)
        if uplink is None and only is None:
            uplink = rate
        queues = FabricQueues(rate, buffer, uplink, only)
        self.line = line = DelayLine(rtt)
        sources = set(shape.sources)
        half = range(1, shape.half + 1)

        for core in range(1, shape.cores + 1):
            # Fail mode secure: learning switches would send frames round the loops for ever.
            self.addSwitch(f"core{core}", dpid=f"{0x30000 + core:016x}", failMode="secure")
        for pod in range(1, shape.k + 1):
            for place in half:
                low = (pod << 8) + place
                self.addSwitch(f"edge{pod}_{place}", dpid=f"{0x10000 + low:016x}", failMode="secure")
                self.addSwitch(f"agg{pod}_{place}", dpid=f"{0x20000 + low:016x}", failMode="secure")
            for edge in half:
                for port in half:
                    host = self.addHost(
                        shape.host(pod, edge, port), cls=FairQHost, cc=cc, offloads=line.offloads
                    )
                    link = line.options() if host in sources else {"cls": ShallowLink}
                    self.addLink(
                        host, f"edge{pod}_{edge}", port1=0, port2=port, **link, **queues.to_host(host)
                    )
                for agg in half:
                    self.addLink(
                        f"edge{pod}_{edge}", f"agg{pod}_{agg}", port1=shape.half + agg, port2=edge,
                        cls=ShallowLink, **queues.between(),
                    )  # fmt: skip
            for agg in half:
                for place in half:
                    self.addLink(
                        f"agg{pod}_{agg}", f"core{(agg - 1) * shape.half + place}",
                        port1=shape.half + place, port2=pod, cls=ShallowLink, **queues.between(),
                    )  # fmt: skip
        queues.check_used(self.hosts())


topos = {"fattree": FatTreeTopo}
switches, hosts, links = custom.SWITCHES, custom.HOSTS, custom.LINKS
