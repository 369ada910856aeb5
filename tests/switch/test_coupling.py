"""Coupled connections with real TCP: hosts of tenants, a bottleneck, and a delay."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

from fairq_ryu.errors import UserError
from fairq_ryu.experiments.hostcc import layout
from fairq_ryu.experiments.hostcc.controls import offered, refusal
from fairq_ryu.experiments.hostcc.coupling import Coupling, Group, Membership, cookie
from fairq_ryu.experiments.hostcc.hosts import in_use
from fairq_ryu.experiments.hostcc.registered import SharedControl
from mininet_topos.patience import patient
from tests.support.coupled_network import MSS, CoupledNetwork, Flow, Namespace, jain
from tests.support.documents import ROOT
from tests.support.lab import until

RATE_MBIT, RTT_MS = 8.0, 40.0
BUFFER = 40_000  # bytes, what drains within RTT_MS
ROOM = RATE_MBIT * 1e6 / 8 * RTT_MS / 1e3 / MSS + BUFFER / MSS  # segments: what fits into path and buffer
CONTROLS = ["ctrl_reno", "ctrl_cubic"]


@pytest.fixture(autouse=True)
def able(machine: str) -> None:
    if machine:
        pytest.fail(f"these tests need {machine}", pytrace=False)
    why = refusal()
    if why is not None:
        pytest.skip(str(why))


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def network(stack: contextlib.ExitStack) -> CoupledNetwork:
    return CoupledNetwork(stack, {"h1": RTT_MS, "h2": RTT_MS}, {"r1": 0, "r2": 0}, RATE_MBIT, BUFFER)


def coupled(
    stack: contextlib.ExitStack, network: CoupledNetwork, control: str = "ctrl_reno", **members: Membership
) -> Coupling:
    """Load a control and tell it of hosts; those without a membership are tenants by their name."""
    loaded = SharedControl(control)
    stack.callback(loaded.close)
    for name in ("h1", "h2"):
        loaded.coupling.enter(cookie(network.hosts[name].pid), members.get(name, Membership(name)))
    return loaded.coupling


def test_a_control_of_another_version_is_not_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its groups have another size: the kernel would write beyond what is read."""
    with contextlib.ExitStack() as stack:
        stack.callback(SharedControl("ctrl_reno").close)
        stack.callback(SharedControl("ctrl_reno").close)

        class Smaller(ctypes.Structure):
            _fields_ = (("group", ctypes.c_uint64),)

        monkeypatch.setattr(layout, "LockedGroup", Smaller)
        with pytest.raises(UserError, match="another version") as error:
            SharedControl("ctrl_reno")
        assert "fairq host" in error.value.remedy
    assert until(lambda: "ctrl_reno" not in offered())


def only(coupling: Coupling, tenant: str) -> Group:
    (group,) = coupling.groups(tenant)
    return group


def flows(stack: contextlib.ExitStack, network: CoupledNetwork, number: int, *args: str) -> list[Flow]:
    made = [network.flow(*args) for _ in range(number)]
    for flow in made:
        stack.callback(flow.stop)
    return made


@pytest.mark.parametrize("control", CONTROLS)
def test_a_group_of_four_has_the_window_of_one(
    stack: contextlib.ExitStack, network: CoupledNetwork, control: str
) -> None:
    """Its four windows together are the group's, and each is the same share."""
    coupling = coupled(stack, network, control)
    found = flows(stack, network, 4, "h1", "r1", control)
    assert until(lambda: only(coupling, "h1").cuts >= 2, 30)
    for _ in range(20):
        time.sleep(0.05)
        group = only(coupling, "h1")
        assert group.flows == 4 and group.window <= ROOM * 1.5
    received = [flow.received for flow in found]
    time.sleep(3)
    rates = [flow.received - before for flow, before in zip(found, received, strict=True)]
    assert max(rates) < 2 * min(rates)


