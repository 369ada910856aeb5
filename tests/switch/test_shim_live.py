"""The hosts' own TCP with shims at their uplinks, through a bridge that loses and swaps segments, and with
offloads as they are.

Every byte comes. ``SHIM_CONNECTIONS`` sets the number of connections.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import select
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fairq_ryu.agent import shim, tcx
from fairq_ryu.agent.libbpf import load_library
from fairq_ryu.agent.shim import Shim
from fairq_ryu.agent.told_scale import MODES
from fairq_ryu.model import WindowKind, WindowRule
from tests.switch.rig import PATIENT, namespace, run
from tests.switch.test_offloads_live import checksum_errors
from tests.switch.test_real_hosts import CLIENT, SERVER, C, Hosts

CONNECTIONS = int(os.environ.get("SHIM_CONNECTIONS", "200"))
WORKERS = 24
LOST, SWAPPED = 0.005, 0.02
TCP_WINDOW_CLAMP = 10
PACKET_OUTGOING = 4
SCALES = range(15)


def relay(seed: int) -> None:
    """Pass frames on between p1 and p2; some are lost, and some overtaken by the next."""
    chance = random.Random(seed)
    ends = []
    for name in ("p1", "p2"):
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        end.bind((name, 3))
        end.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
        ends.append(end)
    late: dict[int, bytes] = {}
    while True:
        for end in select.select(ends, [], [], 0.01)[0] or ends:
            try:
                frame, about = end.recvfrom(65535, socket.MSG_DONTWAIT)
            except BlockingIOError:
                frame = b""
            number = ends.index(end)
            other = ends[1 - number]
            if frame and (about[2] == PACKET_OUTGOING or chance.random() < LOST):
                continue
            if frame and number not in late and chance.random() < SWAPPED:
                late[number] = frame
                continue
            for each in (frame, late.pop(number, b"")):
                if each:
                    other.send(each)


class ShimHosts(Hosts):
    """With shims at their uplinks, behind ports that have the programs of an agent."""

    def __init__(self) -> None:
        super().__init__()
        self.shims: dict[str, Shim] = {}

    def start(self, mode: str, unify: int | None, use_tcx: bool = True) -> None:
        for n, address in ((1, CLIENT), (2, SERVER)):
            self.enter(address)
            run("sysctl", "-qw", "net.ipv4.tcp_rmem=4096 131072 1073741824")
            self.shims[address] = Shim(f"p{n}h", mode, unify, grace=0, use_tcx=use_tcx)
            self.enter()
        window = self.programs.window
        for port in self.ports.values():
            window.remove_port(port.ifindex)
            window.set_told(port.ifindex, MODES.get(mode, 0))
            window.add_port(port.ifindex)
        for number in (1, 2):
            self.programs.install_rule(number, WindowRule(WindowKind.WINDOW, 60_000), 2**63, number)

    def with_scale(self, address: str, scale: int) -> socket.socket:
        made = self.socket(address)
        made.settimeout(120)
        made.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, 1 << 15 + scale)
        return made

    def close(self) -> None:
        for each in self.shims.values():
            each.close()
        super().close()


class LossyHosts(ShimHosts):
    """The bridge is a relay that loses and swaps segments."""

    def make_bridge(self) -> None:
        """Made in :meth:`start`."""

    def connect_port(self, name: str) -> None:
        run("ethtool", "-K", f"{name}h", "tso", "off", "gso", "off", "gro", "off", "tx", "off")

    def start(self, mode: str, unify: int | None, use_tcx: bool = True) -> None:
        super().start(mode, unify, use_tcx)
        self.relay = multiprocessing.get_context("fork").Process(target=relay, args=(1,), daemon=True)
        self.relay.start()

    def close(self) -> None:
        self.relay.kill()
        self.relay.join()
        super().close()


class OffloadingHosts(ShimHosts):
    """The hosts leave segments and checksums to their devices, as real ones do; the ports of the bridge can
    do neither, so the kernel makes both there, of what the programs have left.
    """

    def connect_port(self, name: str) -> None:
        super().connect_port(name)
        run("ethtool", "-K", name, "tso", "off", "gso", "off", "tx", "off")


@pytest.fixture
def lossy(own_namespace: None) -> Iterator[LossyHosts]:
    with namespace():
        found = LossyHosts()
        try:
            yield found
        finally:
            found.close()


def serve(listener: socket.socket) -> None:
    while True:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(peer,), daemon=True).start()


def answer(peer: socket.socket) -> None:
    with peer:
        while data := peer.recv(65536):
            peer.sendall(data)


def exchange(hosts: ShimHosts, chance: random.Random, wrong: list[Any]) -> None:
    """A connection with two random scales: what comes back is what was sent."""
    scales = chance.choice(SCALES), chance.choice(SCALES)
    data = chance.randbytes(chance.randrange(1, 60_000))
    client = hosts.with_scale(CLIENT, scales[0])
    try:
        client.bind((CLIENT, next(hosts.sports)))
        client.connect((SERVER, 100 + scales[1]))
        sender = threading.Thread(target=client.sendall, args=(data,), daemon=True)
        sender.start()
        back = bytearray()
        while len(back) < len(data) and (part := client.recv(65536)):
            back += part
        if back != data:
            wrong.append((scales, len(data), len(back)))
    except OSError as error:
        wrong.append((scales, error))
    finally:
        client.close()


def exchange_many(hosts: ShimHosts, number: int) -> list[Any]:
    """Connections with random scales, some at a time. Returns those that went wrong."""
    wrong: list[Any] = []
    listeners = [hosts.with_scale(SERVER, scale) for scale in SCALES]
    for scale, listener in enumerate(listeners):
        listener.bind((SERVER, 100 + scale))
        listener.listen(256)
        listener.settimeout(None)
        threading.Thread(target=serve, args=(listener,), daemon=True).start()

    def work(worker: int) -> None:
        chance = random.Random(worker)
        for _ in range(worker, number, WORKERS):
            exchange(hosts, chance, wrong)

    workers = [threading.Thread(target=work, args=(each,)) for each in range(WORKERS)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    for listener in listeners:
        listener.close()
    return wrong


@pytest.mark.parametrize(
    ("mode", "unify", "use_tcx"),
    [
        ("reserved", None, True),
        ("reserved", 7, True),
        ("reserved", 7, False),
        ("reserved3", 7, True),
        ("window12", None, True),
        ("off", 4, True),
    ],
)
def test_every_byte_comes_with_any_scales(
    lossy: LossyHosts, mode: str, unify: int | None, use_tcx: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At tcx, and as filters of clsact (before Linux 6.6 always), whose lease nobody renews here."""
    monkeypatch.setattr(shim, "_LEASE_S", 3600)
    lossy.start(mode, unify, use_tcx)
    lossy.enter(CLIENT)
    filters = run("tc", "filter", "show", "dev", "p1h", "egress")
    lossy.enter()
    assert ("fq_shim_leaves" in filters) != (use_tcx and tcx.is_available(load_library()))
    assert exchange_many(lossy, CONNECTIONS) == []
    counts = [each.counts() for each in lossy.shims.values()]
    largest = max(each.wscale for flow in lossy.flows() for each in flow.dir if each.flags & C["FQ_KNOWN"])
    assert largest == (14 if unify is None else unify)
    for each in counts:
        assert (each["told"] > CONNECTIONS) == (mode != "off")
        assert (each["converted"] > CONNECTIONS) == (unify is not None)
        assert each["unknown"] == 0
    for port in lossy.ports.values():
        state = lossy.programs.port_state(port)
        assert state.rewritten > 0 and state.scale_wrong == 0, "every segment told what its handshake has"


