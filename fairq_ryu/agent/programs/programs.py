"""The eBPF side of the agent: programs on ports, rules and counters in maps.

Implements :class:`fairq_ryu.agent.rule_table.RuleSink`. All times are CLOCK_MONOTONIC nanoseconds, as
the programs count them.
"""

from __future__ import annotations

import ctypes
import ipaddress
import logging
import os
import socket
import sys
import time
from ctypes import c_uint32
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError, BpfObject, Map, TcFilter, load_library, program_maps
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.drops import DropReader, Frame
from fairq_ryu.agent.programs.flow_map import FlowMap, segment_state
from fairq_ryu.agent.qdisc import NO_SHAPE, Shape, has_filters
from fairq_ryu.agent.ringbuf import RingBuffer
from fairq_ryu.agent.rule_table import Target
from fairq_ryu.channel import oxm
from fairq_ryu.channel.congestion import CongestionNotice
from fairq_ryu.channel.flowmod import WindowSetting
from fairq_ryu.channel.segment_state import SegmentState
from fairq_ryu.errors import UserError
from fairq_ryu.model import Congestion, FlowKey, Thresholds

# Late in the chain, so that other people's filters see the packet first; also how a leftover of ours
# is told from a filter of theirs.
TC_PRIORITY = 0xFA17
_BTF = "/sys/kernel/btf/vmlinux"
# The active flows of a port without a queue, where nobody acts on them, are counted this seldom.
_ACTIVE_NS = 50_000_000
# Doorbells answered in one go.
_BELLS = 4096
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DatapathLimits:
    """Sizes of the maps, and the time without data (seconds) after which a flow takes no share."""

    flows: int = 65536
    rules: int = 4096
    ports: int = 512
    active_timeout: float = 0.2

    @property
    def bucket_ns(self) -> int:
        """Length of one of the time buckets in which active flows are counted, ns."""
        return max(1, int(self.active_timeout * 1e9) // layout.BUCKETS)


class QueueState(NamedTuple):
    """The queue of a port now; bytes, packets, ns as in ``layout.h``."""

    backlog: int
    peak: int
    drops: int
    byte_ns: int
    packets: int
    bytes: int
    clock_ns: int


class Datapath:
    """The programs and maps of one bridge. :meth:`close` undoes everything."""

    def __init__(self, limits: DatapathLimits) -> None:
        """Load the programs. Raises :class:`UserError` or :class:`BpfError`."""
        if not os.path.exists(_BTF):
            raise UserError(
                f"the kernel has no type information ({_BTF})",
                "use a kernel built with CONFIG_DEBUG_INFO_BTF=y",
            )
        self.limits = limits
        self._lib = load_library()
        self._filter = TcFilter(self._lib, TC_PRIORITY)
        self._taker = TcFilter(self._lib, TC_PRIORITY + 1)
        self._ports: dict[int, BridgePort] = {}
        self._own_clsact: set[int] = set()
        self.shapes: dict[int, Shape] = {}
        self._drop_base: dict[int, tuple[int, int]] = {}
        self._active: dict[int, tuple[int, int]] = {}
        self._window: BpfObject | None = None
        self._queue: BpfObject | None = None
        self._peak_epoch = 1
        self._thresholds: dict[int, Thresholds] = {}
        self._rung: set[int] = set()
        self._bells_lost = 0
        self._bells: RingBuffer | None = None
        self.drops: DropReader | None = None
        self._dropped: list[Frame] = []
        self._taken: dict[int, int] = {}  # packets, by port
        self._created = 0  # entries of the flow map that are no port's any more
        self._swept = 0

    def load(self, first_ports: list[BridgePort]) -> int:
        """Load the programs, taking over the flows that a dead agent's programs on ``first_ports``
        still know. Returns how many flows were taken over. Raises :class:`BpfError`.
        """
        inherited = self._inherit(first_ports)
        limits = self.limits
        try:
            self._window = BpfObject(
                self._lib,
                layout.BPF_DIR / "window.bpf.o",
                {
                    "flows": limits.flows,
                    "ports": limits.ports,
                    "port_rules": limits.ports,
                    "flow_rules": limits.rules + limits.ports,
                    "counters": limits.rules + limits.ports,
                },
                {"flows": inherited} if inherited is not None else None,
            )
        finally:
            if inherited is not None:
                os.close(inherited)
        try:
            self._queue = BpfObject(
                self._lib,
                layout.BPF_DIR / "queue.bpf.o",
                {"queues": limits.ports, "histograms": limits.ports, "thresholds": limits.ports},
            )
        except BpfError as error:
            self.close()
            raise UserError(
                f"the kernel cannot run the queue tracepoints ({error})",
                "use Linux 5.15 or later with the tracepoints qdisc_enqueue and qdisc_dequeue",
            ) from error
        window, queue = self._window, self._queue
        self._config = window.map("config", c_uint32, layout.fq_config)
        self.flows = window.map("flows", layout.fq_flow_key, layout.fq_flow)
        self._flow_map = FlowMap(self.flows)
        self._port_state = window.map("ports", c_uint32, layout.fq_port)
        self._port_rules = window.map("port_rules", c_uint32, layout.fq_rule)
        self._flow_rules = window.map("flow_rules", layout.fq_flow_key, layout.fq_rule)
        self._counters = window.map("counters", c_uint32, layout.fq_counter)
        self._queue_config = queue.map("queue_config", c_uint32, layout.fq_queue_config)
        self._queues = queue.map("queues", c_uint32, layout.fq_queue)
        self._histograms = queue.map("histograms", c_uint32, layout.fq_histogram)
        self._threshold_map = queue.map("thresholds", c_uint32, layout.fq_threshold)
        self._bell_count = queue.map("doorbell_count", c_uint32, layout.fq_ring_count)
        doorbells = queue.map("doorbells", c_uint32, layout.fq_doorbell)
        self._bells = RingBuffer(self._lib, doorbells, self._on_doorbell)
        shared = {
            "queue_config": self._queue_config,
            "thresholds": self._threshold_map,
            "queues": self._queues,
        }
        self.drops = DropReader(self._lib, shared, self._dropped.append)
        self._flow_rule_count = 0
        self._write_config()
        self._write_queue_config()
        self._program = window.program_fd("fq_egress")
        queue.attach("fq_enqueue")
        queue.attach("fq_dequeue")
        self._created = len(list(self.flows.keys())) if inherited is not None else 0
        return self._created

    def _inherit(self, ports: list[BridgePort]) -> int | None:
        """The flow map of a dead agent, whose programs live on in its tc filters: scales that were
        learnt once need not be lost. None if there is none, or of another layout.
        """
        for port in ports:
            program = self._filter.attached_program(port.ifindex)
            maps = program_maps(self._lib, program) if program else {}
            chosen: int | None = None
            if "flows" in maps and "config" in maps:
                fd, info = maps["flows"]
                config = Map(self._lib, maps["config"][0], "config", c_uint32, layout.fq_config).get(
                    c_uint32(0)
                )
                fits = (
                    info.key_size == ctypes.sizeof(layout.fq_flow_key)
                    and info.value_size == ctypes.sizeof(layout.fq_flow)
                    and info.max_entries == self.limits.flows
                    and config is not None
                    and config.layout == layout.CONSTANTS["FQ_LAYOUT_VERSION"]
                )
                chosen = fd if fits else None
            for fd, _ in maps.values():
                if fd != chosen:
                    os.close(fd)
            if chosen is not None:
                return chosen
        return None

    def _write_config(self) -> None:
        self._config.set(
            c_uint32(0),
            layout.fq_config(
                bucket_ns=self.limits.bucket_ns,
                flow_rules=self._flow_rule_count,
                layout=layout.CONSTANTS["FQ_LAYOUT_VERSION"],
            ),
        )

    def _write_queue_config(self) -> None:
        self._queue_config.set(
            c_uint32(0),
            layout.fq_queue_config(
                netns=os.stat("/proc/self/ns/net").st_ino,
                peak_epoch=self._peak_epoch,
                thresholds=len(self._thresholds),
            ),
        )

    # Ports

    @property
    def ports(self) -> dict[int, BridgePort]:
        """The ports that are watched, by OpenFlow number."""
        return self._ports

    def has_port(self, port: int) -> bool:
        """Is this port watched?"""
        return port in self._ports

    def add_port(self, port: BridgePort) -> None:
        """Watch a port. Raises :class:`BpfError`; then nothing is left on the port."""
        index = c_uint32(port.ifindex)
        self._port_state.set(index, layout.fq_port())
        self._queues.set(index, layout.fq_queue())
        self._histograms.set(index, layout.fq_histogram())
        stale = self._filter.attached_program(port.ifindex) != 0
        self._taker.detach(port.ifindex)  # a dead agent's
        try:
            made = self._filter.attach(port.ifindex, self._program)
        except BpfError:
            self._forget(port)
            raise
        if made or stale:
            self._own_clsact.add(port.ifindex)
        self._ports[port.ofport] = port

    def update_port(self, port: BridgePort) -> None:
        """Note what changed of a port that stays: its link, its speed."""
        self._ports[port.ofport] = port

    def remove_port(self, ofport: int) -> None:
        """Stop watching a port, which may have gone already."""
        port = self._ports.pop(ofport)
        self._filter.detach(port.ifindex)
        self._taker.detach(port.ifindex)
        if port.ifindex in self._own_clsact:
            self._own_clsact.discard(port.ifindex)
            if not has_filters(port.ifindex):
                self._filter.remove_clsact(port.ifindex)
        self._created += self.port_state(port).created
        self._forget(port)

    def _forget(self, port: BridgePort) -> None:
        index = c_uint32(port.ifindex)
        self.set_thresholds(port.ofport, None)
        tables = (self._port_rules, self._port_state, self._queues, self._histograms, self._threshold_map)
        for table in tables:
            table.delete(index)
        self._drop_base.pop(port.ofport, None)
        self._taken.pop(port.ofport, None)
        self.shapes.pop(port.ifindex, None)
        self._active.pop(port.ifindex, None)

    def close(self) -> None:
        """Detach from every port and free programs and maps. A second call does nothing."""
        for ofport in list(self._ports):
            self.remove_port(ofport)
        for reader in (self.drops, self._bells):
            if reader is not None:
                reader.close()
        self.drops = self._bells = None
        for loaded in (self._queue, self._window):
            if loaded is not None:
                loaded.close()
        self._queue = self._window = None

    # Rules

    def put_rule(self, target: Target, setting: WindowSetting, expires_ns: int, slot: int) -> None:
        """Make a rule stand, or change it. Raises :class:`BpfError`."""
        kind = layout.RULE_POOL if setting.kind == oxm.TCP_WINDOW_POOL else layout.RULE_WINDOW
        rule = layout.fq_rule(expires_ns=expires_ns, bytes=setting.bytes, kind=kind, slot=slot)
        if isinstance(target, int):
            self._port_rules.set(c_uint32(self._ports[target].ifindex), rule)
            return
        key = flow_key(target, directed=True)
        fresh = self._flow_rules.get(key) is None
        self._flow_rules.set(key, rule)
        if fresh:
            self._flow_rule_count += 1
            self._write_config()

    def drop_rule(self, target: Target) -> None:
        """Remove a rule."""
        if isinstance(target, int):
            port = self._ports.get(target)
            if port is not None:
                self._port_rules.delete(c_uint32(port.ifindex))
        elif self._flow_rules.delete(flow_key(target, directed=True)):
            self._flow_rule_count -= 1
            self._write_config()

    def counters(self, slot: int) -> tuple[int, int]:
        """ACKs that met the rule in this slot, and those it lowered."""
        counter = self._counters.get(c_uint32(slot))
        return (counter.matched, counter.rewritten) if counter else (0, 0)

    def reset_counters(self, slot: int) -> None:
        """Start the counters of a slot at 0."""
        self._counters.set(c_uint32(slot), layout.fq_counter())

    # Congestion

    def set_thresholds(self, ofport: int, thresholds: Thresholds | None) -> None:
        """When a port is congested, and whether its drops are reported; None: nothing is watched for.

        Raises :class:`BpfError`.
        """
        if thresholds is None:
            if self._thresholds.pop(ofport, None) is None:
                return
            if ofport in self._ports:  # else it went with its port
                self._threshold_map.delete(c_uint32(self._ports[ofport].ifindex))
                self._taker.detach(self._ports[ofport].ifindex)
        else:
            self._tell_thresholds(self._ports[ofport], thresholds)
            self._thresholds[ofport] = thresholds
            if not thresholds.drops:
                self._taker.detach(self._ports[ofport].ifindex)
            elif self.drops is not None and self.drops.available:
                self._taker.attach(self._ports[ofport].ifindex, self.drops.taker)
        self._write_queue_config()
        if self.drops is not None:
            self.drops.watch(any(t.drops for t in self._thresholds.values()))

    def _tell_thresholds(self, port: BridgePort, thresholds: Thresholds) -> None:
        limit = self.shapes.get(port.ifindex, NO_SHAPE).limit
        flags = layout.CONSTANTS["FQ_REPORT_DROPS"] * thresholds.drops
        told = layout.fq_threshold(cng=thresholds.cng, nom=thresholds.nom, flags=flags, limit=limit)
        self._threshold_map.set(c_uint32(port.ifindex), told)

    def set_shapes(self, shapes: dict[int, Shape], asked: list[int]) -> None:
        """What was read of the queues of interfaces: all that were ``asked`` for and have one."""
        for index in asked:  # ports that came meanwhile keep what was read for them
            self.shapes.pop(index, None)
        self.shapes.update(shapes)
        for ofport, thresholds in self._thresholds.items():
            if thresholds.drops and ofport in self._ports:
                self._tell_thresholds(self._ports[ofport], thresholds)

    @property
    def reports_drops(self) -> bool:
        """Can this kernel tell of dropped packets?"""
        return self.drops is not None and self.drops.available

    def congestion(self, ofport: int) -> CongestionNotice:
        """The state of a port now, by its thresholds: between them it is as it was."""
        limits = self._thresholds.get(ofport, Thresholds(0, 0))
        state = self._queues.get(c_uint32(self._ports[ofport].ifindex)) or layout.fq_queue()
        # The program judges at packets only; thresholds may be newer than the last.
        congested = state.state == layout.CONSTANTS["FQ_CNG"]
        if not limits.cng or state.backlog <= limits.nom:
            congested = False
        elif state.backlog >= limits.cng:
            congested = True
        what = Congestion.CNG if congested else Congestion.NOM
        return CongestionNotice(ofport, what, state.backlog, time.monotonic_ns())

    @property
    def doorbell_fd(self) -> int:
        """Readable when a queue has crossed a threshold: then call :meth:`crossed`."""
        assert self._bells is not None
        return self._bells.fd

    def _on_doorbell(self, address: int, size: int) -> None:
        self._rung.add(layout.fq_doorbell.from_buffer_copy(ctypes.string_at(address, size)).ifindex)

    def crossed(self) -> list[int]:
        """The ports whose queues have crossed a threshold since this was last called, or may have."""
        assert self._bells is not None
        self._bells.read(_BELLS)
        rung, self._rung = self._rung, set()
        count = self._bell_count.get(c_uint32(0))
        if count is not None and count.lost != self._bells_lost:
            # There was no room to say for which ports.
            self._bells_lost = count.lost
            return list(self._thresholds)
        return [ofport for ofport in self._thresholds if self._ports[ofport].ifindex in rung]

    @property
    def drops_fd(self) -> int | None:
        """Readable when dropped packets have come: then call :meth:`take_drops`. None: they never do."""
        return self.drops.fd if self.drops is not None else None

    def take_drops(self, most: int) -> list[tuple[int, bytes, int]]:
        """Dropped packets that have come, at most ``most``: port, the packet or its beginning, its length."""
        if self.drops is None:
            return []
        self.drops.read(most)
        taken, self._dropped[:] = list(self._dropped), []
        ofports = {port.ifindex: ofport for ofport, port in self._ports.items()}
        for index, _, _, before in taken:
            if before and index in ofports:
                self._taken[ofports[index]] = self._taken.get(ofports[index], 0) + 1
        return [(ofports[index], frame, size) for index, frame, size, _ in taken if index in ofports]

    # Reading

    def shape(self, port: BridgePort) -> Shape:
        """Buffer and rate of a port; the link's own speed where no qdisc shapes it."""
        shape = self.shapes.get(port.ifindex, NO_SHAPE)
        return shape if shape.rate else Shape(shape.kind, shape.limit, port.speed // 8)

    def queue(self, port: BridgePort) -> QueueState:
        """The queue of a port now."""
        now = time.monotonic_ns()
        # Most ports of a switch full of hosts have none; controllers ask 500 times a second.
        state = None if self._has_no_queue(port) else self._queues.get(c_uint32(port.ifindex))
        if state is None:
            return QueueState(0, 0, 0, 0, 0, 0, now)
        peak = max(state.peak, state.backlog) if state.peak_epoch == self._peak_epoch else state.backlog
        waited = now - state.last_ns if state.last_ns and now > state.last_ns else 0
        return QueueState(
            backlog=state.backlog,
            peak=peak,
            drops=self._drops(port.ofport, state.drops),
            byte_ns=state.byte_ns + state.backlog * waited,
            packets=state.packets,
            bytes=state.bytes,
            clock_ns=now,
        )

    def _drops(self, ofport: int, counted: int) -> int:
        """Drops since the port came, with what was taken before the queue could refuse it. The qdisc's own
        count starts again when it is replaced.
        """
        base, last = self._drop_base.get(ofport, (0, 0))
        if counted < last:
            base += last
        self._drop_base[ofport] = (base, counted)
        return base + counted + self._taken.get(ofport, 0)

    def restart_peaks(self) -> None:
        """Let all peaks start again from the backlog of now."""
        self._peak_epoch = (self._peak_epoch + 1) & 0xFFFFFFFF
        self._write_queue_config()

    def histogram(self, port: BridgePort) -> list[tuple[int, int, int]]:
        """Time spent at each depth: ``(lowest, highest, ns)`` for the depths that were seen, in bytes."""
        table = self._histograms.get(c_uint32(port.ifindex))
        if table is None:
            return []
        return [(*layout.histogram_bounds(i), ns) for i, ns in enumerate(table.ns) if ns]

    def port_state(self, port: BridgePort) -> Any:
        """The port's counters: an ``fq_port`` (see ``layout.h``)."""
        return self._port_state.get(c_uint32(port.ifindex)) or layout.fq_port()

    def active_flows(self, port: BridgePort) -> int:
        """Flows whose data left by the port within the activity timeout, and have no own rule."""
        now = time.monotonic_ns()
        known, since = self._active.get(port.ifindex, (0, 0))
        if self._has_no_queue(port) and now - since < _ACTIVE_NS:
            return known
        count = layout.active_flows(self.port_state(port), now, self.limits.bucket_ns)
        self._active[port.ifindex] = count, now
        return count

    def _has_no_queue(self, port: BridgePort) -> bool:
        shape = self.shapes.get(port.ifindex)
        return shape is not None and shape.kind == "noqueue"

    def flow_records(self, idle_ms: int, ports: list[BridgePort]) -> list[bytes]:
        """What is known of every flow that leaves by ``ports`` and was not silent for ``idle_ms`` (0: of
        every such flow), encoded as the channel wants it, in parts that fit in a message each.
        """
        ofports = {port.ifindex: port.ofport for port in ports}
        created = self._flows_created() if len(ports) == 1 else None
        return self._flow_map.records(time.monotonic_ns(), idle_ms, ofports, created)

    def _flows_created(self) -> int:
        """So many flows were ever entered in the flow map."""
        return self._created + sum(int(self.port_state(port).created) for port in self._ports.values())

    def segment_state(self, key: FlowKey) -> SegmentState:
        """The last segment of one direction of a flow."""
        flow = self.flows.get(flow_key(key))
        if flow is None:
            return SegmentState(key, False)
        direction = flow_key(key, directed=True).dir
        ofports = {port.ifindex: port.ofport for port in self._ports.values()}
        return segment_state(key, flow.dir[direction], flow.dir[1 - direction], ofports, time.monotonic_ns())

    def sweep(self, idle_ns: int, closed_ns: int) -> tuple[int, int]:
        """Forget flows silent for ``idle_ns``, or closed and silent for ``closed_ns``.

        Returns how many are left, and how many the map has lost since it was made because it was full.
        """
        gone, left = self._flow_map.sweep(time.monotonic_ns(), idle_ns, closed_ns)
        self._swept += gone
        return left, max(0, self._flows_created() - self._swept - left)


def flow_key(flow: FlowKey, directed: bool = False) -> Any:
    """The map key of a flow: the same for both directions, unless ``directed``."""
    family = flow.version
    src, dst = (ipaddress.ip_address(a).packed for a in (flow.src, flow.dst))
    sport, dport = flow.sport, flow.dport
    direction = _direction(family, src, dst, sport, dport)
    if direction:
        src, dst, sport, dport = dst, src, dport, sport
    key = layout.fq_flow_key(
        lo_port=socket.htons(sport),
        hi_port=socket.htons(dport),
        family=family,
        dir=direction if directed else 0,
    )
    key.lo_addr[:] = src.rjust(16, b"\0")
    key.hi_addr[:] = dst.rjust(16, b"\0")
    return key


def _direction(family: int, src: bytes, dst: bytes, sport: int, dport: int) -> int:
    """Which end sorts first: compares what the program compares, host-order loads of raw bytes."""
    words = 8 if family == 6 else 4

    def loads(address: bytes) -> list[int]:
        return [int.from_bytes(address[i : i + words], _BYTEORDER) for i in range(0, len(address), words)]

    if src != dst:
        return int(loads(src) > loads(dst))
    return int(socket.htons(sport) > socket.htons(dport))


_BYTEORDER: Literal["little", "big"] = sys.byteorder
