"""``fairq doctor --bridge``: every port of a bridge, governed or not, why, and the commands that make it so.

What is governed is decided by the code of the agent, so that both say the same. No agent needs to run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from fairq_ryu.agent import status
from fairq_ryu.agent.egress_chain import place_for, programs_before, said
from fairq_ryu.agent.libbpf import load_library
from fairq_ryu.agent.ovsdb import BridgePort, BridgeView, BridgeWatcher
from fairq_ryu.agent.qdisc import NO_LIMITS, QueueLimits, explicit_roots, read_queue_limits
from fairq_ryu.agent.tc import NO_PLACE, UNPOLICED
from fairq_ryu.agent.watched_ports import listed
from fairq_ryu.cli.doctor import commands
from fairq_ryu.cli.release import QOS_KEY, string_atom
from fairq_ryu.errors import UserError, plain, quoted
from fairq_ryu.far_queue import BUFFER_S, FAR, SHARE

_NOOP = "linux-noop"
# The queue that is proposed: a port is shaped to this part of its line rate, so that packets wait in the
# qdisc and not in the ring of the network card; the buffer holds this much time.
_SHAPED = 0.95
_BUFFER_S = 0.005
_LEAST_BUFFER = 30_000
# What may be sent at once: timers need this much time.
_BURST_S = 0.0001
_LEAST_BURST = 3_000
# A packet of several segments is no large part of a buffer beyond that; below, tbf is to cut it.
_CUT_BELOW = 10 * 65_536
_FAR_BUFFER = (
    f"add `buffer BYTES`, what that switch has for its port to this machine; without it, what drains within "
    f"{1000 * BUFFER_S:g} ms"
)
_FAR_COST = (
    f"it costs long flows at most about {100 * (1 - SHARE):.0f} % of the rate between volleys "
    f"(share {SHARE:g}), and each packet that arrives about 0.1 us of a processor"
)
# A frame may be so much longer than the payload of Ethernet: its header, two VLAN tags, some room.
_FRAME_ROOM = 40


@dataclass(frozen=True, slots=True)
class QosRecord:
    """The QoS record of an interface in Open vSwitch: its type ("": none), and the port that has it."""

    port: str
    type: str = ""


class Filters(NamedTuple):
    """Where the agent's programs are at egress of a port, or would be: as in an agent's status."""

    place: str = "clsact"
    before: Sequence[str] = ()
    missed: int = 0
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class PortReport:
    """A port. ``governed``: its queue is governed; ``windows``: windows of ACKs that leave by it are lowered;
    ``reason``: why, or why not; ``commands`` would make it governed, or keep it so. ``limit`` in bytes,
    ``rate`` in bits per second, 0: not known. ``no_acks``: flows whose data left by the port, and
    whose ACKs by none of the agent. ``far_queue``: a line for ``[far_queues]`` that would govern the queue in
    the switch above; "": there is one, or the port is no network card. ``lost``: segments that were lost
    before they arrived at a port with a far queue.
    """

    names: tuple[str, ...]
    ofport: int | None
    governed: bool
    windows: bool
    reason: str
    kind: str = ""
    limit: int = 0
    rate: int = 0
    commands: tuple[str, ...] = ()
    no_acks: int = 0
    far_queue: str = ""
    lost: int = 0


def main(bridge: str, json_output: bool = False) -> int:
    """Print the report of a bridge. Returns 0. Raises :class:`UserError` if there is no such bridge, or if
    Open vSwitch does not answer.
    """
    watcher = BridgeWatcher(bridge, lambda view: None)
    view = watcher.start()
    watcher.stop()
    indexes = [port.ifindex for port in view.ports]
    running, told, hangs = _ask_agent(bridge)
    filters = _read_filters(view.ports, told)
    found = reports(view, read_queue_limits(indexes), explicit_roots(indexes), read_qos(), filters)
    found = [with_far_queue(with_flows(each, told or {}), view.ports, told or {}) for each in found]
    missing = sorted(view.joined - set((told or {}).get("bridges", ())))
    if json_output:
        ports = [asdict(each) for each in found]
        about = {"bridge": bridge, "agent": running, "joined": sorted(view.joined), "ports": ports}
        print(json.dumps(about, indent=2))
        return 0
    for line in (*([hangs] if hangs else []), *lines(bridge, running, found, missing)):
        print(plain(line))
    return 0


def lines(
    bridge: str, running: bool | None, found: Sequence[PortReport], missing: Sequence[str] = ()
) -> Iterator[str]:
    """The report for people. Commands are lines of their own, never wrapped. ``missing``: bridges that patch
    ports join to this one, and on which its agent does not run.
    """
    together = quoted(":".join((bridge, *missing)))
    if running is False:
        yield f"no agent runs on bridge {bridge}: fairq agent --bridge {together}"
    if missing and running is not None:
        yield (
            f"patch ports lead to {listed(missing)}: a flow that leaves by one bridge, and its ACKs by "
            "another, has windows only if one agent runs on all:"
        )
        yield f"    fairq agent --bridge {together}"
    for each in found:
        number = "" if each.ofport is None else f"port {each.ofport} "
        state = "governed" if each.governed else "windows only" if each.windows else "not watched"
        if not each.governed and each.ofport is not None:
            state = "not governed"
        yield f"{number}{listed(each.names)}: {state}: {each.reason}"
        if each.no_acks:
            yield (
                f"    data seen, no ACKs: {each.no_acks} flows since the agent started; "
                "their windows are not lowered"
            )
        for command in each.commands:
            yield f"    {command}"
        if each.lost:
            yield (
                f"    far queue: {each.lost} segments were lost in the switch above, or before it, since the "
                "agent started; if that goes on, lower its rate or its buffer"
            )
        if each.far_queue:
            yield "    what arrives has waited in the switch above; to govern that queue from here:"
            yield "    [far_queues]"
            yield f"    {each.far_queue}"
            yield f"    {_FAR_BUFFER}"
            yield f"    {_FAR_COST}"
    governed, ports = sum(each.governed for each in found), sum(each.ofport is not None for each in found)
    without = sum(each.governed and each.no_acks > 0 for each in found)
    note = f"; {without} of these have flows without ACKs, which are not" if without else ""
    yield f"bridge {bridge}: {governed} of {ports} ports are governed{note}"


def with_flows(report: PortReport, told: Mapping[str, Any]) -> PortReport:
    """The report of a port, with what the agent has counted at it."""
    counts = {port["ofport"]: port["no_acks"]["total"] for port in told.get("ports", ())}
    return replace(report, no_acks=counts.get(report.ofport, 0))


def with_far_queue(report: PortReport, ports: Sequence[BridgePort], told: Mapping[str, Any]) -> PortReport:
    """The report of a port, with the far queue that it could have: a network card at least leads to a switch.
    ``told``: the status of the agent.
    """
    port = next((each for each in ports if each.ofport == report.ofport), None)
    known = {each["ofport"]: each for each in told.get("ports", ())}
    if port is None:
        return report
    if FAR + port.ofport in known:
        return replace(report, lost=known[FAR + port.ofport]["queue"]["drops"])
    if not _is_card(port.name):
        return report
    # Without a speed of the link, the rate is found when the queue above fills.
    rate = f"rate {port.speed // 10**6}mbit" if port.speed else ""
    return replace(report, far_queue=f"{port.name} = {rate}".rstrip())


def _is_card(name: str) -> bool:
    """Whether an interface is that of a device, and not made by software."""
    return Path(f"/sys/class/net/{name}/device").exists()


def reports(
    view: BridgeView,
    limits: Mapping[int, QueueLimits],
    explicit: set[int],
    qos: Mapping[str, QosRecord],
    filters: Mapping[int, Filters],
) -> list[PortReport]:
    """The ports of a bridge: those that are watched, in the order of their numbers, then the others.
    ``limits``, ``explicit`` (somebody has chosen the root qdisc) and ``filters`` by interface index, ``qos``
    by interface.
    """
    made = []
    for port in view.ports:
        record = qos.get(port.name, QosRecord(port.name))
        found = limits.get(port.ifindex, NO_LIMITS)
        report = _report(view.name, port, found, port.ifindex in explicit, record)
        at = filters.get(port.ifindex, Filters())
        made.append(_with_filters(report, at, port.ifindex in view.policed))
    made += [PortReport(each.names, None, False, True, each.reason) for each in view.devices]
    made += [PortReport((name,), None, False, False, reason) for name, reason in view.unwatched]
    return made


def _report(bridge: str, port: BridgePort, found: QueueLimits, explicit: bool, qos: QosRecord) -> PortReport:
    rate = found.rate * 8 or port.speed // max(1, found.queues)
    keep = () if qos.type == _NOOP else (keep_command(bridge, qos.port),)
    if found.limit:
        several = f" with {found.queues} transmit queues, each of" if found.queues else ","
        reason = f"{found.kind}{several} {found.limit:,} bytes, {_shown(rate)}"
        if keep:
            reason += f"; but Open vSwitch may remove it: the port has no QoS record of type {_NOOP}"
        needed = keep
    else:
        reason = found.reason or "it has no qdisc"
        if qos.type not in ("", _NOOP):
            reason += f"; its QoS record of type {qos.type} would be replaced"
            explicit = False  # Open vSwitch removes the qdisc with the record
        if not rate:
            reason += "; its speed is not known: put in RATE, and 5 ms of it as BYTES"
        needed = (*keep, *queue_commands(port.name, found, rate, explicit, _mtu(port.name)))
    return PortReport(
        (port.name,), port.ofport, bool(found.limit), True, reason, found.kind, found.limit, rate, needed
    )


def _mtu(name: str) -> int:
    """That of Ethernet, if the interface is gone."""
    try:
        return int(Path(f"/sys/class/net/{name}/mtu").read_text())
    except (OSError, ValueError):
        return 1500


def _with_filters(report: PortReport, filters: Filters, policed: bool) -> PortReport:
    """The report, with what stands between the packets of the port and the agent's programs."""
    if filters.refusal and filters.place != "tcx":
        return replace(report, governed=False, windows=False, reason=filters.refusal, commands=())
    if filters.missed:
        reason = f"{filters.missed} TCP packets have left without reaching the agent's programs"
        reason += f": {said(filters.before)}"
        return replace(report, governed=False, windows=False, reason=reason)
    notes = [each for each in (said(filters.before), filters.refusal) if each]
    if filters.place == "tcx":
        notes.append("windows are lowered by tcx, without turns and queue laws, beside its ingress qdisc")
    elif policed:
        notes.append(UNPOLICED)
    return replace(report, reason="; ".join([report.reason, *notes]))


