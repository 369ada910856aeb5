"""Links whose switch side has a slow, shallow queue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link, TCIntf
from mininet.node import Switch

from mininet_topos.commands import CommandError, run
from mininet_topos.qdiscs import PortQdisc, shaper


def check_queue(rate: float | None, buffer: int | None) -> None:
    """``ValueError`` unless both (Mbit/s, bytes) are given and within bounds, or neither is given."""
    if (rate is None) != (buffer is None):
        raise ValueError("a shallow link takes both rate (Mbit/s) and buffer (bytes), or neither")
    # The command line of `mn` may pass text.
    if rate is not None and (not isinstance(rate, (int, float)) or not 0 < rate <= 1_000_000):
        raise ValueError(f"the rate of a shallow link is {rate} Mbit/s, must be more than 0, at most 1000000")
    if buffer is not None and (not isinstance(buffer, int) or buffer < 1514):
        raise ValueError(f"the buffer of a shallow link is {buffer} bytes, must hold one frame (1514)")


@dataclass(frozen=True)
class FabricQueues:
    """The shallow links of a network of several switches. ``ValueError`` if the values contradict each
    other.
    """

    rate: float | None
    """rate of each port to a host, Mbit/s; None: not limited"""
    buffer: int | None
    """buffer of every port that has a rate, bytes"""
    uplink: float | None
    """rate of both ends of each link between switches, Mbit/s; None: not limited"""
    only: str | None = None
    """the only host whose port has ``rate``; None: all have it"""

    def __post_init__(self) -> None:
        if self.rate is None and self.uplink is None:
            check_queue(None, self.buffer)
        for rate in (self.rate, self.uplink):
            if rate is not None:
                check_queue(rate, self.buffer)
        if self.only is not None and self.rate is None:
            raise ValueError(f"only {self.only} is to have a shallow port: give its rate and buffer")

    def to_host(self, host: str) -> dict[str, Any]:
        """Options of the link to ``host``."""
        return self._options(self.rate if self.only in (None, host) else None)

    def between(self) -> dict[str, Any]:
        """Options of a link between switches."""
        return self._options(self.uplink)

    def check_used(self, hosts: Sequence[str]) -> None:
        """``ValueError`` if `only` is not one of ``hosts``."""
        if self.only is not None and self.only not in hosts:
            raise ValueError(f"only {self.only} is to have a shallow port, but there is no such host")

    def _options(self, rate: float | None) -> dict[str, Any]:
        return {} if rate is None else {"rate": rate, "buffer": self.buffer}


class ShallowIntf(TCIntf):
    """An interface that, on a switch, sends at ``rate`` Mbit/s from a FIFO of ``buffer`` bytes, or from
    another qdisc.

    With the kernel's datapath, hosts send packets of up to 64 KB (segmentation offload). tbf cuts those that
    are longer than a frame before they enter the queue, so that frames wait and are lost one by one, as in
    the port of a switch. htb would take or refuse each as a whole.

    It is a ``TCIntf`` because Mininet calls ``config`` of such interfaces again after Open vSwitch has added
    the port, and Open vSwitch may have removed the queue. It does not use netem, which not every kernel has.
    """

    def config(
        self,
        rate: float | None = None,
        buffer: int | None = None,
        qdisc: PortQdisc | None = None,
        at: str | None = None,
        overhead: int = 0,
        **params: Any,
    ) -> dict[str, Any]:
        """Configure as any interface, then install the queue if ``rate`` and ``buffer`` are given (both or
        neither). ``at``: the only switch where it is; None: at each. ``overhead``: bytes of each frame that
        count beside its own.
        """
        result: dict[str, Any] = Intf.config(self, **params)
        check_queue(rate, buffer)
        if rate is not None and buffer is not None and self._has_queue(at):
            self.shape(rate, buffer, qdisc, overhead)
        return result

    def _has_queue(self, at: str | None) -> bool:
        return isinstance(self.node, Switch) and at in (None, self.node.name)

    @property
    def shallow(self) -> bool:
        """Whether this end has the slow queue."""
        return self._has_queue(self.params.get("at")) and self.params.get("rate") is not None

    def shape(self, rate: float, buffer: int, qdisc: PortQdisc | None = None, overhead: int = 0) -> None:
        """Install the queue, or install it again: ``rate`` in Mbit/s, ``buffer`` in bytes of a FIFO, or the
        ``qdisc`` in place of a FIFO. ``overhead`` as for `config`.
        """
        # `replace` keeps the limit of an older one. There is no traffic yet, so delete it.
        with suppress(CommandError):
            run(["tc", "qdisc", "del", "dev", self.name, "root"])
        queue = qdisc or PortQdisc(f"bfifo limit {buffer}")
        if queue.shapes:
            run(["tc", "-batch", "-"], stdin=queue.commands(self.name, "root"))
            return
        mtu = int(Path(f"/sys/class/net/{self.name}/mtu").read_text())
        made = f"qdisc add dev {self.name} root handle 1: {shaper(rate, mtu, buffer, overhead)}\n"
        run(["tc", "-batch", "-"], stdin=made + queue.commands(self.name, "1:1"))


class ShallowLink(Link):
    """A veth pair; with ``rate`` (Mbit/s) and ``buffer`` (bytes) each end on a switch gets that queue."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        check_queue(
            kwargs.get("rate"), kwargs.get("buffer")
        )  # checked before an interface exists that would be left behind
        kwargs.setdefault("cls1", ShallowIntf)
        kwargs.setdefault("cls2", ShallowIntf)
        super().__init__(*args, **kwargs)