@pytest.mark.parametrize("mode", ["off", "reserved"])
def test_every_byte_comes_with_one_scale_of_the_switch(
    own_namespace: None, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bridge unifies; with shims, which tell the scale of the host."""
    limits = replace(PATIENT, unify_scale=5, unify_grace=0)
    monkeypatch.setattr("tests.switch.test_real_hosts.PATIENT", limits)
    with namespace():
        hosts = LossyHosts()
        try:
            hosts.start(mode, None if mode != "off" else 14)
            assert exchange_many(hosts, CONNECTIONS) == []
            ends = [each for flow in hosts.flows() for each in flow.dir if each.flags & C["FQ_KNOWN"]]
            assert max(each.wscale for each in ends) == 5
            assert max(each.own_scale for each in ends) == 15, "14, + 1"
            assert [hosts.programs.port_state(port).scale_wrong for port in hosts.ports.values()] == [0, 0]
        finally:
            hosts.close()


@pytest.mark.parametrize(
    ("mode", "unify"), [("reserved", None), ("reserved3", 7), ("window12", None), ("off", 4)]
)
def test_checksums_that_the_device_finishes_are_right(
    own_namespace: None, mode: str, unify: int | None
) -> None:
    with namespace():
        hosts = OffloadingHosts()
        try:
            hosts.start(mode, unify)
            assert exchange_many(hosts, CONNECTIONS) == []
            assert [checksum_errors(hosts, each) for each in (CLIENT, SERVER)] == [0, 0]
            for each in hosts.shims.values():
                counts = each.counts()
                assert (counts["told"] > 0, counts["converted"] > 0) == (mode != "off", unify is not None)
            assert all(hosts.programs.port_state(port).rewritten > 0 for port in hosts.ports.values())
        finally:
            hosts.close()


@pytest.mark.parametrize("unify", [14, None], ids=["off", "reserved"])
def test_checksums_of_windows_that_the_switch_converts_are_right(
    own_namespace: None, unify: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bridge unifies segments whose checksums are not complete yet, and large ones that leave as many."""
    limits = replace(PATIENT, unify_scale=5, unify_grace=0)
    monkeypatch.setattr("tests.switch.test_real_hosts.PATIENT", limits)
    with namespace():
        hosts = OffloadingHosts()
        try:
            hosts.start("off" if unify is not None else "reserved", unify)
            assert exchange_many(hosts, CONNECTIONS) == []
            assert [checksum_errors(hosts, each) for each in (CLIENT, SERVER)] == [0, 0]
            ends = [each for flow in hosts.flows() for each in flow.dir if each.flags & C["FQ_KNOWN"]]
            assert max(each.wscale for each in ends) == 5
            assert max(each.own_scale for each in ends) == 15, "14, + 1"
            assert all(hosts.programs.port_state(port).rewritten > 0 for port in hosts.ports.values())
        finally:
            hosts.close()