def test_four_flows_beside_one_are_as_one(stack: contextlib.ExitStack, network: CoupledNetwork) -> None:
    """Two tenants, of which one has four flows: uncoupled it has most of the link, coupled the half."""
    coupled(stack, network)
    fairness = {}
    for control in ("reno", "ctrl_reno"):
        with contextlib.ExitStack() as inner:
            one = flows(inner, network, 1, "h1", "r1", control)
            four = flows(inner, network, 4, "h2", "r1", control)
            time.sleep(3)
            before = [sum(flow.received for flow in tenant) for tenant in (one, four)]
            time.sleep(15)
            after = [sum(flow.received for flow in tenant) for tenant in (one, four)]
            rates = [late - early for late, early in zip(after, before, strict=True)]
            fairness[control] = jain(rates), rates[1] / rates[0]
    assert fairness["ctrl_reno"][0] > fairness["reno"][0]
    assert fairness["ctrl_reno"][1] < fairness["reno"][1]


def test_a_loss_event_is_one_cut(stack: contextlib.ExitStack, network: CoupledNetwork) -> None:
    """Between two cuts, a group of flows that lose together comes back to where it lost, as one flow does."""
    coupling = coupled(stack, network)
    flows(stack, network, 4, "h1", "r1", "ctrl_reno")
    assert until(lambda: only(coupling, "h1").cuts >= 1, 30)
    time.sleep(3)
    windows, begun = [], time.monotonic()
    last = only(coupling, "h1")
    while time.monotonic() - begun < 15:
        time.sleep(0.005)
        group = only(coupling, "h1")
        if group.cuts != last.cuts:
            # The group's window itself: halved once, not once for each flow that has lost.
            windows.append(group.window / last.window)
            assert group.cuts == last.cuts + 1
        last = group
    assert windows and all(share > 0.45 for share in windows)


def test_a_newcomer_takes_its_share_without_slow_start(
    stack: contextlib.ExitStack, network: CoupledNetwork
) -> None:
    coupling = coupled(stack, network)
    (old,) = flows(stack, network, 1, "h1", "r1", "ctrl_reno")
    assert until(lambda: only(coupling, "h1").cuts >= 2, 30)
    assert until(lambda: 0.6 * ROOM < only(coupling, "h1").window < 0.8 * ROOM, 30)
    before, cuts = only(coupling, "h1").window, only(coupling, "h1").cuts
    (new,) = flows(stack, network, 1, "h1", "r1", "ctrl_reno")
    first = new.window()
    assert first > 10 and abs(first - before / 2) <= before / 10 + 1
    assert until(lambda: abs(old.window() - new.window()) <= 2, 2)
    assert only(coupling, "h1").cuts == cuts, "it was a burst"


def test_who_leaves_leaves_its_part(stack: contextlib.ExitStack, network: CoupledNetwork) -> None:
    coupling = coupled(stack, network)
    one, other = flows(stack, network, 2, "h1", "r1", "ctrl_reno")
    assert until(lambda: only(coupling, "h1").cuts >= 1 and one.window() > 10, 30)
    other.stop()
    assert until(lambda: only(coupling, "h1").flows == 1)
    assert until(lambda: one.window() >= 0.9 * only(coupling, "h1").window, 5)


def test_priorities_by_port(stack: contextlib.ExitStack, network: CoupledNetwork) -> None:
    """Three times the priority has three times the window."""
    with socket.socket() as chosen:
        chosen.bind(("", 0))
        port = chosen.getsockname()[1]
    coupling = coupled(stack, network, h1=Membership("h1", priority=100, ports={port: 300}))
    plain, favoured = network.flow("h1", "r1", "ctrl_reno"), network.flow("h1", "r1", "ctrl_reno", port=port)
    stack.callback(plain.stop)
    stack.callback(favoured.stop)
    assert until(lambda: only(coupling, "h1").cuts >= 2, 30)
    time.sleep(1)
    before = plain.received, favoured.received
    time.sleep(5)
    rates = plain.received - before[0], favoured.received - before[1]
    assert 2 < rates[1] / rates[0] < 4.5


def test_tenants_and_destinations(stack: contextlib.ExitStack, network: CoupledNetwork) -> None:
    """Namespaces of one tenant are one group for a destination; with a shared bottleneck, for all."""
    coupling = coupled(stack, network, h1=Membership("t"), h2=Membership("t"))
    for src in ("h1", "h2"):
        flows(stack, network, 1, src, "r1", "ctrl_reno")
    flows(stack, network, 1, "h1", "r2", "ctrl_reno")
    assert sorted((str(group.destination), group.flows) for group in coupling.groups("t")) == [
        (network.addresses["r1"], 2),
        (network.addresses["r2"], 1),
    ]
    coupling.enter(cookie(network.hosts["h1"].pid), Membership("u", shared=True))
    for dst in ("r1", "r2"):
        flows(stack, network, 1, "h1", dst, "ctrl_reno")
    assert [(group.destination, group.flows) for group in coupling.groups("u")] == [(None, 2)]


