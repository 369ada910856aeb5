"""The ports of a bridge: where programs start and stop, and how queues without events are read."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from fairq_ryu.agent import ports
from fairq_ryu.agent.far_ports import far_id, far_limits, known_line, with_far_queues, without_port
from fairq_ryu.agent.far_table import FarTable
from fairq_ryu.agent.libbpf import BpfError
from fairq_ryu.agent.ovsdb import BridgePort, BridgeView
from fairq_ryu.agent.ports import BridgePorts
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.agent.tc import UNPOLICED
from fairq_ryu.agent.watched_ports import WindowDevice
from fairq_ryu.channel.far_queues import ERROR_FAR_QUEUE, FarQueueState, RateLease
from fairq_ryu.channel.protocol import ofp
from fairq_ryu.channel.refusal import OpenFlowError
from fairq_ryu.errors import UserError
from fairq_ryu.far_queue import FAR, FarQueue
from tests.support.fakes import bridge_port

NOW = 10**12


class Programs:
    """Interface 7, port 1 of the bridge, may be silent."""

    def __init__(self, silent: dict[int, int]) -> None:
        self.silent = silent
        self.corrections: list[Any] = []

    def silent_queues(self, now_ns: int) -> dict[int, int]:
        assert now_ns == NOW
        return self.silent

    def correct_backlogs(self, *what: Any) -> list[int]:
        self.corrections.append(what)
        return [1]


def read(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[set[int]]]:
    """The ports that are reported, and the interfaces that are read; each reading finds 9 bytes, a second
    after the agent has looked at the queues.
    """
    now, requested = NOW, []

    def read_backlogs(wanted: Any) -> dict[int, int]:
        nonlocal now
        now += 10**9
        requested.append(set(wanted))
        return dict.fromkeys(wanted, 9)

    monkeypatch.setattr(ports, "read_backlogs", read_backlogs)
    monkeypatch.setattr(ports, "time", SimpleNamespace(monotonic_ns=lambda: now))
    unused: Any = None
    made = BridgePorts("s1", unused, programs, unused, lambda: None)  # type: ignore[arg-type]
    return asyncio.run(made.read_silent_queues()), requested


def test_a_reading_counts_from_before_it_was_made(monkeypatch):
    """An event that comes during the reading is newer."""
    programs = Programs({7: NOW - 5})
    assert read(programs, monkeypatch) == ([1], [{7}])
    assert programs.corrections == [({7: NOW - 5}, NOW, {7: 9})]


def test_nothing_is_read_while_no_queue_is_silent(monkeypatch):
    programs = Programs({})
    assert read(programs, monkeypatch) == ([], [])
    assert programs.corrections == []


class Devices:
    """Which programs run where; ``done`` has the changes in order."""

    def __init__(self) -> None:
        self.ports: dict[int, BridgePort] = {}
        self.devices: dict[int, WindowDevice] = {}
        self.done: list[str] = []
        self.broken: set[int] = set()
        self.linked: set[int] = set()

    def add_port(self, port: BridgePort) -> None:
        self.ports[port.ofport] = port
        self.done.append(f"+port {port.ifindex}")

    def remove_port(self, ofport: int) -> None:
        self.done.append(f"-port {self.ports.pop(ofport).ifindex}")

    def filter_place(self, ifindex: int) -> str:
        return "tcx" if ifindex in self.linked else "clsact"

    def set_vlans(self, untagged: dict[int, int]) -> None:
        pass

    def find_rates(self, now: float) -> None:
        pass

    def add_device(self, device: WindowDevice) -> None:
        if device.ifindex in self.broken:
            raise BpfError("no such device")
        self.update_device(device)
        self.done.append(f"+device {device.ifindex}")

    def update_device(self, device: WindowDevice) -> None:
        self.devices[device.ifindex] = device

    def remove_device(self, ifindex: int) -> None:
        del self.devices[ifindex]
        self.done.append(f"-device {ifindex}")


class Server:
    """Nobody is connected."""

    def send_port_status(self, reason: int, port: BridgePort) -> None:
        pass

    def forget_port(self, port: int, now_ns: int) -> None:
        pass

    def set_port_settings(self, settings: Any) -> None:
        pass


def tunnels(*numbers: int) -> BridgeView:
    """A bridge with its own port and these tunnels, which have device 40."""
    devices = [WindowDevice(7, ("s1",), True, "local")]
    if len(numbers) > 1:
        devices.append(WindowDevice(40, tuple(f"vx{number}" for number in numbers), False, "shared"))
    alone = [replace(bridge_port(number), ifindex=40) for number in numbers] if len(numbers) == 1 else []
    return BridgeView("s1", 1, "netdev", tuple(alone), tuple(devices), ())


def test_programs_follow_ports_that_share_a_device():
    programs, first = Devices(), tunnels(1)
    made = BridgePorts("s1", first, programs, Server(), lambda: None)  # type: ignore[arg-type]
    made.update(first)
    assert programs.done == ["+port 40", "+device 7"]
    programs.done.clear()
    made.update(tunnels(1, 2))
    made.update(tunnels(1, 2, 3))
    assert programs.done == ["-port 40", "+device 40"], "a third one changes nothing"
    assert programs.devices[40].names == ("vx1", "vx2", "vx3")
    programs.done.clear()
    made.update(tunnels(3))
    assert programs.done == ["-device 40", "+port 40"]
    made.update(tunnels())
    assert (programs.ports, set(programs.devices)) == ({}, {7})


def test_a_bridge_that_is_deleted_is_waited_for(caplog):
    caplog.set_level("INFO")
    programs, first = Devices(), tunnels(1)
    made = BridgePorts("s1", first, programs, Server(), lambda: None)  # type: ignore[arg-type]
    made.update(first)
    programs.done.clear()
    caplog.clear()
    made.remove_all()
    made.remove_all()
    assert made.deleted and programs.done == ["-port 40", "-device 7"] and made.unwatched == []
    assert [each.message for each in caplog.records if "bridge" in each.message] == [
        "bridge s1 has been deleted: waiting until it is there again"
    ]
    programs.done.clear()
    assert made.update(first)
    assert not made.deleted and programs.done == ["+port 40", "+device 7"]


def test_ports_that_open_vswitch_cannot_police_are_logged_once(caplog):
    ports = (bridge_port(1), bridge_port(2), bridge_port(3))
    plain = BridgeView("s1", 1, "netdev", ports, (), ())
    programs = Devices()
    made = BridgePorts("s1", plain, programs, Server(), lambda: None)  # type: ignore[arg-type]
    made.update(plain)
    programs.linked.add(ports[1].ifindex)
    policed = replace(plain, policed=frozenset(port.ifindex for port in ports[:2]))
    for _ in range(2):
        made.update(policed)
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [f"port {ports[0].name}: {UNPOLICED}"]


def test_a_device_that_cannot_be_watched_is_logged_once_and_tried_again(caplog):
    programs, view = Devices(), tunnels()
    programs.broken.add(7)
    made = BridgePorts("s1", view, programs, Server(), lambda: None)  # type: ignore[arg-type]
    made.update(view)
    asyncio.run(made.retry_failed())
    assert [record.message for record in caplog.records] == ["port s1: not watched: no such device"]
    assert made.unwatched == [("s1", "no such device")]
    programs.broken.clear()
    asyncio.run(made.retry_failed())
    assert set(programs.devices) == {7}
    assert made.unwatched == []


@pytest.mark.parametrize(
    "error",
    [BpfError("no room"), OSError(24, "Too many open files"), UserError("far.bpf.o is missing", "install")],
)
def test_a_port_that_cannot_be_watched_stops_no_others(monkeypatch, error):
    programs, view = Devices(), BridgeView("s1", 1, "netdev", (bridge_port(1), bridge_port(2)), (), ())
    add = programs.add_port

    def failing(port: BridgePort) -> None:
        if port.ofport == 1:
            raise error
        add(port)

    monkeypatch.setattr(programs, "add_port", failing)
    made = BridgePorts("s1", view, programs, Server(), lambda: None)  # type: ignore[arg-type]
    made.update(view)
    assert set(programs.ports) == {2} and made.unwatched == [("s1-eth1", str(error))]


def test_controllers_are_told_that_a_port_has_gone_whatever_fails_meanwhile(monkeypatch):
    made, programs, server = running()
    remove = programs.remove_port

    def failing(ofport: int) -> None:
        remove(ofport)
        raise BpfError("no")

    monkeypatch.setattr(programs, "remove_port", failing)
    with pytest.raises(BpfError):
        made.update(far_view(1))
    assert server.told == [(ofp.OFPPR_DELETE, "s1-eth2")]
    assert not made.update(far_view(1))


def far_view(*numbers: int) -> BridgeView:
    return BridgeView("s1", 1, "netdev", tuple(bridge_port(number) for number in numbers), (), ())


def test_a_far_queue_comes_after_its_port_and_goes_before_it():
    programs, first = Devices(), far_view(1, 2)
    queue = FarQueue("s1-eth2", rate=1_000_000)
    made = BridgePorts("s1", first, programs, Server(), lambda: None, FarTable([queue]))  # type: ignore[arg-type]
    made.update(first)
    known = far_id(102)
    assert programs.done == ["+port 101", "+port 102", f"+port {known}"]
    shown = programs.ports[FAR | 2]
    assert (shown.name, shown.ifindex, shown.speed, shown.far) == ("s1-eth2@far", known, 10**9, queue)
    assert programs.ports[1].far is None
    programs.done.clear()
    # The port is another interface now.
    made.update(replace(first, ports=(bridge_port(1), replace(bridge_port(2), ifindex=202))))
    assert programs.done == [f"-port {known}", "-port 102", "+port 202", f"+port {far_id(202)}"]
    programs.done.clear()
    made.update(far_view(1))
    assert programs.done == [f"-port {far_id(202)}", "-port 202"]


def test_a_far_queue_has_no_qdisc_to_be_read(monkeypatch):
    programs, first, asked = Devices(), far_view(1), []
    monkeypatch.setattr(programs, "set_queue_limits", lambda *_: None, raising=False)
    monkeypatch.setattr(ports, "read_queue_limits", lambda indexes: asked.append(indexes) or {})
    table = SimpleNamespace(limits_changed=lambda: None)
    server: Any = Server()
    server.laws = server.queue_laws = table
    far = FarTable([FarQueue("s1-eth1")])
    made = BridgePorts("s1", first, programs, server, lambda: None, far)  # type: ignore[arg-type]
    made.update(first)
    asyncio.run(made.read_queue_limits())
    assert asked == [[101]] and len(programs.ports) == 2


class Statuses(Server):
    """What controllers are told of ports."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str]] = []
        self.laws = self.queue_laws = SimpleNamespace(limits_changed=lambda: None)

    def send_port_status(self, reason: int, port: BridgePort) -> None:
        self.told.append((reason, port.name))