def _read_filters(ports: Sequence[BridgePort], about: Mapping[str, Any] | None) -> dict[int, Filters]:
    """From the status of the agent, or, without one, by what it would find."""
    found = {}
    if about is not None:
        reasons = {each["name"]: each["reason"] for each in about["unwatched"]}
        watched = {each["ifindex"]: each["filters"] for each in about["ports"]}
        for port in ports:
            at = watched.get(port.ifindex, {"refusal": reasons.get(port.name, "the agent does not watch it")})
            found[port.ifindex] = Filters(**{name: at[name] for name in Filters._fields if name in at})
        return found
    lib = load_library()
    for port in ports:
        place = place_for(lib, port.ifindex)
        before = programs_before(lib, port.ifindex)
        found[port.ifindex] = Filters(place, before, 0, "" if place else NO_PLACE)
    return found


def _shown(rate: int) -> str:
    return f"{rate / 1e6:,.0f} Mbit/s" if rate else "rate not known"


def keep_command(bridge: str, port: str) -> str:
    """The command that lets Open vSwitch leave the qdiscs of a port alone; `fairq release` finds the
    record.
    """
    return (
        f"ovs-vsctl -- --id=@noop create QoS type={_NOOP} "
        f"{quoted(f'external_ids:{QOS_KEY}={string_atom(bridge)}')} -- set port {quoted(port)} qos=@noop"
    )