def test_an_application_limited_flow_leaves_the_rest(
    stack: contextlib.ExitStack, network: CoupledNetwork
) -> None:
    coupling = coupled(stack, network)
    (busy,) = flows(stack, network, 1, "h1", "r1", "ctrl_reno")
    quiet = [network.flow("h1", "r1", "ctrl_reno", pause=0.02) for _ in range(3)]
    for flow in quiet:
        stack.callback(flow.stop)
    assert until(lambda: only(coupling, "h1").cuts >= 1, 30)

    def divided() -> bool:
        group = only(coupling, "h1")
        return busy.window() > 0.6 * group.window > 18 and all(flow.window() < 12 for flow in quiet)

    assert until(divided, 20)
    assert only(coupling, "h1").flows == 4


def test_a_flow_of_small_messages_keeps_an_initial_window(stack: contextlib.ExitStack) -> None:
    near = CoupledNetwork(stack, {"h1": 0, "h2": 0}, {"r1": 0}, RATE_MBIT, BUFFER)
    coupled(stack, near)
    flow = near.flow("h1", "r1", "ctrl_reno", pause=0.05)
    stack.callback(flow.stop)
    assert until(lambda: flow.received >= 20 * MSS and flow.window() == 10, 10)


@contextlib.contextmanager
def serving(*words: str) -> Iterator[subprocess.Popen[str]]:
    """`fairq host`, after it has said that it serves."""
    program = f"import sys; from fairq_ryu.cli.main import main; sys.exit(main({['host', *words]}))"
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=PIPE, stderr=STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_loads_for_a_namespace_and_unloads(
    stack: contextlib.ExitStack, number: signal.Signals
) -> None:
    here = stack.enter_context(Namespace.made())
    there = stack.enter_context(Namespace.made())
    before, ours = in_use(here.pid), in_use(os.getpid())
    words = ("--cc", "ctrl_reno", "--tenant", "blue", "--netns", str(here.pid))
    with serving(*words) as first:
        assert "ctrl_reno: new connections" in said(first)
        assert in_use(here.pid) == "ctrl_reno" and in_use(os.getpid()) == ours
        # A second one for another namespace uses the registration of the first, and keeps it after its end.
        with serving(*words[:-1], str(there.pid)) as second:
            assert "ctrl_reno: new connections" in said(second)
            with serving(*words) as third:
                assert "another `fairq host` serves this network namespace" in said(third)
                assert third.wait(patient(10)) == 2
            first.send_signal(number)
            assert "ctrl_reno: ended" in said(first) and first.wait(patient(10)) == 0
            assert (in_use(here.pid), in_use(there.pid)) == (before, "ctrl_reno")
            assert "ctrl_reno" in offered()
            second.send_signal(number)
            assert second.wait(patient(10)) == 0
    assert in_use(there.pid) == before
    assert until(lambda: "ctrl_reno" not in offered())


def test_what_a_killed_command_has_left_is_taken_over(stack: contextlib.ExitStack) -> None:
    here = stack.enter_context(Namespace.made())
    words = ("--cc", "ctrl_cubic", "--tenant", "blue", "--netns", str(here.pid))
    with serving(*words) as first:
        said(first)
    assert until(lambda: "ctrl_cubic" not in offered())
    with serving(*words) as second:
        assert "ctrl_cubic: new connections" in said(second) and in_use(here.pid) == "ctrl_cubic"
        second.send_signal(signal.SIGTERM)
        assert second.wait(patient(10)) == 0
    # A namespace may have no other control than the machine allows.
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    assert in_use(here.pid) == ("cubic" if "cubic" in allowed else "reno")


def test_connections_outlive_the_control(stack: contextlib.ExitStack, network: CoupledNetwork) -> None:
    with contextlib.ExitStack() as inner:
        coupled(inner, network)
        (flow,) = flows(stack, network, 1, "h1", "r1", "ctrl_reno")
    assert "ctrl_reno" not in offered()
    before = flow.received
    assert until(lambda: flow.received > before + 100_000, 10)