class Governed(Devices):
    """Also with limits; the far queues of some interfaces cannot be started."""

    def add_port(self, port: BridgePort) -> None:
        if port.ifindex in self.broken:
            raise BpfError("no room")
        super().add_port(port)

    def update_port(self, port: BridgePort) -> None:
        self.ports[port.ofport] = port
        self.done.append(f"~port {port.ifindex}")


def running(*configured: FarQueue) -> tuple[BridgePorts, Governed, Statuses]:
    programs, server, first = Governed(), Statuses(), far_view(1, 2)
    made = BridgePorts("s1", first, programs, server, lambda: None, FarTable(configured))  # type: ignore[arg-type]
    made.update(first)
    programs.done.clear()
    server.told.clear()
    return made, programs, server


def test_a_controller_adds_changes_and_removes_far_queues_while_ports_run():
    made, programs, server = running(FarQueue("s1-eth1"))
    added, known = FarQueue("s1-eth2", rate=1_000_000), far_id(102)
    made.tell_far_queues({"s1-eth2": added})
    assert (programs.done, server.told) == ([f"+port {known}"], [(ofp.OFPPR_ADD, "s1-eth2@far")])
    assert made.far_queues() == [
        FarQueueState(FarQueue("s1-eth1"), False, 1),
        FarQueueState(added, True, 2),
    ]
    programs.done.clear()
    made.tell_far_queues({"s1-eth2": replace(added, rate=2_000_000)})
    assert programs.done == [f"~port {known}"] and len(server.told) == 1, "nothing that a port shows"
    assert programs.ports[FAR | 2].far == FarQueue("s1-eth2", rate=2_000_000)
    programs.done.clear()
    made.tell_far_queues({"s1-eth1": None})
    assert programs.done == [f"-port {known}", f"-port {far_id(101)}"]
    assert made.far_queues() == []
    made.tell_far_queues({})
    assert [each.queue.port for each in made.far_queues()] == ["s1-eth1"], "the configuration again"


