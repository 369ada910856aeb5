"""Filters of the agent beside qdiscs, filters and programs of others: ports with an ingress qdisc, filters
that somebody removes, and programs that end the chain before the agent's.
"""

from __future__ import annotations

import errno
import logging
import re
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.program_run import LoadedProgram
from fairq_ryu.agent import egress_chain, layout, tcx
from fairq_ryu.agent.filter_watch import FilterWatch
from fairq_ryu.agent.libbpf import BpfError, load_library
from fairq_ryu.agent.ovsdb import BridgePort
from fairq_ryu.agent.programs.bridge import BridgePrograms
from fairq_ryu.agent.programs.host import HostPrograms
from fairq_ryu.agent.programs.program import WINDOW_PRIORITY, ProgramLimits
from fairq_ryu.agent.rtnetlink import AttachedFilter, egress_filters, filter_qdisc
from fairq_ryu.agent.tc import INGRESS_QDISC, NO_PLACE, TcFilter, detach_left
from fairq_ryu.model import Thresholds
from tests.switch import packets
from tests.switch.packets import Segment
from tests.switch.rig import Switch, make_port, namespace, run

LIMITS = ProgramLimits(flows=256, rules=16, ports=4, active_timeout=1.6)
RULE = 30_000
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
HOUR = 3600 * 10**9
NEEDS_TCX = pytest.mark.skipif(
    not tcx.is_available(load_library()), reason="the kernel has no tcx (Linux has since 6.6)"
)


@pytest.fixture
def ports() -> Iterator[dict[int, BridgePort]]:
    with namespace():
        yield {n: make_port(n, f"p{n}") for n in (1, 2)}


@contextmanager
def agent(ports: dict[int, BridgePort]) -> Iterator[BridgePrograms]:
    host = HostPrograms(LIMITS)
    try:
        host.load([port.ifindex for port in ports.values()])
        datapath = BridgePrograms(host)
        for port in ports.values():
            datapath.add_port(port)
        yield datapath
    finally:
        host.close()


def send(port: str, *segments: Segment) -> list[bytes]:
    """The bridge sends segments out of a port; returns them as they arrive."""
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as bridge,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as host,
    ):
        bridge.bind((port, 0))
        host.bind((f"{port}h", 0x0003))
        host.settimeout(5)
        for segment in segments:
            bridge.send(segment.frame())
        return [host.recv(2048) for _ in segments]


class Wire:
    """A connection whose segments really leave by ports 1 (to the client) and 2."""

    def __init__(self) -> None:
        options = packets.syn_options(1460, 7, packets.sack_permitted())
        self._to = {"p2": (CLIENT, SERVER, 4321, 80), "p1": (SERVER, CLIENT, 80, 4321)}
        self.pass_by("p2", seq=1000, ack=0, flags="S", options=options)
        self.pass_by("p1", seq=5000, ack=1001, flags="SA", options=options)
        self.pass_by("p2", seq=1001, ack=5001, payload=b"d" * 100)

    def pass_by(self, port: str, **what: object) -> bytes:
        (frame,) = send(port, Segment(*self._to[port], **what))  # type: ignore[arg-type]
        return frame

    def granted(self) -> int:
        """The window of an ACK when it arrives at the client."""
        return packets.window(self.pass_by("p1", seq=5001, ack=1101, window=65535))


def rule(datapath: BridgePrograms) -> None:
    Switch(datapath, {}, None).rule(2, RULE)  # type: ignore[arg-type]


# Ingress qdiscs


@NEEDS_TCX
def test_a_port_with_an_ingress_qdisc_is_governed_without_clsact(ports: dict[int, BridgePort]) -> None:
    for port in ports.values():
        run("tc", "qdisc", "add", "dev", port.name, "ingress")
    with agent(ports) as datapath:
        flow = Wire()
        rule(datapath)
        assert [flow.granted() for _ in range(3)] == [RULE >> 7] * 3, "on the wire"
        state = datapath.port_state(ports[2])
        assert (state.acks, state.rewritten) == (3, 3)
        assert {datapath.filter_place(port.ifindex) for port in ports.values()} == {"tcx"}
        for port in ports.values():
            assert "bpf" not in run("tc", "filter", "show", "dev", port.name, "ingress")
        # A packet cannot be taken away there, so what would do that is refused; drops are reported still.
        law = layout.fq_queue_law(kind=1)
        with pytest.raises(BpfError, match="its ingress qdisc"):
            datapath.install_queue_law(2, 1, law, time.monotonic_ns() + HOUR)
        assert not datapath.turn_program.start(ports[2].ifindex)
        datapath.set_thresholds(2, Thresholds(40_000, 20_000, drops=True))
        # The port gets several transmit queues: another program takes the place of the first.
        assert datapath.window.set_queues(ports[2].ifindex, 1)
        assert flow.granted() == RULE >> 7
    for port in ports.values():
        assert filter_qdisc(port.ifindex) == "ingress", "it is not ours"
        assert tcx.programs(load_library(), port.ifindex) == []


