"""Leaf and spine: hosts at leaves, every leaf linked to every spine, with optional shallow queues.

mn --custom mininet_topos/leaf_spine.py --topo leafspine,3,2,4 --switch fairq --controller remote
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
from mininet_topos.plans import LeafSpine  # noqa: E402


class LeafSpineTopo(Topo):
    """Switches leaf1.., spine1..; hosts h1.. leaf by leaf.

    With h hosts a leaf: ports 1..h of leafI lead to its hosts, port h+J to spineJ; port I of spineJ to leafI.
    """

    def build(
        self,
        leaves: int = 2,
        spines: int = 2,
        hosts: int = 4,
        oversubscription: float | None = None,
        rate: float | None = None,
        buffer: int | None = None,
        uplink: float | None = None,
        only: str | None = None,
        cc: str = "cubic",
        rtt: float = 0,
    ) -> None:
        """By default no port is shallow.

        ``hosts``   number of hosts of each leaf.
        ``rate``    rate of every leaf's port to a host, Mbit/s.
        ``buffer``  buffer of every shallow port, bytes.
        ``uplink``  rate of both ends of every link between leaf and spine, Mbit/s.
        ``oversubscription``  instead of ``uplink``: the rates of the ports to a leaf's hosts divided by those
        of its uplinks, ``hosts * rate / (spines * uplink)``; with ``rate`` 1 by default.
        ``only``    the only host whose port has ``rate``; uplinks are shallow only with ``uplink``.
        ``cc``      congestion control of every host.
        ``rtt``     delay added to each round trip of a host outside of the last leaf, ms.

        ``ValueError`` if a number is out of bounds or these contradict each other.
        """
        shape = LeafSpine(leaves, spines, hosts)
        if oversubscription is not None:
            if rate is None or uplink is not None or only is not None:
                raise ValueError(
                    "leafspine: oversubscription goes with rate and buffer, not with uplink or only"
                )
            if isinstance(oversubscription, (bool, str)) or not 0 < oversubscription <= 1000:
                raise ValueError(
                    f"leafspine: oversubscription is {oversubscription!r}, must be more than 0, at most 1000"
                )
        FabricQueues(rate, buffer, uplink, only)  # checks the rate before the calculation below
        if rate is not None and uplink is None and only is None:
            uplink = shape.hosts * rate / (shape.spines * (oversubscription or 1))
        queues = FabricQueues(rate, buffer, uplink, only)
        self.line = line = DelayLine(rtt)
        sources = set(shape.sources)

        for leaf in range(1, shape.leaves + 1):
            # Fail mode secure: there are loops, in which frames of learning switches would circulate for
            # ever.
            self.addSwitch(f"leaf{leaf}", dpid=f"{0x100 + leaf:016x}", failMode="secure")
            for port in range(1, shape.hosts + 1):
                host = self.addHost(shape.host(leaf, port), cls=FairQHost, cc=cc, offloads=line.offloads)
                link = line.options() if host in sources else {"cls": ShallowLink}
                self.addLink(host, f"leaf{leaf}", port1=0, port2=port, **link, **queues.to_host(host))
        for spine in range(1, shape.spines + 1):
            self.addSwitch(f"spine{spine}", dpid=f"{0x200 + spine:016x}", failMode="secure")
            for leaf in range(1, shape.leaves + 1):
                self.addLink(
                    f"leaf{leaf}", f"spine{spine}", port1=shape.hosts + spine, port2=leaf,
                    cls=ShallowLink, **queues.between(),
                )  # fmt: skip
        queues.check_used(self.hosts())


topos = {"leafspine": LeafSpineTopo}
switches, hosts, links = custom.SWITCHES, custom.HOSTS, custom.LINKS