def test_one_that_cannot_be_started_is_refused_with_all_others():
    made, programs, _ = running()
    programs.broken = {far_id(102)}
    made.tell_far_queues({"s1-eth1": FarQueue("s1-eth1")})
    with pytest.raises(OpenFlowError, match="s1-eth2: no room") as error:
        made.tell_far_queues({"s1-eth1": None, "s1-eth2": FarQueue("s1-eth2")})
    assert error.value.code == ERROR_FAR_QUEUE
    assert [each.queue.port for each in made.far_queues()] == ["s1-eth1"]
    assert made.unwatched == [], "it is not tried again"
    made.tell_far_queues({"eth9": FarQueue("eth9")})
    assert made.far_queues() == [], "its port may come later"


def test_a_leased_rate_is_in_force_until_it_ends():
    made, programs, server = running(FarQueue("s1-eth1", 1_000_000))
    made.lease_far_rates(RateLease(2, {"s1-eth1": 500_000}), 0)
    assert programs.ports[FAR | 1].far == FarQueue("s1-eth1", 1_000_000, leased=500_000)
    assert made.far_queues() == [FarQueueState(FarQueue("s1-eth1", 1_000_000), False, 1, 500_000)]
    made.expire_far_rates(2 * 10**9 - 1)
    assert programs.done == [f"~port {far_id(101)}"]
    made.expire_far_rates(2 * 10**9)
    assert programs.ports[FAR | 1].far == FarQueue("s1-eth1", 1_000_000) and server.told == []


