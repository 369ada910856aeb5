"""The scale shim of a host, packet in and packet out; and the bridge that reads what it tells."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from ctypes import c_uint32
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from bench.program_run import UNSPEC, LoadedProgram, Segments, can_sum
from fairq_ryu.agent import layout, shim
from fairq_ryu.agent.programs.program import UNIFY_GRACE_S
from fairq_ryu.agent.shim import Shim
from fairq_ryu.agent.told_scale import MODES
from fairq_ryu.model import WindowKind
from tests.switch import packets
from tests.switch.packets import NOP, QINQ, VLAN, Segment
from tests.switch.rig import LAST_SYN_S, Connection, Switch, make_port, run

C = layout.CONSTANTS
V6 = {"src": "2001:db8::1", "dst": "2001:db8::2"}
SHAPES: dict[str, dict[str, Any]] = {
    "ipv4": {},
    "ipv4 with options": {"ip_options": b"\x94\x04\0\0"},
    "ipv6": V6,
    "vlan": {"vlans": ((VLAN, 10),)},
    "ipv6, two tags": {**V6, "vlans": ((QINQ, 10), (VLAN, 20))},
}


def word(frame: bytes) -> tuple[int, int]:
    """The reserved bits and the window field."""
    found = packets.view(frame)
    assert found is not None
    return frame[found.tcp + 12] & 15, packets.window(frame)


def with_word(segment: Segment, reserved: int, window: int) -> bytes:
    """The segment, built from scratch with these reserved bits and this window."""
    return segment.but(reserved=reserved, window=window).frame()


@dataclass
class Host:
    """A host with a shim; its segments are those of port 40000 to port 80, and of port 80 to 40000 those of
    the other end.
    """

    mode: str = "reserved"
    unify: int | None = None
    grace: float = 0.0
    use_tcx: bool = True
    shape: dict[str, Any] = field(default_factory=dict)
    isn: int = 1000

    def __post_init__(self) -> None:
        self.port = make_port(9, "u9")
        self.shim = Shim("u9", self.mode, self.unify, self.grace, self.use_tcx)
        found = self.shim._object
        self.leaves = LoadedProgram(os.dup(found.program_fd("fq_shim_leaves")))
        self.arrives = LoadedProgram(os.dup(found.program_fd("fq_shim_arrives")))

    def wait(self, seconds: float) -> None:
        """Let so much time pass for the handshakes that are unified, by moving their beginning."""
        config = self.shim._config.get(c_uint32(0))
        config.unify_ns -= int(seconds * 1e9)
        self.shim._config.set(c_uint32(0), config)

    def stop(self) -> None:
        """Let the lease of the process end."""
        config = self.shim._config.get(c_uint32(0))
        config.until_ns = self.shim._until_ns = 1
        self.shim._config.set(c_uint32(0), config)

    def out(self, what: Segment | bytes, segments: Segments | None = None) -> bytes:
        return self._run(self.leaves, what, segments)

    def comes(self, what: Segment) -> None:
        assert self._run(self.arrives, what) == what.frame(), "nothing that arrives is changed"

    def _run(self, program: LoadedProgram, what: Segment | bytes, segments: Segments | None = None) -> bytes:
        frame = what.frame() if isinstance(what, Segment) else what
        result = program.run(frame, self.port.ifindex, segments=segments, summed=can_sum())
        assert result.verdict == UNSPEC
        return result.packet

    def own(self, **what: Any) -> Segment:
        return Segment(**({"seq": self.isn + 1, "ack": 5001} | self.shape | what))

    def other(self, **what: Any) -> Segment:
        ends = {
            "src": self.shape.get("dst", "10.0.0.2"),
            "dst": self.shape.get("src", "10.0.0.1"),
            "sport": 80,
            "dport": 40000,
        }
        return Segment(**({"seq": 5001, "ack": self.isn + 1} | self.shape | ends | what))

    def connect(self, own: int | None = 9, other: int | None = 7, **syn: Any) -> tuple[Segment, bytes]:
        """Open another connection; returns the SYN as it was, and as it left."""
        self.isn += 100_000
        opening = self.own(**({"flags": "S", "seq": self.isn, "ack": 0} | {"options": options(own)} | syn))
        left = self.out(opening)
        self.comes(self.other(flags="SA", seq=5000, options=options(other)))
        return opening, left

    def accept(self, own: int | None = 9, **what: Any) -> tuple[Segment, bytes]:
        """Answer another SYN; returns the SYN-ACK as it was, and as it left."""
        self.isn += 100_000
        answer = self.own(**({"flags": "SA", "seq": self.isn, "options": options(own)} | what))
        return answer, self.out(answer)

    def close(self) -> None:
        self.shim.close()
        self.leaves.close()
        self.arrives.close()
        run("ip", "link", "del", "u9")


def options(scale: int | None) -> bytes:
    return packets.syn_options(1460, scale, packets.sack_permitted())


@pytest.fixture
def host(own_namespace: None, request: pytest.FixtureRequest) -> Iterator[Host]:
    found = Host(**getattr(request, "param", {}))
    try:
        yield found
    finally:
        found.close()


def hosts(*each: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("host", each, indirect=True)


@hosts(*({"shape": shape} for shape in SHAPES.values()))
@pytest.mark.parametrize("side", ["connect", "accept"])
def test_every_scale_is_told_in_the_reserved_bits(host: Host, side: str) -> None:
    for scale in range(15):
        opening, left = getattr(host, side)(scale)
        assert left == opening.frame(), "the handshake is not changed"
        for more in ({}, {"payload": b"odd"}, {"options": NOP * 2 + packets.timestamps()}, {"flags": "FA"}):
            before = host.own(window=30_001, **more)
            assert host.out(before) == with_word(before, scale, 30_001)
    counts = host.shim.counts()
    assert (counts["told"], counts["untold"], counts["unified"]) == (14 * 4, 4, 0)


@hosts({}, {"mode": "reserved3", "unify": 7}, {"mode": "window12"}, {"mode": "off", "unify": 7})
def test_what_is_not_known_stays_as_it_is(host: Host) -> None:
    """Without a handshake, without an answer, without the option in it, with a signature; SYN and RST."""
    for each in (host.own(), host.own(payload=b"data"), host.own(flags="RA")):
        assert host.out(each) == each.frame()
    host.out(host.own(flags="S", seq=host.isn, ack=0, options=options(9)))
    assert host.out(host.own()) == host.own().frame(), "nobody has answered"
    host.comes(host.other(flags="SA", seq=5000, ack=999_999, options=options(7)))
    assert host.out(host.own()) == host.own().frame(), "the answer is to another SYN"
    host.connect(9, None)
    reserved, window = word(host.out(host.own(window=40_000)))
    if host.mode == "window12":
        assert (reserved, window) == (8, 4 << 12 | 40_000 >> 4)
    else:
        assert (reserved, window) == (0, 40_000), "no option in the answer: the scale is 0"
    host.connect(9, 7)
    signed = host.own(options=NOP * 2 + b"\x13\x12" + b"s" * 16)
    assert host.out(signed) == signed.frame()
    assert host.shim.counts()["unknown"] == 4


@hosts({}, {"mode": "reserved3", "unify": 7})
@pytest.mark.parametrize("side", ["connect", "accept"])
@pytest.mark.parametrize("answer", ["SA", "SAE", "SAC", "SAEC"])
def test_accecn_keeps_its_bit(host: Host, side: str, answer: str) -> None:
    """Agreed in the handshake: CWR in the answer; ECE alone is ECN of RFC 3168."""
    if side == "connect":
        host.out(host.own(flags="SEC", seq=host.isn, ack=0, options=options(7)))
        host.comes(host.other(flags=answer, seq=5000, options=options(7)))
    else:
        host.accept(7, flags=answer)
    reserved, _ = word(host.out(host.own()))
    if host.mode == "reserved":
        assert reserved == (0 if "C" in answer else 7)
    else:
        ace = with_word(host.own(), 1, 65535)
        assert (reserved, word(host.out(ace))[0]) == (7 << 1, 7 << 1 | 1)


@hosts(*({"mode": "reserved3", "unify": 7, "shape": shape} for shape in SHAPES.values()))
@pytest.mark.parametrize("side", ["connect", "accept"])
def test_unified(host: Host, side: str) -> None:
    """The option of the handshake, later windows, and what is told: byte for byte, for each scale."""
    for scale in range(15):
        wire = min(scale, 7)
        opening, left = getattr(host, side)(scale)
        assert left == opening.but(options=options(wire)).frame()
        assert host.out(opening) == left, "a retransmission is the same"
        for window in (0, 1, 100, 511, 512, 40_000, 65_535):
            before = host.own(window=window)
            converted = min(65_535, window << scale >> wire)
            assert host.out(before) == with_word(before, wire << 1, converted)
            assert converted << wire <= window << scale, "never larger"


@hosts({"mode": "off", "unify": 7, "grace": UNIFY_GRACE_S})
def test_a_syn_that_may_have_left_before_keeps_its_scale(host: Host) -> None:
    """So long as a host may repeat one that left before the shim was there: its other end counts in that."""
    host.wait(LAST_SYN_S)
    opening, left = host.connect(9)
    assert left == opening.frame()
    host.wait(UNIFY_GRACE_S)
    assert host.out(opening) == opening.frame(), "a repetition does as the first did"
    _, left = host.connect(9)
    assert left != opening.frame(), "no later one has left before"


@hosts({"mode": "off", "unify": 7, "grace": 60})
def test_a_handshake_that_may_have_begun_before_is_not_converted(host: Host) -> None:
    opening, left = host.connect(9)
    assert left == opening.frame()
    assert host.out(host.own(window=100)) == host.own(window=100).frame()
    assert host.shim.counts()["converted"] == 0


@hosts({"mode": "off", "unify": 7})
@pytest.mark.parametrize("place", range(3))
def test_the_option_at_even_and_odd_places(host: Host, place: int) -> None:
    text = packets.padded(NOP * place + packets.wscale(14) + packets.mss(1460))
    changed = packets.padded(NOP * place + packets.wscale(7) + packets.mss(1460))
    opening, left = host.connect(options=text)
    assert left == opening.but(options=changed).frame()


@hosts({"mode": "window12"})
def test_twelve_bits_of_the_window(host: Host) -> None:
    for scale in range(15):
        host.connect(scale)
        for window in (0, 16, 4097, 65_535):
            before = host.own(window=window)
            if scale > 11:
                assert host.out(before) == before.frame(), "there is no room for it"
            else:
                assert host.out(before) == with_word(before, 8, (scale + 4) << 12 | window >> 4)
        small = host.own(window=15)
        assert host.out(small) == small.frame(), "a small window does not become none"


@hosts({})
def test_several_segments_in_one_packet(host: Host) -> None:
    host.connect(9)
    before = host.own(payload=b"d" * 2920)
    assert host.out(before, Segments(2, 1460, len(before.frame()) + 54)) == with_word(before, 9, 65535)


@hosts({"use_tcx": False})
def test_without_a_process_nothing_is_written(host: Host) -> None:
    """By its lease, where the kernel has no tcx; after a gap, handshakes keep their scales for a while."""
    host.connect(9)
    assert word(host.out(host.own()))[0] == 9
    host.stop()
    assert host.out(host.own()) == host.own().frame()
    host.shim.renew()
    assert host.out(host.own()) == host.own().frame(), "it may be another connection of the same ports"
    assert host.shim._config.get(c_uint32(0)).unify_ns >= host.shim._until_ns - 4 * 10**9
    host.connect(9)
    assert word(host.out(host.own()))[0] == 9


@hosts({"use_tcx": False})
def test_a_process_that_was_stopped_while_it_renewed_forgets_all(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.connect(9)
    write, written, ahead, hour = host.shim._write, list[int](), [0], 3600 * 10**9
    host.shim._write(time.monotonic_ns() + hour)
    clock = SimpleNamespace(monotonic_ns=lambda: time.monotonic_ns() + ahead[0])
    monkeypatch.setattr(shim, "time", clock)

    def late(until_ns: int) -> None:
        ahead[0] = 2 * hour
        written.append(until_ns)
        write(until_ns)

    monkeypatch.setattr(host.shim, "_write", late)
    host.shim.renew()
    assert len(written) == 3 and written[1] == 0, "what the late lease revived is ended"
    assert host.out(host.own()) == host.own().frame(), "it may be another connection of the same ports"
    host.connect(9)
    assert word(host.out(host.own()))[0] == 9


@hosts({"mode": "off", "unify": 7, "grace": UNIFY_GRACE_S, "use_tcx": False})
@pytest.mark.parametrize("side", ["connect", "accept"])
@pytest.mark.parametrize("gap", ["nothing", "the handshake again", "another connection"])
def test_no_window_is_raised_after_a_gap(host: Host, side: str, gap: str) -> None:
    """The other end counts in 9 if it was told so in the gap, else in 7: what is not converted is right for
    the one, and smaller for the other.
    """
    host.wait(UNIFY_GRACE_S)
    opening, left = getattr(host, side)(9)
    assert left == opening.but(options=options(7)).frame()
    assert host.out(host.own(window=100)) == host.own(window=400).frame()
    host.stop()
    if gap == "the handshake again":
        assert host.out(opening) == opening.frame(), "what has left before may be lost"
    elif gap == "another connection":
        opening, left = getattr(host, side)(9)
        assert left == opening.frame()
    host.shim.renew()
    host.comes(host.other(flags="SA", seq=5000, options=options(7)))
    assert host.out(host.own(window=100)) == host.own(window=100).frame()
    assert host.out(opening) == opening.frame(), "a repetition does as that of the gap did"
    assert host.out(host.own(window=100)) == host.own(window=100).frame()


# The bridge


def believe(switch: Switch, mode: str, *ports: int) -> None:
    """Segments that leave by these ports tell their scales."""
    for number, port in switch.ports.items():
        switch.datapath.window.remove_port(port.ifindex)
        switch.datapath.window.set_told(port.ifindex, MODES[mode] if number in ports else 0)
        switch.datapath.window.add_port(port.ifindex)


@pytest.fixture
def reading(switch: Switch) -> Iterator[Switch]:
    yield switch
    believe(switch, "reserved")


def old_connection(switch: Switch, **what: Any) -> Connection:
    """One whose handshake the bridge has not seen: its data has passed since."""
    flow = Connection(switch, **what)
    flow.data(1460)
    return flow


def told(flow: Connection, mode: str, scale: int, window: int, **what: Any) -> bytes:
    """An ACK of the server as its shim lets it leave."""
    segment = flow.from_server(**what)
    if mode == "reserved":
        return with_word(segment, scale, window)
    if mode == "reserved3":
        return with_word(segment, scale << 1, window)
    return with_word(segment, 8, (scale + 4) << 12 | window >> 4)


@pytest.mark.parametrize("ends", [{}, {"client": "2001:db8::1", "server": "2001:db8::2"}])
@pytest.mark.parametrize("shape", [{}, {"vlans": ((VLAN, 10),)}])
@pytest.mark.parametrize(("mode", "most"), [("reserved", 14), ("reserved3", 7), ("window12", 11)])
def test_flows_older_than_the_agent_are_governed(
    reading: Switch, mode: str, most: int, shape: dict[str, Any], ends: dict[str, str]
) -> None:
    believe(reading, mode, 1)
    reading.rule(2, 30_000)
    for scale in range(1, most + 1):
        flow = old_connection(reading, shape=shape, **ends)
        step = 1 << scale
        floor = -(-1460 // step)
        for window in (60_000, 16):
            left = reading.leave(1, told(flow, mode, scale, window))
            # The complete frame: the same segment, built from scratch.
            assert left == flow.from_server(window=min(window, max(30_000 // step, floor))).frame()
    state = reading.state(2)
    assert (state.scale_told, state.unknown_scale) == (2 * most, 0)
    assert reading.state(1).scale_wrong == 0


def test_each_segment_speaks_for_itself(reading: Switch) -> None:
    """A forged one changes nothing for the next, and one that tells nothing is left alone."""
    believe(reading, "reserved", 1)
    reading.rule(2, 30_000)
    flow = old_connection(reading)
    assert packets.window(reading.leave(1, told(flow, "reserved", 14, 60_000))) == 1
    assert packets.window(reading.leave(1, told(flow, "reserved", 7, 60_000))) == 234
    assert flow.granted(60_000) == 60_000
    assert packets.window(reading.leave(1, told(flow, "reserved", 15, 60_000))) == 60_000, "no such scale"


@pytest.mark.parametrize("scale", range(16))
def test_no_window_is_raised(reading: Switch, scale: int) -> None:
    believe(reading, "reserved", 1)
    flow = old_connection(reading)
    for rule in (1, 3000, 1 << 30):
        reading.rule(2, rule)
        for advertised in (0, 1, 200, 65_535):
            left = reading.leave(1, told(flow, "reserved", scale, advertised))
            assert word(left)[0] == 0 and packets.window(left) <= advertised


def test_the_handshake_counts_if_it_was_seen(reading: Switch) -> None:
    believe(reading, "reserved", 1)
    reading.rule(2, 30_000)
    flow = Connection(reading, server_scale=5).open()
    flow.data()
    for scale in (5, 9, 1):
        left = reading.leave(1, told(flow, "reserved", scale, 60_000))
        assert left == flow.from_server(window=30_000 >> 5).frame()
    assert (reading.state(2).scale_told, reading.state(1).scale_wrong) == (0, 2)


def test_other_ports_believe_nothing(reading: Switch) -> None:
    believe(reading, "reserved", 3)
    reading.rule(2, 3000)
    flow = old_connection(reading)
    before = told(flow, "reserved", 7, 60_000)
    assert reading.leave(1, before) == before
    assert reading.state(2).unknown_scale == 1


def test_accecn_passes_where_three_bits_are_used(reading: Switch) -> None:
    believe(reading, "reserved3", 1)
    reading.rule(2, 30_000)
    flow = old_connection(reading)
    left = reading.leave(1, with_word(flow.from_server(), 7 << 1 | 1, 60_000))
    assert left == with_word(flow.from_server(), 1, 30_000 >> 7)


def test_a_window_without_the_mark_is_a_window(reading: Switch) -> None:
    believe(reading, "window12", 1)
    flow = old_connection(reading)
    for window in (0x3FFF, 0x4FFF, 0xFFFF):
        assert flow.granted(window) == window
    for window in (0xBFFF, 0xFFFF):
        left = reading.leave(1, with_word(flow.from_server(), 8, window))
        assert left == flow.from_server(window=(window & 0xFFF) << 4).frame()


def test_syns_and_signed_segments_keep_their_bits(reading: Switch) -> None:
    believe(reading, "reserved", 1, 2)
    flow = old_connection(reading)
    for each in (
        flow.from_server(options=NOP * 2 + b"\x13\x12" + b"s" * 16),
        flow.from_server(flags="S", seq=1, ack=0, options=options(7)),
    ):
        before = with_word(each, 7, 60_000)
        assert reading.leave(1, before) == before


def test_it_takes_a_share_with_windows_of_whole_segments(reading: Switch) -> None:
    """Nobody has seen an MSS: the minimum window is the largest segment that has come."""
    believe(reading, "reserved", 1)
    flow = old_connection(reading)
    assert reading.active(2) == 0
    reading.leave(1, told(flow, "reserved", 7, 60_000))
    flow.data(3000)
    assert reading.active(2) == 1
    reading.rule(2, 1, WindowKind.POOL)
    assert packets.window(reading.leave(1, told(flow, "reserved", 7, 60_000))) == -(-3000 // 128)


def test_from_shim_to_bridge(host: Host, reading: Switch) -> None:
    """What one writes the other reads."""
    believe(reading, "reserved", 1)
    reading.rule(2, 30_000)
    host.accept(9)
    reading.leave(2, host.other(payload=b"d" * 1000))
    before = host.own(window=60_000, ack=6001)
    assert reading.leave(1, host.out(before)) == before.but(window=30_000 >> 9).frame()