def queue_commands(
    name: str, found: QueueLimits, rate: int, explicit: bool, mtu: int = 1500
) -> tuple[str, ...]:
    """The commands that give an interface of ``rate`` bits per second one queue of known size and rate.
    ``explicit``: its present root qdisc was chosen by somebody, and has to go first. ``mtu`` in bytes.
    """
    name = quoted(name)
    if found.leaf and rate:
        return (f"tc qdisc replace dev {name} parent {found.leaf} bfifo limit {_buffer(rate)}",)
    shaped = int(rate * _SHAPED)
    text = f"{shaped // 1_000_000}mbit" if shaped >= 1_000_000 else f"{shaped}bit"
    burst, limit = max(_LEAST_BURST, int(shaped / 8 * _BURST_S)), str(_buffer(shaped))
    if not rate:
        text, limit = "RATE", "BYTES"
    removal = (f"tc qdisc del dev {name} root",) if explicit else ()
    if _buffer(shaped) < _CUT_BELOW:
        frame = mtu + _FRAME_ROOM
        return (
            *removal,
            f"tc qdisc add dev {name} root handle 1: tbf rate {text} burst {max(burst, 2 * frame)}"
            f" peakrate 100gbit mtu {frame} limit {limit}",
        )
    return (
        *removal,
        f"tc qdisc add dev {name} root handle 1: htb default 1",
        f"tc class add dev {name} parent 1: classid 1:1 htb rate {text} ceil {text} "
        f"burst {burst} cburst {burst}",
        f"tc qdisc add dev {name} parent 1:1 handle 10: bfifo limit {limit}",
    )


