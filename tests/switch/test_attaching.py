"""Attaching and detaching: the state of a port while it is watched, after a clean end, and after the agent
was killed.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from bench.program_run import LoadedProgram
from fairq_ryu.agent import layout
from fairq_ryu.agent.libbpf import BpfError, load_library
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs import window
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.program import UNIFY_GRACE_S, WINDOW_PRIORITY, ProgramLimits
from fairq_ryu.agent.tc import TcFilter
from tests.switch import packets
from tests.switch.rig import LAST_SYN_S, Connection, Switch, make_port, namespace, run

# Long enough that no flow becomes idle during a test, however slow the machine.
LIMITS = ProgramLimits(flows=256, rules=16, ports=4, active_timeout=600)
HASTY = replace(LIMITS, active_timeout=1.6)
RULE = 30_000
# eventlet, which Ryu imports, warns about forks; the child here ends without using it.
pytestmark = pytest.mark.filterwarnings("ignore:Using fork:DeprecationWarning")


@pytest.fixture
def ports() -> Iterator[dict[int, BridgePort]]:
    with namespace():
        yield {n: make_port(n, f"p{n}") for n in (1, 2)}


@contextmanager
def agent(
    ports: dict[int, BridgePort], limits: ProgramLimits = LIMITS, kept: dict[str, int] | None = None
) -> Iterator[tuple[Switch, int]]:
    """A datapath on the ports, and the number of flows it took over."""
    host = HostPrograms(limits)
    try:
        inherited = host.load([port.ifindex for port in ports.values()], kept)
        datapath = BridgePrograms(host)
        for port in ports.values():
            datapath.add_port(port)
        with LoadedProgram.attached(ports[1].ifindex) as program:
            yield Switch(datapath, ports, program), inherited
    finally:
        host.close()


def killed(
    ports: dict[int, BridgePort], work: Callable[[Switch], object], limits: ProgramLimits = LIMITS
) -> None:
    """An agent in its own process does some work and is killed."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with agent(ports, limits) as (switch, _):
                work(switch)
                os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def has_clsact(name: str) -> bool:
    return any(q["kind"] == "clsact" for q in json.loads(run("tc", "-j", "qdisc", "show", "dev", name)))


def filters(name: str) -> list[int]:
    """Priorities of the filters at egress."""
    shown = subprocess.run(
        ["tc", "-j", "filter", "show", "dev", name, "egress"], capture_output=True, text=True, check=False
    )
    found = json.loads(shown.stdout or "[]")
    return sorted({f["pref"] for f in found})


def add_foreign_filter(name: str, point: str = "egress") -> None:
    """A foreign classic BPF filter that matches nothing."""
    run(*f"tc filter add dev {name} {point} prio 7 protocol all bpf bytecode".split(), "1,6 0 0 0,")


def is_loaded(program_id: int) -> bool:
    fd = load_library().bpf_prog_get_fd_by_id(program_id)
    if fd >= 0:
        os.close(fd)
    return bool(fd >= 0)


def handshake(switch: Switch) -> Connection:
    return Connection(switch, sport=4321, server_scale=6).open()


def test_attaches_and_leaves_nothing(ports: dict[int, BridgePort]) -> None:
    with agent(ports) as (switch, inherited):
        assert inherited == 0
        for port in ports.values():
            assert filters(port.name) == [WINDOW_PRIORITY]
        flow = handshake(switch)
        switch.rule(2, RULE)
        assert flow.granted() == RULE >> 6
        switch.datapath.host.close()
        for port in ports.values():
            assert not has_clsact(port.name)
        switch.datapath.host.close()


def test_real_packet_through_the_real_hook(ports: dict[int, BridgePort]) -> None:
    """Not a test run: the segment passes the interface and leaves with a lowered window on the other side."""
    with agent(ports) as (switch, _):
        flow = handshake(switch)
        switch.rule(2, RULE)
        before = flow.from_server(options=packets.timestamps() + packets.NOP * 2, payload=b"hello")
        with (
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port,
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as host,
        ):
            port.bind(("p1", 0))
            host.bind(("p1h", 0x0800))
            host.settimeout(5)
            port.send(before.frame())
            assert host.recv(2048) == before.but(window=RULE >> 6).frame()


