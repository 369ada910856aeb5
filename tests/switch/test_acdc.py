"""The law acdc in the kernel: what is counted, which windows ACKs get, and what becomes of the ECN flags."""

from __future__ import annotations

import time
from collections.abc import Iterator
from ctypes import c_uint32
from dataclasses import replace
from typing import Any

import pytest

from fairq_ryu.agent import layout
from fairq_ryu.agent.law_table import parameters
from fairq_ryu.agent.programs.flow_key import flow_key
from fairq_ryu.agent.qdisc import QueueLimits
from fairq_ryu.law_spec import LawSpec
from fairq_ryu.laws.acdc import AcdcLaw
from fairq_ryu.laws.fairq import FairQLaw
from fairq_ryu.model import WindowKind
from tests.switch import packets
from tests.switch.rig import Connection, Switch

PORT = 2
LIMITS = QueueLimits("htb", 125_000, 25_000_000)
# No round trip is longer, however slow the machine: of a sender that is far away more is under way than seen.
SPEC = AcdcLaw(mark_packets=20, weight_shift=4, base_rtt_us=1_000_000)
K = 20 * 1514
MSS = 1460
ONE = 1 << 20
IPV6 = {"client": "fd00::1", "server": "fd00::2"}
FAMILIES: list[dict[str, str]] = [{}, IPV6]
ECE, CWR = 0x40, 0x80


def install(switch: Switch, spec: LawSpec = SPEC, lease: float = 3600) -> None:
    expires = time.monotonic_ns() + int(lease * 1e9)
    switch.datapath.install_law(PORT, PORT, parameters(spec, LIMITS), expires)
    switch.rule(PORT, PORT, WindowKind.LAW, lease)


def backlog(switch: Switch, size: int) -> None:
    """The queue of the port is so long."""
    ifindex = switch.ports[PORT].ifindex
    slot = switch.datapath.window.slots[ifindex]
    found = layout.fq_queue(backlog=size, last_ns=time.monotonic_ns() + 3600 * 10**9, slot=slot)
    switch.datapath.queues.queues.set(c_uint32(ifindex), found)


@pytest.fixture(autouse=True)
def no_law(switch: Switch) -> Iterator[None]:
    yield
    switch.datapath.remove_law(PORT)
    slot = switch.datapath.window.slots[switch.ports[PORT].ifindex]
    key = c_uint32(switch.ports[PORT].ifindex)
    switch.datapath.queues.queues.set(key, layout.fq_queue(slot=slot))


def known(switch: Switch, flow: Connection) -> Any:
    return switch.datapath.window.law_flows.get(flow_key(flow.ack_key, directed=True))


def state(switch: Switch, flow: Connection) -> Any:
    return layout.own("acdc_flow", known(switch, flow))


def flags(frame: bytes) -> int:
    found = packets.view(frame)
    assert found is not None
    return frame[found.tcp + 13]


def without_flags(frame: bytes) -> bytes:
    """The frame without its TCP flags, window and checksum."""
    found = packets.view(frame)
    assert found is not None
    return frame[: found.tcp + 13] + frame[found.tcp + 18 :]


class Bulk:
    """A connection whose client sends window after window."""

    def __init__(self, switch: Switch, ecn: bool = False, **shape: Any) -> None:
        self.switch, self.next = switch, 0
        self.flow = Connection(switch, server_scale=0, **shape)
        self.flow.syn(flags="SEC" if ecn else "S")
        self.flow.syn_ack(flags="SAE" if ecn else "SA")

    def send(self, count: int, again: bool = False) -> list[bytes]:
        """``again``: the last segments once more."""
        start = self.next - count * MSS if again else self.next
        seqs = [self.flow.client_isn + 1 + start + MSS * number for number in range(count)]
        if not again:
            self.next += count * MSS
        return [self.flow.data(MSS, seq=seq) for seq in seqs]

    def ack(self, window: int = 65_535, flags: str = "A", behind: int = 0) -> bytes:
        """Everything is acknowledged, but the last ``behind`` segments."""
        number = self.flow.client_isn + 1 + self.next - behind * MSS
        before = self.flow.from_server(window=window, flags=flags, ack=number).frame()
        after = self.switch.leave(1, before)
        assert packets.residue(after) == packets.residue(before) == 0
        assert without_flags(after) == without_flags(before)
        return after

    def window(self, **what: Any) -> int:
        return packets.window(self.ack(**what))


