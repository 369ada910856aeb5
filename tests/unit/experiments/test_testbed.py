"""Signals while a run builds, measures and removes its network."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairq_ryu.config import loader
from fairq_ryu.errors import UserError
from fairq_ryu.experiments import scenario, testbed
from fairq_ryu.experiments.testbed import Interrupted, Interrupts, config_files
from fairq_ryu.experiments.variants import Variant
from fairq_ryu.far_queue import FarQueue
from fairq_ryu.uplink import Member

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_interrupts_and_a_second_one_does_not_stop_the_clean_up(number: int) -> None:
    with pytest.raises(Interrupted), Interrupts():
        os.kill(os.getpid(), number)
    os.kill(os.getpid(), number)  # ends this process, unless it is ignored


def test_a_signal_is_delayed_until_the_end_of_a_protected_block() -> None:
    done = []
    with pytest.raises(Interrupted), Interrupts() as interrupts, interrupts.deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("all of it")
    assert done == ["all of it"]


def test_a_second_signal_ends_a_protected_block_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([10.0, 10.1, 10.0 + testbed.INSISTS_S])
    monkeypatch.setattr(testbed.time, "monotonic", lambda: next(times))
    done = []
    with pytest.raises(Interrupted), Interrupts() as interrupts, interrupts.deferred():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)  # the same one, to the group
        done.append("deferred")
        os.kill(os.getpid(), signal.SIGHUP)
        done.append("not reached")
    assert done == ["deferred"]


def test_a_second_signal_while_removing_ends_one_step_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bed = testbed.Testbed(scenario.load("incast"), Variant("bare", "bare"), Path(), None)
    closed = []

    def interrupted(_workers: object) -> None:
        raise Interrupted

    monkeypatch.setattr(testbed, "end_all", interrupted)
    monkeypatch.setattr(bed.tcp, "close", lambda: closed.append("tcp"))
    assert bed.stop() == ["Interrupted"]
    assert closed == ["tcp"]


def test_without_a_signal_everything_is_as_before() -> None:
    before = [signal.getsignal(number) for number in NUMBERS]
    with Interrupts():
        assert [signal.getsignal(number) for number in NUMBERS] != before
    assert [signal.getsignal(number) for number in NUMBERS] == before


@pytest.mark.parametrize("way", ["windows", "normal", "paths"])
def test_the_controller_is_told_the_way_of_the_scenario(way: str, tmp_path: Path) -> None:
    asked, given = config_files(scenario.load("incast", {"way": way}), tmp_path, tmp_path / "own.conf")
    assert loader.load([asked]).value("fairq_ryu", "way") == way
    assert given == tmp_path / "own.conf"  # later, so its settings are in force


def test_the_agent_is_told_of_a_bottleneck_that_it_cannot_see(tmp_path: Path) -> None:
    chosen = scenario.load("incast-tor", {"rate_mbit": "50", "buffer_bytes": "90000"})
    (asked,) = config_files(chosen, tmp_path, None)
    assert loader.load([asked]).far_queues() == (FarQueue("s1-eth1", 6_250_000, 90_000),)
    (asked,) = config_files(scenario.load("incast"), tmp_path, None)
    assert loader.load([asked]).far_queues() == ()


def test_a_shaped_port_is_governed_in_place_of_a_far_queue(tmp_path: Path) -> None:
    chosen = scenario.load("incast-tor", {"rate_mbit": "50", "receivers": "2"})
    assert chosen.governed_ports == {"s1": "s1-eth1@far", "s2": "s2-eth1@far"}
    shaped = scenario.load("incast-tor", {"rate_mbit": "50", "receivers": "2", "shaped": "0.9"})
    assert shaped.governed_ports == {"s1": "s1-eth2", "s2": "s2-eth2"}
    (asked,) = config_files(shaped, tmp_path, None)
    assert loader.load([asked]).far_queues() == () == loader.load([asked]).uplinks()
    assert scenario.load("incast").governed_ports == {}


def test_the_agents_of_several_receivers_behind_it_divide_an_uplink(tmp_path: Path) -> None:
    chosen = scenario.load("incast-tor", {"rate_mbit": "50", "receivers": "2"})
    (asked,) = config_files(chosen, tmp_path, None)
    (uplink,) = loader.load([asked]).uplinks()
    assert (uplink.rate, uplink.buffer) == (6_250_000, 125_000)
    assert uplink.members == (Member("s1", "s1-eth1"), Member("s2", "s2-eth1"))


def test_the_configuration_names_the_hosts_of_each_tenant(tmp_path: Path) -> None:
    chosen = scenario.load("tenants", {"senders": "4", "tenant_hosts": "[1, 3]", "tenant_weights": "[2, 5]"})
    assert chosen.tenants == {"tenant1": ("h1",), "tenant2": ("h2", "h3", "h4")}
    (asked,) = config_files(chosen, tmp_path, None)
    loader.load([asked])
    assert asked.read_text().splitlines()[-6:] == [
        "[tenant.tenant1]",
        "hosts = 10.0.0.1",
        "weight = 2",
        "[tenant.tenant2]",
        "hosts = 10.0.0.2 10.0.0.3 10.0.0.4",
        "weight = 5",
    ]
    (asked,) = config_files(scenario.load("short-beside-long"), tmp_path, None)
    loader.load([asked])
    assert asked.read_text().splitlines()[-5:] == [
        "[tenant.tenant1]",
        "hosts = 10.0.0.1 10.0.0.2",
        "weight = 1",
        "[tenants]",
        "dscp = 46:400",
    ]
    (asked,) = config_files(scenario.load("incast"), tmp_path, None)
    assert "tenant" not in asked.read_text()


def test_hosts_have_the_addresses_that_mininet_gives_them() -> None:
    from mininet.net import Mininet
    from mininet.util import ipAdd

    topo = testbed.make_topology(scenario.load("incast", {"senders": "12"}))
    given = [ipAdd(number, ipBaseNum=10 << 24, prefixLen=8) for number in range(1, 14)]
    assert [*testbed.addresses(topo).values()] == given
    assert [*testbed.addresses(topo)] == [*(f"h{number}" for number in range(1, 13)), "r"]
    assert Mininet.__init__.__defaults__ is not None and "10.0.0.0/8" in Mininet.__init__.__defaults__


@pytest.mark.parametrize(
    "settings",
    [{"way": "windows", "topology": "leafspine"}, {"way": "normal", "syn": "hold"}],
)
def test_a_way_that_the_scenario_cannot_have_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(UserError, match="way"):
        scenario.load("incast", settings)


def _has_become(child: subprocess.Popen[bytes], code: int) -> bool:
    """Whether the state of a child changes to this one within seconds; it is not reaped."""
    kinds = os.WSTOPPED | os.WCONTINUED | os.WEXITED | os.WNOHANG | os.WNOWAIT
    for _ in range(200):
        found = os.waitid(os.P_PID, child.pid, kinds)
        if found is not None and found.si_code == code:
            return True
        time.sleep(0.05)
    return False


def test_the_controller_is_stopped_and_goes_on_also_after_an_error(tmp_path: Path) -> None:
    bed = testbed.Testbed(scenario.load("incast", {}), Variant("fairq", "fairq"), tmp_path, None)
    with bed.controller_stopped():
        pass  # there is none yet
    with subprocess.Popen(["sleep", "60"]) as child:
        bed._controller = child
        try:
            with pytest.raises(ZeroDivisionError), bed.controller_stopped():
                assert _has_become(child, os.CLD_STOPPED)
                raise ZeroDivisionError
            assert _has_become(child, os.CLD_CONTINUED)
        finally:
            child.kill()