def _buffer(rate: int) -> int:
    return max(_LEAST_BUFFER, int(rate / 8 * _BUFFER_S))


def _ask_agent(bridge: str) -> tuple[bool | None, dict[str, Any] | None, str]:
    """Whether an agent runs on a bridge (None: only root is told), its status, and the error if it hangs."""
    if bridge not in status.running():
        return False, None, ""
    try:
        return True, status.ask(bridge), ""
    except status.NoAnswer as error:
        return True, None, str(error)
    except UserError as error:
        return (None if "root" in error.message else False), None, ""


def read_qos() -> dict[str, QosRecord]:
    """The QoS records of all interfaces of Open vSwitch, by name of the interface. Raises
    :class:`UserError`.
    """
    types = {_uuids(uuid)[0]: str(kind) for uuid, kind in _listed("QoS", "_uuid", "type")}
    names = {_uuids(uuid)[0]: str(name) for uuid, name in _listed("Interface", "_uuid", "name")}
    found = {}
    for port, interfaces, records in _listed("Port", "name", "interfaces", "qos"):
        record = next((types.get(uuid, "") for uuid in _uuids(records)), "")
        for uuid in _uuids(interfaces):
            if uuid in names:
                found[names[uuid]] = QosRecord(str(port), record)
    return found


def _listed(table: str, *columns: str) -> list[list[Any]]:
    """All rows of a table of the database, in the form of RFC 7047."""
    words = ["ovs-vsctl", "--timeout=5", "--format=json", f"--columns={','.join(columns)}", "list", table]
    answer = commands.run(words)
    if answer.code != 0:
        raise UserError(f"ovs-vsctl list {table}: {answer.last_line}", "run it as root")
    rows: list[list[Any]] = json.loads(answer.text)["data"]
    return rows


def _uuids(cell: Any) -> list[str]:
    """The ids in a cell: one, or a set of them."""
    kind, value = cell
    return [str(value)] if kind == "uuid" else [str(each) for _, each in value]