@pytest.mark.parametrize("shape", FAMILIES, ids=["IPv4", "IPv6"])
def test_the_window_begins_with_ten_segments_doubles_and_is_halved_by_the_first_marks(
    switch: Switch, shape: dict[str, str]
) -> None:
    install(switch)
    bulk = Bulk(switch, **shape)
    assert bulk.window() == 10 * MSS
    bulk.send(10)
    assert bulk.window() == 20 * MSS
    backlog(switch, K)
    bulk.send(20)
    window = bulk.window()
    found = state(switch, bulk.flow)
    # Alpha began at 1, and was 15/16 before a window all of whose data was marked.
    assert found.alpha == pytest.approx(ONE * ((15 / 16) ** 2 + 1 / 16), abs=2)
    assert window == pytest.approx(20 * MSS * (1 - found.alpha / ONE / 2), abs=2)
    assert (found.sent, found.marks, found.losses) == (30 * MSS, 20 * MSS, 0)
    assert switch.datapath.law_state(PORT).updates == 1


def test_alpha_follows_the_fraction_of_the_marked_bytes(switch: Switch) -> None:
    install(switch)
    bulk = Bulk(switch)
    bulk.window()
    expected = 1.0
    for marked in (0, 3, 8, 1, 0, 0, 2, 5, 0, 4):
        backlog(switch, K)
        bulk.send(marked)
        backlog(switch, K - 1514)
        bulk.send(8 - marked)
        bulk.ack()
        expected = expected * 15 / 16 + marked / 8 / 16
        assert state(switch, bulk.flow).alpha == pytest.approx(expected * ONE, abs=40)


def test_data_is_marked_if_the_queue_is_longer_with_it_than_the_threshold(switch: Switch) -> None:
    install(switch)
    bulk = Bulk(switch)
    backlog(switch, K - MSS - 54)
    bulk.send(1)
    assert state(switch, bulk.flow).marks == 0
    backlog(switch, K - MSS - 53)
    bulk.send(1)
    assert state(switch, bulk.flow).marks == MSS


def test_a_segment_that_is_sent_again_halves_the_window(switch: Switch) -> None:
    install(switch)
    bulk = Bulk(switch)
    bulk.window()
    for _ in range(60):
        bulk.send(1)
        bulk.ack()
    assert state(switch, bulk.flow).alpha < 0.03 * ONE
    bulk.send(10)
    bulk.send(1, again=True)
    before = state(switch, bulk.flow).window
    assert bulk.window() == before - before // 2
    assert state(switch, bulk.flow).losses == 1


def test_a_receiver_s_smaller_window_stays(switch: Switch) -> None:
    install(switch)
    bulk = Bulk(switch)
    assert bulk.window(window=3000) == 3000


