"""The window program: lowers the receive window in ACKs that leave by a port, and records the flows it sees.

Times are CLOCK_MONOTONIC nanoseconds, as the program counts them.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from ctypes import c_uint32
from typing import Any

from fairq_ryu.agent import layout
from fairq_ryu.agent.bpf_info import MapInfo, map_info, program_maps
from fairq_ryu.agent.flow_changes import FlowChanges
from fairq_ryu.agent.libbpf import BpfObject, Map
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.programs.flow_map import FlowMap, knows_segment, segment_state
from fairq_ryu.agent.programs.flow_rules import FlowRules, rule
from fairq_ryu.agent.programs.flow_sweep import FlowSweep
from fairq_ryu.agent.programs.port_slots import PortSlots
from fairq_ryu.agent.programs.program import WINDOW_PRIORITY, FilterProgram, ProgramLimits
from fairq_ryu.agent.programs.tenant_maps import TenantCounts, TenantMaps
from fairq_ryu.agent.tc import EGRESS, INGRESS, OwnFilter
from fairq_ryu.agent.tx_queues import tx_queue_id
from fairq_ryu.agent.unanswered_flows import Unanswered
from fairq_ryu.channel.flow_changes import ChangeRequest, Changes
from fairq_ryu.channel.flow_priorities import FlowPriority
from fairq_ryu.channel.tenants import SetTenants
from fairq_ryu.model import FlowKey, SegmentState, WindowRule

_ZERO = c_uint32(0)
# By where they are attached, and for ports with several transmit queues. Most bridges need only the first.
_PROGRAMS = {EGRESS: "fq_egress", INGRESS: "fq_delivered"}
_WITH_QUEUES = "fq_egress_queues"
_BY_TENANT = layout.CONSTANTS["FQ_LAW_TENANTS"]
HERITAGE = ("config", "flows", "silent")
"""The maps that an agent takes over from one that has died: layout, connections, silent connections."""


def _connection(key: Any) -> tuple[Any, int]:
    """The key of a connection, and the direction of this one."""
    connection = layout.fq_flow_key.from_buffer_copy(bytes(key))
    connection.dir = 0
    return connection, int(key.dir)


class WindowProgram(FilterProgram):
    """``window.bpf.o`` at tc egress of ports, its rules, its counters and its flow map.

    Bounded: the flow map forgets the flow that was silent longest when it is full; rules and ports have as
    many entries as the limits say.
    """

    def __init__(
        self,
        lib: Any,
        limits: ProgramLimits,
        first_ports: Iterable[int],
        kept: Mapping[str, int] | None = None,
    ) -> None:
        """``first_ports``: interfaces on which a dead agent may have left its program, with a flow map.
        ``kept``: file descriptors of its maps by name, if they were kept; without them, CAP_SYS_ADMIN is
        needed to find the maps. They remain the caller's.
        """
        super().__init__(lib)
        self._limits, self._first_ports, self._kept = limits, tuple(first_ports), dict(kept or {})
        self.filter = OwnFilter(lib, WINDOW_PRIORITY)
        self._vlans: dict[int, int] = {}
        self._flow_laws = 0
        self._unify_ns = 0
        self._active: dict[int, tuple[int, int]] = {}
        self.slots = PortSlots(limits.ports)
        self._observed: set[int] = set()
        self._told: dict[int, int] = {}
        self._bridges: dict[int, int] = {}
        self._far: set[int] = set()
        self._copy_rules = 0
        self._queues: dict[int, tuple[int, ...]] = {}
        self._created = 0  # flows entered in the map at ports that were removed, and by a dead agent
        self._swept = 0
        self._suspects = 0
        self.inherited = 0
        """Flows taken over from a dead agent."""
        self.not_inherited = ""
        """why those of a dead agent are not taken over; "": they are, or none has left maps"""

    def load(self) -> None:
        """Load the program. Raises :class:`BpfError`."""
        limits = self._limits
        self._unify_ns = time.monotonic_ns() + int(limits.unify_grace * 1e9)
        inherited = self._inherited_maps()
        try:
            self._object = loaded = BpfObject(
                self._lib,
                layout.BPF_DIR / "window.bpf.o",
                {
                    "flows": limits.flows,
                    "silent": limits.silent,
                    "rivals": limits.rivals,
                    "port_slots": limits.ports,
                    "tx_queues": limits.ports,
                    "port_vlans": limits.ports,
                    "ports": limits.ports,
                    "port_rules": limits.ports,
                    "observed": limits.ports,
                    "told_ports": limits.ports,
                    "flow_rules": limits.bridges * limits.counters + limits.closed_windows,
                    "counters": limits.bridges * limits.counters,
                    "queues": limits.ports,
                    "queue_checks": limits.ports,
                    "port_laws": limits.ports,
                    "law_states": limits.ports,
                    "hidden": limits.ports,
                    "law_flows": limits.law_flows,
                    "tenant_ports": limits.tenant_ports,
                    "port_tenants": limits.ports,
                    "copy_rules": limits.bridges * layout.CONSTANTS["FQ_COPY_RULES"],
                    "copy_counts": limits.bridges * layout.CONSTANTS["FQ_COPY_RULES"],
                    "copy_state": limits.bridges,
                },
                inherited,
                later=(_PROGRAMS[INGRESS], _WITH_QUEUES),
            )
        finally:
            for fd in inherited.values():
                os.close(fd)
        self._config = loaded.map("config", c_uint32, layout.fq_config)
        self.flows = loaded.map("flows", layout.fq_flow_key, layout.fq_flow)
        self.rivals = loaded.map("rivals", layout.fq_flow_key, layout.fq_flow)
        self.silent = loaded.map("silent", layout.fq_flow_key, layout.fq_flow)
        self._flow_map = FlowMap(self.flows, self.silent)
        self._port_slots = loaded.map("port_slots", c_uint32, c_uint32)
        self._port_vlans = loaded.map("port_vlans", c_uint32, c_uint32)
        self._port_states = loaded.map("ports", c_uint32, layout.fq_port)
        self._port_rules = loaded.map("port_rules", c_uint32, layout.fq_rule)
        self._observed_slots = loaded.map("observed", c_uint32, c_uint32)
        self._told_slots = loaded.map("told_ports", c_uint32, c_uint32)
        rules = loaded.map("flow_rules", layout.fq_flow_key, layout.fq_rule)
        self.flow_rules = FlowRules(rules, limits.closed_windows, self._write_config)
        self._counters = loaded.map("counters", c_uint32, layout.fq_counter)
        self.port_laws = loaded.map("port_laws", c_uint32, layout.fq_port_law)
        self.law_states = loaded.map("law_states", c_uint32, layout.fq_law_state)
        self.hidden = loaded.map("hidden", c_uint32, layout.fq_hidden)
        self.law_flows = loaded.map("law_flows", layout.fq_flow_key, layout.fq_law_flow)
        self.queues = loaded.map("queues", c_uint32, layout.fq_queue)
        self.queue_checks = loaded.map("queue_checks", c_uint32, layout.fq_queue_check)
        self.copy_rules = loaded.map("copy_rules", c_uint32, layout.fq_copy_rule)
        self.copy_counts = loaded.map("copy_counts", c_uint32, layout.fq_copy_count)
        self.copy_state = loaded.map("copy_state", c_uint32, layout.fq_copy_state)
        self.copies = loaded.map("copies", c_uint32, layout.fq_copy)
        self._tenants = TenantMaps(loaded, limits.bucket_ns)
        self._write_config()
        self._program_fd = loaded.program_fd
        self.leaving = loaded.map("leaving", c_uint32, layout.fq_leaving)
        self._tx_queues = loaded.map("tx_queues", c_uint32, c_uint32)
        self.inherited = self._created = len(list(self.flows.keys())) if inherited else 0

    def _inherited_maps(self) -> dict[str, int]:
        """The flow maps of a dead agent, whose tc filters still run its programs: the window scales in them
        are kept. File descriptors by the name of the map; empty if there are none with this layout.
        """
        wanted = {"flows": self._limits.flows, "silent": self._limits.silent}
        for ifindex in self._first_ports:
            program = self.filter.filter.attached_program(ifindex)
            maps = (program_maps(self._lib, program) or self._kept_maps()) if program else {}
            chosen: dict[str, int] = {}
            if maps.keys() >= {"config", *wanted}:
                config = Map(self._lib, maps["config"][0], "config", c_uint32, layout.fq_config).get(_ZERO)
                ours = layout.CONSTANTS["FQ_LAYOUT_VERSION"]
                other = [
                    f"map {name} has another size"
                    for name, entries in wanted.items()
                    if (maps[name][1].key_size, maps[name][1].value_size, maps[name][1].max_entries)
                    != (ctypes.sizeof(layout.fq_flow_key), ctypes.sizeof(layout.fq_flow), entries)
                ]
                if config is None or config.layout != ours:
                    theirs = "none" if config is None else config.layout
                    other.insert(0, f"they have layout {theirs} of the maps, and this agent has {ours}")
                self.not_inherited = ", ".join(other)
                chosen = {} if other else {name: maps[name][0] for name in wanted}
                # Its programs have seen every SYN since, and may have missed the same as before. If they let
                # larger scales pass than these will, handshakes are under way that have one.
                if chosen and config is not None and config.unify <= self._limits.unify_scale:
                    self._unify_ns = int(config.unify_ns)
            for fd, _ in maps.values():
                if fd not in chosen.values():
                    os.close(fd)
            if chosen:
                return chosen
        return {}

    def _kept_maps(self) -> dict[str, tuple[int, MapInfo]]:
        """The maps of a dead agent that were kept, as :func:`program_maps` returns them."""
        found: dict[str, tuple[int, MapInfo]] = {}
        for name, fd in self._kept.items():
            about = map_info(self._lib, fd)
            if about is not None and about.name.decode() == name:
                found[name] = (os.dup(fd), about)
        return found

    @property
    def heritage(self) -> dict[str, int]:
        """The file descriptors of the maps that the next agent takes over if this one dies, by name."""
        return dict(zip(HERITAGE, (self._config.fd, self.flows.fd, self.silent.fd), strict=True))

    def _write_config(self) -> None:
        self._config.set(
            _ZERO,
            layout.fq_config(
                bucket_ns=self._limits.bucket_ns,
                flow_rules=self.flow_rules.count,
                layout=layout.CONSTANTS["FQ_LAYOUT_VERSION"],
                vlans=len(self._vlans),
                flow_laws=self._flow_laws,
                copies=self._copy_rules,
                suspects=self._suspects,
                far=len(self._far),
                tenants=self._tenants.number,
                tenants_ns=self._tenants.expires_ns,
                told=len(self._told),
                unify=self._limits.unify_scale,
                unify_ns=self._unify_ns,
            ),
        )

    def set_bridge(self, ifindex: int, bridge: int) -> None:
        """The number of the bridge whose port is added next."""
        self._bridges[ifindex] = bridge

    def bridge_of(self, ifindex: int) -> int:
        """The number of the bridge that has a port."""
        return self._bridges.get(ifindex, 0)

    def add_port(self, ifindex: int, point: int = EGRESS) -> None:
        """Attach to a port, where packets leave the bridge by it: at tc ingress if it hands them to the stack
        of this machine. Raises :class:`BpfError`; then nothing is left on the port.
        """
        self._take_slot(ifindex, ifindex)
        try:
            self.filter.attach(ifindex, self._program_fd(_PROGRAMS[point]), point)
        except BaseException:
            self._clear_slot(ifindex)
            raise
        self._ports.add(ifindex)

    def ids(self, ifindex: int) -> tuple[int, ...]:
        """By what the flows of a port are recorded: its index, or the ids of its transmit queues."""
        return self._queues.get(ifindex) or (ifindex,)

    def set_queues(self, ifindex: int, count: int) -> bool:
        """A port has ``count`` transmit queues with a qdisc each; 0: one for all. Returns whether that is
        new. Raises :class:`BpfError` if there is no room; then it counts as having one.
        """
        ids, before = tuple(tx_queue_id(ifindex, n) for n in range(count)), self._queues.get(ifindex, ())
        if ids == before:
            return False
        for each in before[count:]:
            self._clear_slot(each)
        self._queues[ifindex] = before[:count]
        try:
            for each in ids[len(before) :]:
                self._take_slot(each, ifindex)
                self._queues[ifindex] += (each,)
            if count:
                self._tx_queues.set(c_uint32(ifindex), c_uint32(count))
            else:
                self._tx_queues.delete(c_uint32(ifindex))
                del self._queues[ifindex]
            self.filter.exchange(ifindex, self._program_fd(_WITH_QUEUES if count else _PROGRAMS[EGRESS]))
        except BaseException:
            if count:
                self.set_queues(ifindex, 0)
            raise
        return True

    def _take_slot(self, known: int, ifindex: int) -> None:
        """Make the entries of an interface or of one of its transmit queues, by its id."""
        slot = self.slots.take(known)
        try:
            state = layout.fq_port(ifindex=known, bridge=self.bridge_of(ifindex))
            self._port_states.set(c_uint32(slot), state)
            # Before the program runs on the port: a rule of a flow may be installed already.
            self._observed_slots.set(c_uint32(slot), c_uint32(ifindex in self._observed))
            self._told_slots.set(c_uint32(slot), c_uint32(self._told.get(ifindex, 0)))
            self._port_slots.set(c_uint32(known), c_uint32(slot))
        except BaseException:
            self._clear_slot(known)
            raise

    def remove_port(self, ifindex: int) -> None:
        """Detach from a port, which may have been deleted already, and remove its rule."""
        self.filter.detach(ifindex)
        self._created += self.port_state(ifindex).created
        for each in self._queues.pop(ifindex, ()):
            self._clear_slot(each)
        self._tx_queues.delete(c_uint32(ifindex))
        self._clear_slot(ifindex)
        self._active.pop(ifindex, None)
        self._observed.discard(ifindex)
        self._told.pop(ifindex, None)
        self._bridges.pop(ifindex, None)
        self._flow_map.unanswered.forget_port(ifindex)
        self._ports.discard(ifindex)

    def add_far(self, known: int, bridge: int, observed: bool) -> None:
        """A port of a bridge has a far queue, known by this id: its rules and laws apply to ACKs of data that
        arrives by that port. Raises :class:`BpfError`; then there is none.
        """
        self.set_bridge(known, bridge)
        self.observe(known, observed)
        try:
            self._take_slot(known, known)
        except BaseException:
            self._forget_far(known)
            raise
        self._far.add(known)
        self._write_config()

    def remove_far(self, known: int) -> None:
        """The far queue with this id has gone."""
        self._clear_slot(known)
        self._forget_far(known)
        self._write_config()

    def _forget_far(self, known: int) -> None:
        self._far.discard(known)
        self._active.pop(known, None)
        self._observed.discard(known)
        self._bridges.pop(known, None)

    def set_vlan(self, ifindex: int, vlan: int) -> None:
        """The VLAN of frames that leave by a port without a tag; 0: none."""
        if self._vlans.get(ifindex, 0) == vlan:
            return
        if vlan:
            self._port_vlans.set(c_uint32(ifindex), c_uint32(vlan))
            self._vlans[ifindex] = vlan
        else:
            self._port_vlans.delete(c_uint32(ifindex))
            del self._vlans[ifindex]
        self._write_config()

    def _clear_slot(self, ifindex: int) -> None:
        self.set_vlan(ifindex, 0)
        slot = c_uint32(self.slots[ifindex])
        self._port_slots.delete(c_uint32(ifindex))
        self._port_states.set(slot, layout.fq_port())
        self._port_rules.set(slot, layout.fq_rule())
        self._observed_slots.set(slot, c_uint32(0))
        self._told_slots.set(slot, c_uint32(0))
        self.port_laws.set(slot, layout.fq_port_law())
        self.law_states.set(slot, layout.fq_law_state())
        self._tenants.clear(slot.value)
        self.slots.release(ifindex)

    def set_flow_laws(self, count: int) -> None:
        """The number of ports whose law keeps a state of each flow. If it is 0, data needs no law."""
        if count != self._flow_laws:
            self._flow_laws = count
            self._write_config()

    def set_copy_rules(self, count: int) -> None:
        """The number of rules for copies. If it is 0, SYN, FIN and RST need no look-up of a rule."""
        if count != self._copy_rules:
            self._copy_rules = count
            self._write_config()

    def observe(self, ifindex: int, observed: bool) -> None:
        """Whether a port is only observed: no window is lowered for its data, and those that would be are
        counted. May be called before :meth:`add_port`. Raises :class:`BpfError`.
        """
        for each in {ifindex, *self.ids(ifindex)}:
            if each in self.slots:
                self._observed_slots.set(c_uint32(self.slots[each]), c_uint32(observed))
        (self._observed.add if observed else self._observed.discard)(ifindex)

    def set_told(self, ifindex: int, mode: int) -> None:
        """How the segments that leave by a port tell their scales (``FQ_TELL_...``; 0: not at all). To be
        called before :meth:`add_port`.
        """
        if mode:
            self._told[ifindex] = mode
        else:
            self._told.pop(ifindex, None)
        self._write_config()

    # Rules

    def install_port_rule(self, ifindex: int, window: WindowRule, expires_ns: int, slot: int) -> None:
        """Install the rule of a port, or change it. Raises :class:`BpfError`."""
        for each in self.ids(ifindex):
            self._port_rules.set(c_uint32(self.slots[each]), rule(window, expires_ns, slot))

    def remove_port_rule(self, ifindex: int) -> None:
        """Remove the rule of a port."""
        for each in {ifindex, *self.ids(ifindex)}:
            self._port_rules.set(c_uint32(self.slots[each]), layout.fq_rule())

    # Tenants

    def set_tenants(self, wanted: SetTenants, now_ns: int) -> None:
        """Set the tenants, or renew their lease. Raises :class:`BpfError`; then there are none."""
        try:
            self._tenants.set(wanted, now_ns)
        finally:
            self._write_config()
        self._tenants.remove_gone()

    def set_priorities(self, source: Hashable, wanted: Sequence[FlowPriority]) -> None:
        """As :meth:`fairq_ryu.agent.programs.tenant_maps.TenantMaps.set_priorities`."""
        try:
            self._tenants.set_priorities(source, wanted)
        finally:
            self._write_config()

    @property
    def tenants_in_force(self) -> int:
        """The controller's number of the table of tenants; 0: none is in force."""
        return self._tenants.in_force

    @property
    def tenants_left_out(self) -> int:
        """Handshakes and ACKs of tenants for which there was no room at their ports."""
        return self._tenants.left_out

    def tenant_of(self, ifindex: int, family: int, address: bytes) -> tuple[int, int]:
        """The tenant of a host at a port or far queue, and its weight; ``address`` as in the key of a flow.
        Where the law does not share by tenant, all hosts are of one.
        """
        law = self.port_laws.get(c_uint32(self.slots[ifindex])) if ifindex in self.slots else None
        if law is None or not law.law.flags & _BY_TENANT:
            return 0, 1
        return self._tenants.owner(family, address)

    def tenant_counts(self, ifindex: int) -> list[TenantCounts]:
        """What the tenants have at a port, or at a far queue, by its id."""
        return self._tenants.counts(self.slots[each] for each in self.ids(ifindex))

    def left_out_of(self, ifindex: int) -> int | None:
        """What :meth:`tenant_counts` misses: as :meth:`TenantMaps.left_out_of`."""
        return self._tenants.left_out_of(self.slots[each] for each in self.ids(ifindex))

    @property
    def shared_maps(self) -> dict[str, int]:
        """The maps that the queue program uses as well: their file descriptors, by name."""
        return self.law_maps | {table.name: table.fd for table in (self.flows, self.leaving)}

    @property
    def law_maps(self) -> dict[str, int]:
        """Likewise, those that run the ticks of a law."""
        maps = (self._config, self._port_states, self.port_laws, self.law_states)
        return {table.name: table.fd for table in (*maps, self.queues, self.queue_checks)}

    @property
    def hidden_maps(self) -> dict[str, int]:
        """Likewise, those that the program of far queues uses."""
        return {self.hidden.name: self.hidden.fd}

    @property
    def queue_law_maps(self) -> dict[str, int]:
        """Likewise, those that the program of queue laws uses."""
        return {table.name: table.fd for table in (self._port_slots, self._port_states)}

    @property
    def bucket_ns(self) -> int:
        """Length of one of the time buckets in which active flows are counted, ns."""
        return self._limits.bucket_ns

    @property
    def connection_maps(self) -> dict[str, int]:
        """The other maps of connections, those of their rules and of the slots and VLANs of ports, which the
        turns program uses as well, likewise.
        """
        maps = (self.rivals, self.flow_rules, self._port_slots, self._port_vlans)
        return {table.name: table.fd for table in maps}

    def counters(self, slot: int) -> tuple[int, int]:
        """The number of ACKs that the rule in this slot applied to, and of those it lowered."""
        counter = self._counters.get(c_uint32(slot))
        return (counter.matched, counter.rewritten) if counter else (0, 0)

    def reset_counters(self, slot: int) -> None:
        """Start the counters of a slot at 0."""
        self._counters.set(c_uint32(slot), layout.fq_counter())

    # Ports and flows

    def port_state(self, ifindex: int) -> Any:
        """The port's counters: an ``fq_port`` (see ``layout.h``)."""
        if ifindex not in self.slots:
            return layout.fq_port()
        known = {ifindex, *self.ids(ifindex)}
        states = [self._port_states.get(c_uint32(self.slots[each])) or layout.fq_port() for each in known]
        return states[0] if len(states) == 1 else layout.merged_ports(ifindex, states)

    def active_flows(self, ifindex: int, max_age_ns: int = 0) -> int:
        """Flows whose data left by the port within the activity timeout, and that have no rule of their own.
        A count that is younger than ``max_age_ns`` is returned again.
        """
        now = time.monotonic_ns()
        count, counted_ns = self._active.get(ifindex, (0, 0))
        if now - counted_ns < max_age_ns:
            return count
        count = layout.active_flows(self.port_state(ifindex), now, self._limits.bucket_ns)
        self._active[ifindex] = count, now
        return count

    def flow_records(self, idle_ms: int, ofports: dict[int, int]) -> list[bytes]:
        """Records of every flow that leaves by one of ``ofports`` (OpenFlow numbers by interface) and was not
        silent for ``idle_ms`` (0: of every such flow), encoded, in parts that fit in a message each.
        """
        created = self._flows_created() if len(ofports) == 1 else None
        return self._flow_map.records(time.monotonic_ns(), idle_ms, self._by_id(ofports), created)

    def _by_id(self, ofports: dict[int, int]) -> dict[int, int]:
        """OpenFlow numbers also by the ids of transmit queues."""
        if not self._queues:
            return ofports
        return {each: ofports[index] for index in ofports for each in (index, *self._queues.get(index, ()))}

    def _flows_created(self) -> int:
        """The number of flows that were ever entered in the flow map."""
        return self._created + sum(int(self.port_state(ifindex).created) for ifindex in self._ports)

    def segment_state(self, key: FlowKey, ofports: dict[int, int]) -> SegmentState:
        """The last segment of one direction of a flow; ``ofports`` as in :meth:`flow_records`."""
        flow = self.flows.get(flow_key(key))
        if flow is None:
            return SegmentState(key, False)
        direction = flow_key(key, directed=True).dir
        own, other = flow.dir[direction], flow.dir[1 - direction]
        return segment_state(key, own, other, self._by_id(ofports), time.monotonic_ns())

    def has_begun(self, key: Any, syn: int | None) -> bool:
        """Whether a connection may be one whose ends send data, when a SYN of its ``key`` (with direction)
        waits, or a SYN-ACK that acknowledges ``syn``: anybody can send one with its addresses and ports.
        """
        connection, own = _connection(key)
        flow = self.flows.get(connection)
        if flow is None:
            return syn is not None or self.silent.get(connection) is not None
        begun = layout.CONSTANTS["FQ_SEQ"] | layout.CONSTANTS["FQ_KNOWN"]
        if any(each.flags & begun for each in flow.dir):
            return True
        peer = flow.dir[1 - own]
        seen = peer.flags & layout.CONSTANTS["FQ_SYN_SEEN"]
        return syn is not None and not (seen and syn in ((peer.isn + 1) & 0xFFFFFFFF, peer.seq_next))

    def is_decided(self, key: Any) -> bool:
        """Whether an ACK in this direction of a connection (``key``) can be repeated, because the last one is
        known, or the connection is over.
        """
        connection, own = _connection(key)
        flow = self.flows.get(connection)
        return flow is None or bool(
            knows_segment(flow.dir[own]) or flow.dir[own].flags & layout.CONSTANTS["FQ_RST"]
        )

    def set_suspects(self, count: int) -> None:
        """The number of ports of which :meth:`seen_ns` is asked; 0 spares every packet a lookup."""
        if count != self._suspects:
            self._suspects = count
            self._write_config()

    def seen_ns(self, ifindex: int) -> int:
        """When the program saw the last TCP packet leave by a port, of whatever kind, ns; 0: not known. It is
        written while there are suspects.
        """
        state = self._port_states.get(c_uint32(self.slots[ifindex]))
        return int(state.seen_ns) if state is not None else 0

    def read_in_thread(self) -> None:
        """Let a thread read the flow map where that takes long, see :meth:`FlowMap.read_in_thread`."""
        self._flow_map.read_in_thread()

    def lasting_flows(self) -> tuple[bytes, bytes]:
        """What the next agent needs of the flow map if this one ends in order: :meth:`FlowMap.lasting`."""
        return self._flow_map.lasting()

    def enter_flows(self, keys: bytes, flows: bytes, ports: Collection[int]) -> int:
        """Take over the :meth:`lasting_flows` of an earlier agent that leave by ``ports``. Returns how many
        were not there yet.
        """
        entered = self._flow_map.enter(keys, flows, ports)
        self._created += entered
        return entered

    def flow_changes(self, log: FlowChanges, wanted: ChangeRequest, ofports: dict[int, int]) -> Changes:
        """The changes of flow records that a controller asks for, from the log of a bridge; ``ofports`` as in
        :meth:`flow_records`.
        """
        return self._flow_map.changed(log, wanted, time.monotonic_ns(), ofports)

    def unanswered(self, ifindex: int) -> Unanswered:
        """The flows whose data leaves by a port, and whose ACKs leave by none."""
        return self._flow_map.unanswered.of_port(ifindex)

    def begin_sweep(
        self, idle_ns: int, closed_ns: int, logs: Sequence[tuple[FlowChanges, dict[int, int]]]
    ) -> FlowSweep:
        """A pass through the flow map, see :class:`FlowSweep`; to be ended with :meth:`end_sweep`."""
        unify = self._limits.unify_scale, int(self._limits.unify_grace * 1e9)
        return FlowSweep(self._flow_map, logs, time.monotonic_ns(), idle_ns, closed_ns, unify)

    def end_sweep(self, sweep: FlowSweep) -> tuple[int, int]:
        """All parts of the map were processed. Returns the number of flows left, and the number that the map
        has evicted because it was full.
        """
        sweep.finish()
        self._tenants.sweep(time.monotonic_ns())
        self._swept += sweep.gone
        # While it is read, a full map can replace flows that were counted by others that will be.
        left = min(sweep.left, self._limits.flows)
        return left, max(0, self._flows_created() - self._swept - left)