def test_without_tcx_a_port_with_an_ingress_qdisc_is_refused(
    ports: dict[int, BridgePort], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Linux 6.1."""
    monkeypatch.setattr(tcx, "is_available", lambda lib: False)
    run("tc", "qdisc", "add", "dev", "p1", "ingress")
    with agent({2: ports[2]}) as datapath:
        with pytest.raises(BpfError, match=re.escape(NO_PLACE)):
            datapath.add_port(ports[1])
        assert not datapath.has_port(1)
    assert filter_qdisc(ports[1].ifindex) == "ingress"
    assert "bpf" not in run("tc", "filter", "show", "dev", "p1", "ingress")
    assert egress_chain.place_for(load_library(), ports[1].ifindex) == ""
    assert egress_chain.place_for(load_library(), ports[2].ifindex) == "clsact"


def test_clsact_is_removed_so_that_an_ingress_qdisc_can_be_added(ports: dict[int, BridgePort]) -> None:
    with agent(ports):
        assert filter_qdisc(ports[1].ifindex) == "clsact"
    run("tc", "qdisc", "add", "dev", "p1", "ingress")


# Removed by others


@pytest.mark.parametrize("what", ["filter del dev p1 egress", "qdisc del dev p1 clsact"])
def test_filters_that_somebody_removes_are_attached_again(
    ports: dict[int, BridgePort], caplog: pytest.LogCaptureFixture, what: str
) -> None:
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        flow = Wire()
        rule(datapath)
        datapath.set_thresholds(1, Thresholds(40_000, 20_000, drops=True))
        datapath.install_queue_law(1, 1, layout.fq_queue_law(kind=1), time.monotonic_ns() + HOUR)
        before = egress_filters(ports[1].ifindex)
        assert len(before) == 3
        watch.look()
        assert flow.granted() == RULE >> 7
        run("tc", *what.split())
        assert flow.granted() == 65535
        watch.look()
        assert egress_filters(ports[1].ifindex) == before
        assert flow.granted() == RULE >> 7
        watch.look()
        assert [watch.row(port.ifindex)["restored"] for port in ports.values()] == [1, 0]
        assert [each.message for each in caplog.records if each.levelno >= logging.WARNING] == [
            "interface p1: somebody has removed filters of the agent; they are there again"
        ]
        watch.close()
    assert filter_qdisc(ports[1].ifindex) == ""


def test_without_a_free_descriptor_nothing_is_forgotten(
    ports: dict[int, BridgePort], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of changes is taken once."""
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        watch.look()
        before = {port.ifindex: egress_filters(port.ifindex) for port in ports.values()}
        for name in ("p1", "p2"):
            run("tc", "qdisc", "del", "dev", name, "clsact")

        def none_free(*_: object) -> int:
            raise OSError(errno.EMFILE, "too many open files")

        with monkeypatch.context() as full:
            full.setattr(datapath.host, "restore_filters", none_free)
            full.setattr(datapath.host, "programs_before", none_free)
            watch.look()
        assert all("too many" in str(watch.row(each)["refusal"]) for each in before)
        watch.look()
        assert {each: egress_filters(each) for each in before} == before
        watch.close()


def test_ports_that_do_not_change_are_not_looked_at(
    ports: dict[int, BridgePort], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells all listeners of each question for a qdisc, as of a change."""
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        looked: list[int] = []
        look_at = watch._look_at
        monkeypatch.setattr(watch, "_look_at", lambda ifindex: (looked.append(ifindex), look_at(ifindex)))
        watch.look()  # its own filters have come
        looked.clear()
        assert filter_qdisc(ports[1].ifindex) == "clsact"
        for _ in range(2):
            watch.look()
        assert looked == []
        add_filter("p1", ends=False)
        watch.look()
        assert looked == [ports[1].ifindex]
        watch.close()


@NEEDS_TCX
def test_an_ingress_qdisc_that_takes_the_place_of_clsact(
    ports: dict[int, BridgePort], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Open vSwitch does when hw-offload is switched on. Before Linux 6.6 the port is reported."""
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        watch.look()
        flow = Wire()
        rule(datapath)
        run("tc", "qdisc", "del", "dev", "p1", "clsact")
        run("tc", "qdisc", "add", "dev", "p1", "ingress")
        with monkeypatch.context() as old:
            old.setattr(tcx, "is_available", lambda lib: False)
            watch.look()
            watch.look()
        assert INGRESS_QDISC in str(watch.row(ports[1].ifindex)["refusal"])
        assert flow.granted() == 65535
        watch.look()
        assert watch.row(ports[1].ifindex)["refusal"] == ""
        assert datapath.filter_place(ports[1].ifindex) == "tcx"
        assert flow.granted() == RULE >> 7
        watch.close()
    assert filter_qdisc(ports[1].ifindex) == "ingress"


@NEEDS_TCX
def test_an_ingress_qdisc_comes_and_goes_where_all_filters_are(ports: dict[int, BridgePort]) -> None:
    """Beside it, the programs that take packets away are off; later they are there again."""
    port = ports[1].ifindex
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        flow = Wire()
        rule(datapath)
        datapath.set_thresholds(1, Thresholds(40_000, 20_000, drops=True))
        datapath.install_queue_law(1, 1, layout.fq_queue_law(kind=1), time.monotonic_ns() + HOUR)
        assert datapath.turn_program.start(port)
        before = egress_filters(port)
        assert len(before) == 4
        watch.look()
        for place, words in (("tcx", "del dev p1 clsact"), ("clsact", "del dev p1 ingress")):
            run("tc", "qdisc", *words.split())
            if place == "tcx":
                run("tc", "qdisc", "add", "dev", "p1", "ingress")
            for _ in range(2):
                watch.look()
                assert watch.row(port)["refusal"] == ""
            assert datapath.filter_place(port) == place
            assert flow.granted() == RULE >> 7
        assert egress_filters(port) == before
        assert tcx.programs(load_library(), port) == []
        assert watch._again == set()
        watch.close()
    assert filter_qdisc(port) == ""


@NEEDS_TCX
def test_drops_are_made_before_the_queue_is_full_as_soon_as_there_is_a_place(
    ports: dict[int, BridgePort],
) -> None:
    """The port began with an ingress qdisc."""
    run("tc", "qdisc", "add", "dev", "p1", "ingress")
    port = ports[1].ifindex
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        datapath.set_thresholds(1, Thresholds(40_000, 20_000, drops=True))
        watch.look()
        assert egress_filters(port) == []
        run("tc", "qdisc", "del", "dev", "p1", "ingress")
        for _ in range(2):
            watch.look()
        assert len(egress_filters(port)) == 2, "the window program, and this one"
        watch.close()


@NEEDS_TCX
def test_a_program_that_somebody_detaches_from_tcx_is_attached_again(ports: dict[int, BridgePort]) -> None:
    run("tc", "qdisc", "add", "dev", "p1", "ingress")
    port, lib = ports[1].ifindex, load_library()
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        flow = Wire()
        rule(datapath)
        watch.look()
        before = tcx.programs(lib, port)
        assert lib.bpf_link_detach(datapath.window.filter._links[port]._fd) == 0
        assert tcx.programs(lib, port) == [] and flow.granted() == 65535
        for _ in range(2):
            watch.look()
        assert tcx.programs(lib, port) == before and flow.granted() == RULE >> 7
        assert [watch.row(each.ifindex)["restored"] for each in ports.values()] == [1, 0]
        watch.close()
    assert tcx.programs(lib, port) == [] and filter_qdisc(port) == "ingress"


# Before ours


def add_filter(name: str, ends: bool) -> None:
    """A filter of somebody else, for all packets: the chain ``ends`` there, or goes on."""
    verdict = 0xFFFFFFFF if ends else 0
    words = f"tc filter add dev {name} egress prio 7 protocol all bpf bytecode"
    run(*words.split(), f"1,6 0 0 {verdict},", "flowid", "1:1")


def swept(datapath: BridgePrograms, watch: FilterWatch) -> None:
    """A second passes."""
    datapath.host.sweep(HOUR, HOUR)
    watch.look()


def test_who_ends_the_chain_before_the_agents_programs_is_named_and_packets_are_counted(
    ports: dict[int, BridgePort], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    who = "bpf filter (pref 7)"
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        flow = Wire()
        rule(datapath)
        add_filter("p1", ends=True)
        for _ in range(2):
            swept(datapath, watch)
        assert watch.row(ports[1].ifindex) == {"restored": 0, "refusal": "", "before": [who], "missed": 0}
        swept(datapath, watch)
        assert flow.granted() == 65535, "it does not reach the program"
        send("p1", Segment(SERVER, CLIENT, 80, 4321, seq=5001, ack=1101, vlans=((0x8100, 10),)))
        for _ in range(2):
            swept(datapath, watch)
        assert watch.row(ports[1].ifindex)["missed"] == 2
        run("tc", "filter", "del", "dev", "p1", "egress", "prio", "7")
        swept(datapath, watch)
        assert flow.granted() == RULE >> 7
        assert watch.row(ports[1].ifindex) == {"restored": 0, "refusal": "", "before": [], "missed": 0}
        (said,) = [each.message for each in caplog.records if each.levelno == logging.WARNING]
        assert "interface p1: TCP packets leave and do not reach the agent's programs" in said and who in said
        watch.close()


def test_a_filter_that_lets_packets_pass_on_is_listed_and_nothing_is_missed(
    ports: dict[int, BridgePort],
) -> None:
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        flow = Wire()
        rule(datapath)
        add_filter("p1", ends=False)
        for _ in range(5):
            assert flow.granted() == RULE >> 7
            swept(datapath, watch)
        row = watch.row(ports[1].ifindex)
        assert row["before"] == ["bpf filter (pref 7)"] and row["missed"] == 0
        watch.close()


def test_packets_of_which_no_flow_tells_have_not_missed_the_programs(ports: dict[int, BridgePort]) -> None:
    """ACKs of unknown flows, copies that the bridge floods, and broken packets."""
    alone = Segment("10.0.0.8", "10.0.0.9", 1, 2, seq=1, ack=1)
    with agent(ports) as datapath:
        watch = FilterWatch(datapath.host)
        flow = Wire()
        add_filter("p1", ends=False)
        flooded = Segment(CLIENT, SERVER, 4321, 80, seq=1101, ack=5001, payload=b"d")
        cut = alone.frame()[:-15]
        for frame in (alone.frame(), flooded.frame(), cut):
            for _ in range(4):
                swept(datapath, watch)
            assert flow.pass_by("p2", seq=1101, ack=5001, payload=b"d")
            assert datapath.host.frames.send("p1", frame)
            for _ in range(2):
                swept(datapath, watch)
                assert watch.row(ports[1].ifindex)["missed"] == 0
        watch.close()


@NEEDS_TCX
def test_a_program_of_others_that_comes_to_tcx_later_is_found(ports: dict[int, BridgePort]) -> None:
    """Netlink does not tell of it."""
    lib = load_library()
    with agent(ports) as datapath, LoadedProgram.empty() as other:
        watch = FilterWatch(datapath.host)
        swept(datapath, watch)
        assert watch.row(ports[1].ifindex)["before"] == []
        link = tcx.TcxLink(lib, ports[1].ifindex, other._fd)
        swept(datapath, watch)
        (before,) = watch.row(ports[1].ifindex)["before"]
        assert before.startswith("tcx program ")
        link.close()
        swept(datapath, watch)
        assert watch.row(ports[1].ifindex)["before"] == []
        watch.close()


@NEEDS_TCX
def test_programs_of_others_at_tcx_are_listed(ports: dict[int, BridgePort]) -> None:
    lib = load_library()
    with agent(ports) as datapath, LoadedProgram.empty() as other:
        link = tcx.TcxLink(lib, ports[1].ifindex, other._fd)
        (before,) = datapath.host.programs_before(ports[1].ifindex)
        assert before.startswith("tcx program ")
        assert datapath.host.programs_before(ports[2].ifindex) == ()
        link.close()
    assert egress_chain.programs_before(lib, ports[1].ifindex) == ()


@contextmanager
def no_descriptors() -> Iterator[None]:
    """This process cannot open another one, also when it closes some."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("added_again", [False, True])
def test_filters_are_removed_later_where_there_is_no_descriptor(
    ports: dict[int, BridgePort], added_again: bool
) -> None:
    index = ports[1].ifindex
    with agent(ports) as datapath:
        there = egress_filters(index)
        with no_descriptors():
            datapath.remove_port(1)
            detach_left()
        assert egress_filters(index) == there != []
        if added_again:
            datapath.add_port(ports[1])
            detach_left()
            assert egress_filters(index) == there
            datapath.remove_port(1)
        detach_left()
        assert (egress_filters(index), filter_qdisc(index)) == ([], "")
    assert filter_qdisc(ports[2].ifindex) == ""


def test_what_netlink_tells(ports: dict[int, BridgePort]) -> None:
    index = ports[1].ifindex
    assert (filter_qdisc(index), egress_filters(index), filter_qdisc(99_999)) == ("", [], "")
    with agent(ports):
        add_filter("p1", ends=True)
        other, own = egress_filters(index)
        assert other == AttachedFilter(7, "bpf")
        assert (own.priority, own.kind, own.name.partition(":")[0]) == (WINDOW_PRIORITY, "bpf", "fq_egress")


def test_a_filter_does_not_make_a_qdisc_of_its_own(ports: dict[int, BridgePort]) -> None:
    """The clsact qdisc is made, and removed, with the window program's filter."""
    with agent({2: ports[2]}) as datapath:
        fd = datapath.window._program_fd("fq_egress")
        with pytest.raises(BpfError, match="cannot attach"):
            TcFilter(load_library(), 9).attach(ports[1].ifindex, fd)
    assert filter_qdisc(ports[1].ifindex) == ""