def test_the_window_is_written_with_its_scale_and_never_below_a_segment(switch: Switch) -> None:
    install(switch, replace(SPEC, floor_segments=1))
    flow = Connection(switch, server_scale=9).open()
    flow.data(MSS)
    assert flow.granted() == -(-10 * MSS // 512)
    backlog(switch, K)
    for number in range(1, 40):
        flow.data(MSS, seq=flow.client_isn + 1 + MSS * number)
        window = packets.window(flow.ack(ack=flow.client_isn + 1 + MSS * (number + 1)))
    assert window == -(-MSS // 512)


def test_marks_reduce_the_window_once_in_a_window_of_data(switch: Switch) -> None:
    install(switch)
    bulk = Bulk(switch)
    bulk.window()
    backlog(switch, K)
    reductions = []
    bulk.send(10)
    for behind, more in ((5, 2), (5, 0), (0, 1), (0, 0)):
        bulk.ack(behind=behind)
        reductions.append(known(switch, bulk.flow).reductions)
        bulk.send(more)
    # The second ACK is still of the first ten segments; the third meets no new mark, the fourth meets one.
    assert reductions == [1, 1, 1, 2]


def test_the_smaller_mss_of_both_ends_counts(switch: Switch) -> None:
    install(switch)
    bulk = Bulk(switch, client_mss=536)
    assert bulk.window() == 10 * 536
    backlog(switch, K - 3 * 536)
    bulk.flow.data(3 * 536)  # several segments in one frame, of which the last is above the threshold
    assert state(switch, bulk.flow).marks == 536


def test_the_window_is_not_below_the_floor(switch: Switch) -> None:
    install(switch, replace(SPEC, floor_segments=3))
    bulk = Bulk(switch)
    backlog(switch, K)
    for _ in range(20):
        bulk.send(1)
        window = bulk.window()
    assert window == state(switch, bulk.flow).window == 3 * MSS


def test_data_that_leaves_by_a_port_with_another_law_is_not_counted(switch: Switch) -> None:
    install(switch)
    expires = time.monotonic_ns() + 3600 * 10**9
    switch.datapath.install_law(1, 1, parameters(FairQLaw(), LIMITS), expires)
    try:
        bulk = Bulk(switch)
        bulk.send(1)
        switch.leave(1, bulk.flow.from_server(payload=b"x" * MSS))
        assert known(switch, bulk.flow) is not None
        answers = flow_key(bulk.flow.data_key, directed=True)
        assert switch.datapath.window.law_flows.get(answers) is None
    finally:
        switch.datapath.remove_law(1)


def test_a_new_connection_of_the_same_ports_begins_anew(switch: Switch) -> None:
    install(switch)
    bulk = Bulk(switch)
    backlog(switch, K)
    for _ in range(6):
        bulk.send(4)
        low = bulk.window()
    assert low < 10 * MSS
    bulk.flow.data(0, flags="RA", seq=bulk.flow.client_isn + 1 + bulk.next)
    backlog(switch, 0)
    again = Bulk(switch, sport=bulk.flow.sport, client_isn=77_000, server_isn=99_000)
    again.send(1)
    assert again.window() == 10 * MSS


def test_a_law_without_a_living_lease_and_another_law_count_nothing(switch: Switch) -> None:
    install(switch, lease=-1)
    bulk = Bulk(switch, ecn=True)
    bulk.send(3)
    after = bulk.ack(flags="AE")
    assert (packets.window(after), flags(after) & ECE) == (65_535, ECE)
    switch.datapath.remove_law(PORT)
    install(switch, FairQLaw())
    bulk.send(3)
    assert flags(bulk.ack(flags="AE")) & ECE
    assert known(switch, bulk.flow) is None
    assert switch.datapath.window._config.get(c_uint32(0)).flow_laws == 0


def test_a_flow_of_another_kind_of_law_begins_anew(switch: Switch) -> None:
    install(switch)
    bulk = Bulk(switch)
    bulk.send(3)
    before = known(switch, bulk.flow)
    assert (before.kind, state(switch, bulk.flow).sent) == (AcdcLaw.kind, 3 * MSS)
    before.kind += 1
    switch.datapath.window.law_flows.set(flow_key(bulk.flow.ack_key, directed=True), before)
    bulk.send(1)
    assert (known(switch, bulk.flow).kind, state(switch, bulk.flow).sent) == (AcdcLaw.kind, MSS)


def test_only_a_switch_with_such_a_law_looks_for_it(switch: Switch) -> None:
    def asked() -> int:
        return int(switch.datapath.window._config.get(c_uint32(0)).flow_laws)

    install(switch)
    assert asked() == 1
    install(switch)
    assert asked() == 1
    install(switch, FairQLaw())
    assert asked() == 0
    install(switch)
    switch.datapath.remove_law(PORT)
    assert asked() == 0


# The echo of marks that others have made


@pytest.mark.parametrize("shape", FAMILIES, ids=["IPv4", "IPv6"])
def test_the_echo_is_taken_out_counted_and_answered(switch: Switch, shape: dict[str, str]) -> None:
    install(switch)
    bulk = Bulk(switch, ecn=True, **shape)
    bulk.window()
    bulk.send(10)
    after = bulk.ack(flags="AE")
    assert flags(after) == 0x10
    found = known(switch, bulk.flow)
    assert (found.echoes, found.reductions) == (1, 1)
    assert state(switch, bulk.flow).alpha == ONE
    assert packets.window(after) == 5 * MSS
    answered, *others = bulk.send(3)
    assert flags(answered) == 0x10 | CWR and packets.residue(answered) == 0
    assert [flags(frame) for frame in others] == [0x10, 0x10]
    assert flags(bulk.ack()) == 0x10


def test_the_echo_is_taken_out_of_an_ack_whose_window_is_low_already(switch: Switch) -> None:
    install(switch)
    bulk = Bulk(switch, ecn=True)
    bulk.send(10)
    after = bulk.ack(flags="AE", window=2000)
    assert (flags(after), packets.window(after)) == (0x10, 2000)


def test_a_repeated_segment_does_not_answer_an_echo(switch: Switch) -> None:
    """RFC 3168 section 6.1.2: CWR is in new data."""
    install(switch)
    bulk = Bulk(switch, ecn=True)
    bulk.send(10)
    bulk.ack(flags="AE", behind=5)
    (again,) = bulk.send(1, again=True)
    (new,) = bulk.send(1)
    assert (flags(again), flags(new)) == (0x10, 0x10 | CWR)


@pytest.mark.parametrize("answer", ["SA", "SAC", "SACE"], ids=["none", "AccECN", "echoed"])
def test_the_flags_of_connections_without_ecn_and_with_accecn_are_left_alone(
    switch: Switch, answer: str
) -> None:
    install(switch)
    bulk = Bulk(switch)
    flow = Connection(switch, server_scale=0)
    flow.syn(flags="SEC")
    flow.syn_ack(flags=answer)
    bulk.flow = flow
    bulk.send(10)
    assert flags(bulk.ack(flags="AEC")) == 0x10 | ECE | CWR
    assert [flags(frame) for frame in bulk.send(2)] == [0x10, 0x10]
    assert known(switch, flow).echoes == 0


@pytest.mark.parametrize("shape", FAMILIES, ids=["IPv4", "IPv6"])
def test_the_flags_of_a_handshake_are_left_alone(switch: Switch, shape: dict[str, str]) -> None:
    install(switch)
    flow = Connection(switch, server_scale=0, **shape)
    syn = flow.from_client(seq=flow.client_isn, ack=0, flags="SEC", options=packets.syn_options(1460, 7))
    assert switch.leave(PORT, syn) == syn.frame()
    answers = [flow.syn_ack(flags="SAE") for _ in range(2)]
    assert [flags(answer) for answer in answers] == [0x12 | ECE] * 2
    assert packets.window(answers[0]) == 10 * MSS


def test_an_observed_port_changes_nothing_but_counts(switch: Switch) -> None:
    switch.datapath.observe(PORT, True)
    install(switch)
    bulk = Bulk(switch, ecn=True)
    bulk.send(10)
    after = bulk.ack(flags="AE")
    assert (flags(after), packets.window(after)) == (0x10 | ECE, 65_535)
    assert flags(bulk.send(1)[0]) == 0x10
    assert state(switch, bulk.flow).window == 5 * MSS
    assert switch.state(PORT).would_lower > 0