def test_a_port_that_is_added_and_removed(ports: dict[int, BridgePort]) -> None:
    with agent(ports) as (switch, _):
        switch.rule(2, RULE)
        switch.datapath.remove_port(2)
        assert not has_clsact("p2") and has_clsact("p1")
        assert not switch.datapath.has_port(2)
        switch.datapath.add_port(ports[2])
        flow = handshake(switch)
        assert flow.granted() == 65535, "its rule went with it"
        run("ip", "link", "del", "p2")
        switch.datapath.remove_port(2)


def test_port_that_cannot_be_watched(ports: dict[int, BridgePort]) -> None:
    gone = BridgePort(3, "p3", 999_999, "", True, True, 0)
    with agent(ports) as (switch, _):
        with pytest.raises(BpfError, match="interface 999999"):
            switch.datapath.add_port(gone)
        assert not switch.datapath.has_port(3)
        assert len(list(switch.datapath.window._port_slots.keys())) == 2


def test_flows_of_a_killed_agent_are_taken_over(ports: dict[int, BridgePort]) -> None:
    def work(switch: Switch) -> None:
        handshake(switch).data()
        switch.rule(2, 3000)
        switch.rule(1, 3000, slot=1)

    killed(ports, work)
    for port in ports.values():
        assert filters(port.name) == [WINDOW_PRIORITY], "the dead agent's filter is still there"
    with agent(ports) as (switch, inherited):
        assert inherited == 1
        for port in ports.values():
            assert filters(port.name) == [WINDOW_PRIORITY]
        flow = Connection(switch, sport=4321)
        assert flow.granted() == 65535, "rules are not inherited"
        switch.rule(2, RULE)
        assert flow.granted() == RULE >> 6
        assert switch.state(2).unknown_scale == 0
    for port in ports.values():
        assert not has_clsact(port.name)


def test_flows_of_a_killed_agent_count_as_active_with_the_next_bucket(ports: dict[int, BridgePort]) -> None:
    """The counters of the ports are new."""
    killed(ports, lambda switch: handshake(switch).data(), HASTY)
    with agent(ports, HASTY) as (switch, inherited):
        assert inherited == 1
        flow = Connection(switch, sport=4321)
        deadline = time.monotonic() + 30
        while switch.active(2) != 1:
            assert time.monotonic() < deadline
            flow.data()


UNIFYING = replace(LIMITS, unify_scale=7)


def passes(switch: Switch, sport: int, scale: int = 9) -> bool:
    """Whether the SYN of another connection leaves with the scale that it has."""
    options = packets.syn_options(1460, scale, packets.sack_permitted())
    opening = Connection(switch, sport=sport).from_client(seq=1000, ack=0, flags="S", options=options)
    return switch.leave(2, opening) == opening.frame()


def wait(switch: Switch, seconds: float) -> None:
    """Let so much time pass for the handshakes that are unified, by moving their beginning."""
    window = switch.datapath.window
    window._unify_ns -= int(seconds * 1e9)
    window._write_config()


def test_a_syn_that_may_have_left_before_the_agent_keeps_its_scale(ports: dict[int, BridgePort]) -> None:
    """So long as a host may repeat one that left before: its other end counts in that."""
    with agent(ports, UNIFYING) as (switch, _):
        wait(switch, LAST_SYN_S)
        assert passes(switch, 4321)
        wait(switch, UNIFY_GRACE_S)
        assert passes(switch, 4321), "a repetition does as the first did"
        assert not passes(switch, 4322), "no later one has left before"


def test_what_left_before_a_killed_agent_is_not_known_to_the_next(ports: dict[int, BridgePort]) -> None:
    killed(ports, handshake, UNIFYING)
    with agent(ports, UNIFYING) as (switch, inherited):
        assert inherited == 1 and passes(switch, 4322)
        wait(switch, UNIFY_GRACE_S)
        assert not passes(switch, 4323), "the time counts from the start of the first"


def test_an_agent_that_did_not_unify_has_let_larger_scales_pass(ports: dict[int, BridgePort]) -> None:
    killed(ports, lambda switch: (handshake(switch), wait(switch, UNIFY_GRACE_S)))
    with agent(ports, UNIFYING) as (switch, inherited):
        assert inherited == 1
        wait(switch, LAST_SYN_S)
        assert passes(switch, 4322)
        wait(switch, UNIFY_GRACE_S)
        assert not passes(switch, 4323)


