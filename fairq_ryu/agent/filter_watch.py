"""Each second: are the agent's filters still there, and do packets reach them?

    a qdisc, a filter or a program at tcx of a port has changed --> filters that are gone are attached again
                                                                --> who runs before them?
    somebody does, and no TCP packet has come --> are TCP packets leaving?  (EgressTap)

Only the last answer proves that somebody ends the chain before the agent's programs: most programs of others
let a packet pass on.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass

from fairq_ryu.agent.egress_chain import said
from fairq_ryu.agent.egress_tap import EgressTap
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.rtnetlink import TcChanges

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Port:
    before: tuple[str, ...] = ()
    at_tcx: tuple[int, ...] = ()
    seen_ns: int = -1  # not asked yet
    tap: EgressTap | None = None
    missed: int = 0
    restored: int = 0
    refusal: str = ""

    def close(self) -> None:
        if self.tap is not None:
            self.tap.close()
        self.tap, self.seen_ns, self.missed = None, -1, 0


class FilterWatch:
    """The filters of all ports and devices of a bridge."""

    def __init__(self, filters: HostPrograms) -> None:
        self._filters = filters
        self._changes = TcChanges()
        self._ports: dict[int, _Port] = {}
        self._again: set[int] = set()

    def look(self) -> None:
        """Look at what has changed, and at the ports where others run before the agent's programs."""
        now, changed = set(self._filters.filtered), self._changes.take()
        for gone in set(self._ports) - now:
            self._ports.pop(gone).close()
        due = now if changed is None else changed | self._again | (now - set(self._ports))
        due |= {each for each, port in self._ports.items() if self._filters.at_tcx(each) != port.at_tcx}
        # What is due stays so until it was looked at: the list of changes is empty by now.
        self._again |= now & due
        for ifindex in sorted(now & due):
            self._look_at(ifindex)
        suspects = {ifindex: port for ifindex, port in self._ports.items() if port.before}
        self._filters.set_suspects(len(suspects))
        for ifindex, port in suspects.items():
            self._count(ifindex, port)

    def _look_at(self, ifindex: int) -> None:
        try:
            name = socket.if_indextoname(ifindex)
        except OSError:
            return  # it has gone, and the database will say so
        port = self._ports.setdefault(ifindex, _Port())
        self._again.discard(ifindex)
        # Before all else: what changes meanwhile is looked at the next time.
        port.at_tcx = self._filters.at_tcx(ifindex)
        try:
            if self._filters.restore_filters(ifindex):
                port.restored += 1
                log.warning(
                    "interface %s: somebody has removed filters of the agent; they are there again", name
                )
            port.refusal = ""
        except (BpfError, OSError) as error:
            if not port.refusal:
                log.warning("interface %s: somebody has removed filters of the agent: %s", name, error)
            port.refusal = str(error)
            self._again.add(ifindex)
        try:
            port.before = self._filters.programs_before(ifindex)
        except OSError:  # no descriptor is free
            self._again.add(ifindex)
        if not port.before:
            port.close()

    def _count(self, ifindex: int, port: _Port) -> None:
        try:
            name = socket.if_indextoname(ifindex)
            # Before the programs are asked: they see a packet before it is counted. The tap is opened a look
            # after they saw nothing, because a packet that they saw may wait in the queue before it leaves.
            left = port.tap.count() if port.tap is not None else 0
            before, seen_ns = port.seen_ns, self._filters.seen_ns(ifindex)
            if seen_ns != before:
                if port.missed:
                    log.info("interface %s: TCP packets reach the agent's programs again", name)
                port.close()
                port.seen_ns = seen_ns
            elif port.tap is None:
                port.tap = EgressTap(name)
            elif left:
                if not port.missed:
                    log.warning(
                        "interface %s: TCP packets leave and do not reach the agent's programs, so their "
                        "windows are not lowered: %s", name, said(port.before),
                    )  # fmt: skip
                port.missed += left
        except OSError:
            port.close()  # the interface has gone

    def row(self, ifindex: int) -> dict[str, object]:
        """What a status says of a port: see :func:`fairq_ryu.agent.status.snapshot`."""
        port = self._ports.get(ifindex, _Port())
        return {
            "restored": port.restored,
            "refusal": port.refusal,
            "before": list(port.before),
            "missed": port.missed,
        }

    def close(self) -> None:
        """Look no longer."""
        self._changes.close()
        for port in self._ports.values():
            port.close()