def test_a_bridge_that_is_deleted_has_its_far_queues_when_it_is_there_again():
    made, programs, _ = running()
    made.remove_all()
    made.tell_far_queues({"s1-eth1": FarQueue("s1-eth1")})
    assert made.deleted and programs.ports == {}
    made.update(far_view(1))
    assert list(programs.ports) == [1, FAR | 1]


def test_the_limits_of_a_far_queue_are_those_of_its_line_and_of_the_link():
    (_, far) = with_far_queues([bridge_port(1)], {"s1-eth1": FarQueue("s1-eth1", share=0.5)})
    assert far_limits(far) == QueueLimits("far", 625_000, 62_500_000)
    unknown = far_limits(replace(far, speed=0))
    assert (unknown.limit, unknown.rate) == (0, 0) and "s1-eth1" in unknown.reason


def test_a_rate_that_nobody_says_is_the_one_that_was_found():
    (_, far) = with_far_queues([bridge_port(1)], {"s1-eth1": FarQueue("s1-eth1", share=0.5)})
    for silent in (replace(far, speed=0), replace(far, driver="veth")):
        assert known_line(silent) == 0 and not far_limits(silent).rate
        assert far_limits(silent, found=1_000_000) == QueueLimits("far", 5000, 500_000)
    assert far_limits(far, found=1_000_000) == far_limits(far), "the link says it"
    said = replace(far, driver="veth", far=FarQueue("s1-eth1", rate=2_000_000))
    assert known_line(said) == 2_000_000 and far_limits(said, found=1).rate == 1_960_000


def test_a_lease_counts_as_no_more_than_the_link():
    leased = FarQueue("s1-eth1", 20_000_000, 625_000, leased=500_000_000)
    (_, far) = with_far_queues([bridge_port(1)], {"s1-eth1": leased})
    link = bridge_port(1).speed // 8
    assert known_line(far) == link and far_limits(far).rate == int(0.98 * link)
    assert far_limits(replace(far, driver="veth")).rate == int(0.98 * 500_000_000), "its speed means nothing"


def test_far_queues_of_interfaces_that_are_no_ports_are_named():
    queues = [FarQueue("s1-eth1"), FarQueue("eth9")]
    assert without_port(queues, [bridge_port(1)]) == ["eth9"]