def test_maps_of_another_layout_or_size_are_dropped_by_name(
    ports: dict[int, BridgePort], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(ports, handshake)
    version = layout.CONSTANTS["FQ_LAYOUT_VERSION"]
    with monkeypatch.context() as patch:
        patch.setitem(layout.CONSTANTS, "FQ_LAYOUT_VERSION", version + 1)
        with agent(ports) as (switch, inherited):
            assert inherited == 0
            told = f"they have layout {version} of the maps, and this agent has {version + 1}"
            assert switch.datapath.window.not_inherited == told
    killed(ports, handshake)
    with agent(ports, replace(LIMITS, flows=2 * LIMITS.flows)) as (switch, inherited):
        assert inherited == 0
        told = "map flows has another size"
        assert told in switch.datapath.window.not_inherited
    killed(ports, handshake)
    with agent(ports) as (switch, inherited):
        assert (inherited, switch.datapath.window.not_inherited) == (1, "")


def test_flows_are_taken_over_by_kept_maps_without_the_right_to_find_them(
    ports: dict[int, BridgePort], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a service of systemd, which has no CAP_SYS_ADMIN: systemd keeps the maps' file descriptors."""
    here, there = socket.socketpair()

    def work(switch: Switch) -> None:
        handshake(switch).data()
        socket.send_fds(there, [b"fds"], list(switch.datapath.window.heritage.values()))

    monkeypatch.setattr(window, "program_maps", lambda lib, program: {})
    killed(ports, handshake)
    with agent(ports) as (_, inherited):
        assert inherited == 0
    killed(ports, work)
    _, fds, _, _ = socket.recv_fds(here, 16, 8)
    kept = dict(zip(window.HERITAGE, fds, strict=True))
    with agent(ports, kept=kept) as (switch, inherited):
        assert inherited == 1
        switch.rule(2, RULE)
        assert Connection(switch, sport=4321).granted() == RULE >> 6
    # After an orderly end no program counts segments any more: the maps are out of date.
    with agent(ports, kept=kept) as (_, inherited):
        assert inherited == 0
    for each in (*fds, here.detach(), there.detach()):
        os.close(each)


def test_silent_flows_of_a_killed_agent_are_taken_over(ports: dict[int, BridgePort]) -> None:
    def work(switch: Switch) -> None:
        handshake(switch).data(0)
        time.sleep(0.01)
        assert switch.datapath.host.sweep(10**6, 10**6)[0] == 0

    killed(ports, work)
    with agent(ports) as (switch, inherited):
        assert inherited == 0
        switch.rule(2, RULE)
        assert Connection(switch, sport=4321).granted() == RULE >> 6


def test_two_killed_agents_in_a_row(ports: dict[int, BridgePort]) -> None:
    killed(ports, handshake)
    killed(ports, lambda switch: Connection(switch, sport=5555, server_scale=2).open())
    with agent(ports) as (switch, inherited):
        assert inherited == 2
        switch.rule(2, RULE)
        assert Connection(switch, sport=4321).granted() == RULE >> 6
        assert Connection(switch, sport=5555).granted() == RULE >> 2


def ended(ports: dict[int, BridgePort], work: Callable[[Switch], object]) -> tuple[bytes, bytes]:
    """An agent does some work and ends in order; the flows that it leaves."""
    with agent(ports) as (switch, _):
        work(switch)
        return switch.datapath.window.lasting_flows()


def taken_over(switch: Switch, left: tuple[bytes, bytes], indexes: set[int] | None = None) -> int:
    found = {port.ifindex for port in switch.ports.values()} if indexes is None else indexes
    return switch.datapath.window.enter_flows(*left, found)


@pytest.mark.parametrize("moved", [0, 100_000_000], ids=["soon", "after 100 MB"])
def test_flows_of_an_agent_that_ended_in_order_are_taken_over(
    ports: dict[int, BridgePort], moved: int
) -> None:
    """The window scale is known, also when the numbers have moved on meanwhile."""

    def work(switch: Switch) -> None:
        # As it is while data flows: both sides have acknowledged each other.
        flow = handshake(switch)
        flow.data()
        flow.ack()

    left = ended(ports, work)
    with agent(ports) as (switch, inherited):
        assert (inherited, taken_over(switch, left)) == (0, 1)
        switch.rule(2, RULE)
        flow = Connection(switch, sport=4321, client_isn=1000 + moved)
        if moved:
            flow.data()
            flow.ack()
            flow.data()
        assert [flow.granted() for _ in range(3)] == [RULE >> 6] * 3
        state = switch.state(2)
        assert state.unknown_scale == 0 and state.handshakes == 0
        assert switch.active(2) == int(moved > 0)
        assert switch.datapath.host.sweep(10**12, 10**12) == (1, 0), "nothing counts as evicted"


def test_another_connection_with_the_same_ports_does_not_get_the_scale(ports: dict[int, BridgePort]) -> None:
    """It has begun while no agent ran, with another scale: its windows are left alone."""
    left = ended(ports, lambda switch: (handshake(switch).data(), Connection(switch, sport=4321).ack()))
    with agent(ports) as (switch, _):
        assert taken_over(switch, left) == 1
        switch.rule(2, RULE)
        flow = Connection(switch, sport=4321, client_isn=2_000_000_000, server_isn=3_000_000_000)
        for _ in range(3):
            flow.data()
            assert flow.granted() == 65535
        assert switch.state(2).rewritten == 0


def test_only_lasting_flows_of_these_ports_are_taken_over(ports: dict[int, BridgePort]) -> None:
    def work(switch: Switch) -> None:
        open_ports = [4001, 4002, 4003, 4004]
        flows = [Connection(switch, sport=sport).open() for sport in open_ports]
        for flow in flows:
            flow.data()
            flow.ack()
        flows[1].data(flags="RA")
        time.sleep(0.01)
        assert switch.datapath.host.sweep(10**6, 10**6)[0] == 0, "silent ones are kept as well"
        Connection(switch, sport=4005).syn()
        Connection(switch, sport=4003).data()

    left = ended(ports, work)
    with agent(ports) as (switch, _):
        assert taken_over(switch, left, {999_999}) == 0, "interfaces of another network"
        assert taken_over(switch, left) == 3
        assert taken_over(switch, left) == 0, "what is there is newer"
        switch.rule(2, RULE)
        granted = {sport: Connection(switch, sport=sport).granted() for sport in (4001, 4002, 4003, 4004)}
        assert granted == {4001: RULE >> 7, 4002: 65535, 4003: RULE >> 7, 4004: RULE >> 7}


def test_map_of_another_size_is_not_taken_over(ports: dict[int, BridgePort]) -> None:
    killed(ports, handshake)
    other = ProgramLimits(flows=128, rules=16, ports=4, active_timeout=600)
    with agent(ports, other) as (switch, inherited):
        assert inherited == 0
        switch.rule(2, RULE)
        flow = Connection(switch, sport=4321)
        flow.data()
        assert flow.granted() == 65535
        assert switch.state(2).unknown_scale == 1
    assert not has_clsact("p1")


def test_the_program_of_a_killed_agent_is_freed(ports: dict[int, BridgePort]) -> None:
    killed(ports, handshake)
    left = TcFilter(load_library(), WINDOW_PRIORITY).attached_program(ports[1].ifindex)
    assert left and is_loaded(left)
    with agent(ports):
        pass
    deadline = time.monotonic() + 10  # the kernel frees programs asynchronously
    while is_loaded(left):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_foreign_filter_survives(ports: dict[int, BridgePort], when: str) -> None:
    if when == "before":
        run("tc", "qdisc", "add", "dev", "p1", "clsact")
        add_foreign_filter("p1")
    with agent(ports):
        if when == "meanwhile":
            add_foreign_filter("p1")
        assert filters("p1") == [7, WINDOW_PRIORITY]
    assert filters("p1") == [7]
    assert not has_clsact("p2")


def test_foreign_filter_at_ingress_survives(ports: dict[int, BridgePort]) -> None:
    with agent(ports):
        add_foreign_filter("p1", "ingress")
    assert has_clsact("p1")
    assert "pref 7 bpf" in run("tc", "filter", "show", "dev", "p1", "ingress")


def test_foreign_filter_survives_a_takeover(ports: dict[int, BridgePort]) -> None:
    killed(ports, handshake)
    add_foreign_filter("p1")
    with agent(ports) as (_, inherited):
        assert inherited == 1
    assert filters("p1") == [7]
    assert not has_clsact("p2")


def test_empty_foreign_clsact_stays(ports: dict[int, BridgePort]) -> None:
    run("tc", "qdisc", "add", "dev", "p1", "clsact")
    with agent(ports):
        assert has_clsact("p1")
    assert has_clsact("p1") and not has_clsact("p2")
    assert filters("p1") == []
